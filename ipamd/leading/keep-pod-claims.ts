import type { CloudError } from '../../cloud/cloud-error.ts';
import { VPC_ENIS_BY } from '../direct/vpc-eni-entry.ts';
import type { ClaimRefusal } from '../node/node-deps.ts';
import { openStaticInformers, type RecordInformers } from '../open-informers.ts';
import { createAskHolder } from '../static/ask-holder.ts';
import { runClaimAudit } from '../static/audit-claims.ts';
import { ClaimBook } from '../static/claim-book.ts';
import { findWorkload } from '../static/find-workload.ts';
import { runClaims } from '../static/run-claims.ts';
import { ClaimEyes } from '../static/see-claim.ts';
import { TakenBook } from '../static/taken-book.ts';
import { LEAST_WAIT_MS, WaitBook } from '../static/wait-book.ts';
import type { LeadDeps, TermParts } from './lead.ts';

/** What of kept addresses lives as long as a term. */
export type ClaimParts = { readonly book: ClaimBook; readonly taken: TakenBook; readonly waits: WaitBook };

/** Makes what nodes ask before claims are kept: a book that knows nothing yet. */
export function makeClaimParts({ runtime, informers }: Pick<LeadDeps, 'runtime' | 'informers'>): ClaimParts {
  const { clock, random, cloud } = runtime;
  const ask = createAskHolder({ cloud, necs: informers.necs });
  return { book: new ClaimBook(), taken: new TakenBook(clock, random, ask), waits: new WaitBook(clock) };
}

/** Keeps kept addresses and what asks for them until aborted. Never rejects but with a fault of ours. */
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

/** Notes that the cloud refused a claim's very address because somebody else has it. */
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

/** Notes why a node does not get on with claims; who waits for a while is told. */
export function noteWaits(
  { waits }: ClaimParts,
  { claims }: TermParts['queues'],
  node: string,
  said: ReadonlyMap<string, string>,
): void {
  for (const key of waits.note(node, said)) claims.addAfter(key, LEAST_WAIT_MS);
}

/** What the cloud says of an address that it gave to somebody else. */
const TAKEN_CODES: readonly CloudError['code'][] = ['ResourceInUse', 'InvalidParameterValue.Duplicate'];
