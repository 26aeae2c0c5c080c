import type { CloudError } from '../../cloud/cloud-error.ts';
import { runSweep } from '../audit/run-sweep.ts';
import type { NodeEntry } from '../cache/node-entry.ts';
import type { ClaimFacts } from '../cache/record-facts.ts';
import { VPC_ENIS_BY } from '../cache/vpc-eni-entry.ts';
import type { ClaimWait } from '../decide/decision.ts';
import { isStaticNode } from '../node-lifecycle/decide-policy.ts';
import { AddressConflicts, createLookUpHolder } from '../static/address-conflicts.ts';
import { runClaimAudit } from '../static/audit-claims.ts';
import { ClaimViewBuilder } from '../static/build-claim-view.ts';
import { ClaimRequests } from '../static/claim-requests.ts';
import { ClaimWaits, MIN_WAIT_MS } from '../static/claim-waits.ts';
import { findSubnet } from '../static/find-subnet.ts';
import { findWorkload } from '../static/find-workload.ts';
import { ReservationRunner } from '../static/reservation-runner.ts';
import { runClaims } from '../static/run-claims.ts';
import { sweptReservations } from '../static/sweep-reservations.ts';
import { reportUnservedRequests } from '../static/unserved-requests.ts';
import { ZoneNames } from '../static/zone-names.ts';
import type { ClaimRefusal } from '../supply/node-deps.ts';
import type { ClaimState, LeaderDeps, TermComponents } from './leader-deps.ts';
import { openStaticInformers, type RecordInformers } from './open-informers.ts';

/** Makes the state that nodes read before claims are reconciled; it is empty at first. */
export function createClaimState({ runtime, informers }: Pick<LeaderDeps, 'runtime' | 'informers'>): ClaimState {
  const { clock, random, cloud } = runtime;
  const lookupHolder = createLookUpHolder({ cloud, necs: informers.necs });
  return {
    requests: new ClaimRequests(),
    conflicts: new AddressConflicts(clock, random, lookupHolder),
    waits: new ClaimWaits(clock),
  };
}

/** Runs the claims controller and its audit until aborted. Rejects only with a fault of ipamd. */
export async function runPodClaims(
  deps: LeaderDeps,
  { queues, claims, subnets, facts, registered }: TermComponents,
  records: RecordInformers,
  signal: AbortSignal,
): Promise<void> {
  const { config, informers, informerDeps, events } = deps;
  const { clock, log, kube, metrics } = deps.runtime;
  const { configs, deployments } = openStaticInformers(informerDeps, config);
  const enqueue = (key: string): void => queues.claims.add(key);
  const reservations = createReservations(deps, subnets, (key, ip, message) => {
    claims.conflicts.add(key, ip === '' ? [] : [ip], message);
    enqueue(key);
  });
  const zoneNames = new ZoneNames({ instances: deps.runtime.cloud.instances, clock, log });
  const views = new ClaimViewBuilder({
    zoneNames,
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
    isStaticNode: (node) => isStaticNode(node, config.enableStaticIp),
    reservations: {
      get isKept() {
        return config.reserveKeptAddresses && !reservations.isPaused;
      },
      problemOf: (key) => reservations.problemOf(key),
    },
    ...(registered === undefined ? {} : { registered }),
    isReleaseHeld: (name) => {
      const entry = informers.nodes.get(name) === undefined ? informers.necs.get(name) : undefined;
      return entry !== undefined && facts.departureOf(name, entry) !== 'enough';
    },
  });
  const following = [configs, deployments].map((informer) => informer?.start(signal));
  const enqueueNode = (name: string): void => {
    queues.supply.add(name);
    if (informers.nodes.get(name)?.isCiliumCrd === true) queues.cilium.add(name);
  };
  const { definitions } = deps;
  const shared = {
    definitions,
    kube,
    views,
    reservations,
    zoneNames,
    ...claims,
    enqueueNode,
    clock,
    log,
    events,
    queue: queues.claims,
    subnets,
  };
  const rules = { configs, deployments, namespace: config.namespace };
  const all = { ...shared, ...informers, ...records, ...rules, observer: metrics.controller, observe: metrics.claims };
  const audit = {
    ...informers,
    ...records,
    configs,
    conflicts: claims.conflicts,
    cloud: deps.runtime.cloud,
    enqueue,
    clock,
    log,
    events,
  };
  const audited = { ...audit, intervalMs: config.claimAuditIntervalMs, observe: metrics.claims };
  const stops = [followVpcEnis(informers, enqueue), reportUnservedRequests({ ...informers, events })];
  await Promise.all([
    runClaims(all, signal),
    runClaimAudit(audited, signal),
    runReservationSweep(deps, subnets, records, signal),
  ]).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  for (const stop of stops) stop();
  await Promise.all(following);
}

