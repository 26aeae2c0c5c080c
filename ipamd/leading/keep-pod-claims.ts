import type { CloudError } from '../../cloud/cloud-error.ts';
import { VPC_ENIS_BY } from '../direct/vpc-eni-entry.ts';
import type { ClaimRefusal } from '../node/node-deps.ts';
import { openStaticInformers, type RecordInformers } from '../open-informers.ts';
import { runClaimAudit } from '../static/audit-claims.ts';
import { ClaimBook } from '../static/claim-book.ts';
import { findWorkload } from '../static/find-workload.ts';
import { runClaims } from '../static/run-claims.ts';
import { ClaimEyes } from '../static/see-claim.ts';
import { createAskHolder, TakenBook } from '../static/taken-book.ts';
import { LEAST_WAIT_MS, WaitBook } from '../static/wait-book.ts';
import type { ClaimParts, LeadDeps, TermParts } from './lead-deps.ts';

/** Makes the state that nodes read before claims are reconciled; it is empty at first. */
export function makeClaimParts({ runtime, informers }: Pick<LeadDeps, 'runtime' | 'informers'>): ClaimParts {
  const { clock, random, cloud } = runtime;
  const ask = createAskHolder({ cloud, necs: informers.necs });
  return { book: new ClaimBook(), taken: new TakenBook(clock, random, ask), waits: new WaitBook(clock) };
}

/** Runs the claims controller and its audit until aborted. Rejects only with a fault of ipamd. */
export async function keepPodClaims(
  deps: LeadDeps,
  { queues, claims, subnets }: TermParts,
  records: RecordInformers,
  signal: AbortSignal,
): Promise<void> {
  const { config, informers, informerDeps, events } = deps;
  const { clock, log, kube, metrics } = deps.runtime;
  const { configs, deployments } = openStaticInformers(informerDeps, config);
  const eyes = new ClaimEyes({
    ...informers,
    ...records,
    configs,
    workloadOf: (pod) => (deployments === undefined ? undefined : findWorkload(pod, deployments.values())),
    subnets,
    hasEni: (key) => informers.vpcEnis.byIndex(VPC_ENIS_BY.claim, key).length > 0,
    waits: claims.waits,
    clock,
    namespace: config.namespace,
    defaultExpiredMs: config.claimExpiredDurationMs,
    takeOverAfterMs: config.staticTakeoverAfterMs,
  });
  const following = [configs, deployments].map((informer) => informer?.start(signal));
  const wakeNode = (name: string): void => queues.supply.add(name);
  const kept = { kube, eyes, ...claims, wakeNode, clock, log, events, queue: queues.claims, subnets };
  const rules = { configs, deployments, namespace: config.namespace };
  const all = { ...kept, ...informers, ...records, ...rules, observer: metrics.controller, observe: metrics.claims };
  const wake = (key: string): void => queues.claims.add(key);
  const audit = {
    ...informers,
    ...records,
    configs,
    taken: claims.taken,
    cloud: deps.runtime.cloud,
    wake,
    clock,
    log,
    events,
  };
  const audited = { ...audit, intervalMs: config.claimAuditIntervalMs, observe: metrics.claims };
  const stop = informers.vpcEnis.subscribe(({ before, after }) => {
    for (const { claim } of [before, after].filter((one) => one !== undefined)) if (claim !== '') wake(claim);
  });
  await Promise.all([runClaims(all, signal), runClaimAudit(audited, signal)]).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  stop();
  await Promise.all(following);
}

/** Notes that the cloud refused a claim's requested address because another resource has it. */
export function noteRefusal(
  { taken }: ClaimParts,
  wake: (key: string) => void,
  key: string,
  { ips, code, message }: ClaimRefusal,
): void {
  if (ips.length === 0 || !TAKEN_CODES.some((one) => code.startsWith(one))) return;
  taken.refuse(key, ips, `${code}: ${message}`);
  wake(key);
}

/** Notes why claims wait on a node; claims that wait for a while are enqueued. */
export function noteWaits(
  { waits }: ClaimParts,
  { claims }: TermParts['queues'],
  node: string,
  said: ReadonlyMap<string, string>,
): void {
  for (const key of waits.note(node, said)) claims.addAfter(key, LEAST_WAIT_MS);
}

/** Error codes of the cloud for an address that another resource has. */
const TAKEN_CODES: readonly CloudError['code'][] = ['ResourceInUse', 'InvalidParameterValue.Duplicate'];