function followVpcEnis({ vpcEnis }: LeaderDeps['informers'], enqueue: (key: string) => void): () => void {
  return vpcEnis.subscribe(({ before, after }) => {
    for (const { claim } of [before, after].filter((one) => one !== undefined)) if (claim !== '') enqueue(claim);
  });
}

/** Without a super node, the flag or a reservation that a claim names, the right to describe reservations may be lacking. */
async function runReservationSweep(
  { config: settings, runtime, informers: { pods, nodes }, definitions, events }: LeaderDeps,
  subnets: TermComponents['subnets'],
  { claims }: RecordInformers,
  signal: AbortSignal,
): Promise<never> {
  const isServing = (node: NodeEntry): boolean => !node.isInstance && isStaticNode(node, settings.enableStaticIp);
  const isNamed = ({ staticObject }: ClaimFacts): boolean => staticObject?.decoded?.status?.reservation !== undefined;
  const deps = { ...runtime, events, settings, isRebuilding: () => definitions.isRebuilding };
  const kind = sweptReservations({
    ...deps,
    claims,
    pods,
    vpcIds: () => vpcIdsOf(subnets),
    subnetOf: (ip) => findSubnet(ip, subnets.all()),
  });
  return await runSweep(kind, deps, signal, {
    isWanted: () =>
      settings.reserveKeptAddresses || [...nodes.values()].some(isServing) || [...claims.values()].some(isNamed),
    onSwept: (swept) => {
      if (swept.kind === 'done') runtime.metrics.claims.onOrphanReservations(swept.orphans.length);
    },
  });
}

function vpcIdsOf(subnets: TermComponents['subnets']): ReadonlySet<string> {
  return new Set(subnets.all().map(({ vpcId }) => vpcId));
}

function createReservations(
  { config, runtime, events }: LeaderDeps,
  subnets: TermComponents['subnets'],
  onTaken: (key: string, ip: string, message: string) => void,
): ReservationRunner {
  const { clusterId } = config;
  return new ReservationRunner({ ...runtime, clusterId, vpcIds: () => vpcIdsOf(subnets), events, onTaken });
}

/** Notes that the cloud refused a claim's requested address because another resource has it. */
export function noteRefusal(
  { conflicts }: ClaimState,
  enqueue: (key: string) => void,
  key: string,
  { ips, code, message }: ClaimRefusal,
): void {
  if (ips.length === 0 || !TAKEN_CODES.some((one) => code.startsWith(one))) return;
  conflicts.add(key, ips, `${code}: ${message}`);
  enqueue(key);
}

/** Notes why claims wait on a node; claims that wait for a while are enqueued. */
export function noteWaits(
  { waits }: ClaimState,
  { claims }: TermComponents['queues'],
  node: string,
  reasons: ReadonlyMap<string, ClaimWait>,
): void {
  for (const key of waits.note(node, reasons)) claims.addAfter(key, MIN_WAIT_MS);
}

/** Error codes of the cloud for an address that another resource has. */
const TAKEN_CODES: readonly CloudError['code'][] = ['ResourceInUse', 'InvalidParameterValue.Duplicate'];
