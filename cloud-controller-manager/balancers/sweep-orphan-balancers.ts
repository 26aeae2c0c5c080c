import type { CallContext } from '../../cloud/cloud.ts';
import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import { type OrphanKind, type OrphanOutcome, OrphanSweep, type Swept } from '../../cloud/orphan-sweep.ts';
import type { SecurityGroup } from '../../cloud/security-groups.ts';
import { CLUSTER_TAG, OWNER_TAG } from '../../crd/cloud-tags.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { listenerNameOf, ownerOf } from './balancer-owner.ts';
import { releaseSteps } from './diff-load-balancer.ts';
import { isKept } from './kept-balancer.ts';
import { ListenerMemory } from './listener-memory.ts';
import { LivingOwners, type Owners } from './living-owners.ts';
import { observeLoadBalancer } from './observe-load-balancer.ts';
import { deleteGroup, StepError, StepRunner } from './run-step.ts';
import { UnresolvedCalls } from './unresolved-calls.ts';

/** Soon after the start, so that a process that never lives for a whole period sweeps too. */
const FIRST_MS = 300_000;
/** An orphan is found in two sweeps, so long apart. */
const APART_MS = 600_000;

/** What a sweep knows of the load balancers that it listed. */
type Listed = {
  balancers: readonly LoadBalancer[];
  /** Why none is deleted now, whatever it is. */
  whyNone: string | undefined;
};

type SweepParts = { readonly deps: ControllerDeps; readonly owners: LivingOwners; readonly listed: Listed };

/**
 * Compares the load balancers of the cluster with their owners now and then, until aborted; ends then. One whose owner went
 * without its release, as when its finalizer is removed by hand, is reported, and deleted with --delete-orphan-load-balancers;
 * so are the security groups of such Services, after their load balancers.
 * @param ingresses undefined: Ingresses are not served, and their load balancers are not looked at
 * @param mayAct whether this program keeps load balancers now: another one may
 */
export async function sweepOrphanBalancers(
  deps: ControllerDeps,
  services: Owners,
  ingresses: Owners | undefined,
  mayAct: () => boolean,
  signal: AbortSignal,
): Promise<void> {
  const { clock, config, metrics } = deps;
  const owners = new LivingOwners(deps, services, ingresses);
  const parts: SweepParts = { deps, owners, listed: { balancers: [], whyNone: undefined } };
  const balancers = new OrphanSweep(sweptBalancers(parts), deps, APART_MS);
  const groups = new OrphanSweep(sweptGroups(parts), deps, APART_MS);
  const context: CallContext = { priority: 'gc', owner: 'orphans', signal, timeoutMs: config.cloudTimeoutMs };
  let waitMs = Math.min(FIRST_MS, config.orphanBalancerPeriodMs);
  try {
    for (;;) {
      await clock.sleep(waitMs, signal);
      if (!mayAct() || !services.isSynced) continue;
      const swept = await balancers.sweep(context);
      if (swept.kind === 'skipped') continue;
      metrics.orphanLoadBalancers.set(swept.orphans.length);
      const all: readonly Swept<unknown>[] = swept.areTooMany ? [swept] : [swept, await groups.sweep(context)];
      const isApart = all.some(hasCandidate);
      waitMs = Math.min(config.orphanBalancerPeriodMs, isApart ? APART_MS : Number.POSITIVE_INFINITY);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Reports whether an orphan waits for its second sweep. */
function hasCandidate(swept: Swept<unknown>): boolean {
  return swept.kind === 'done' && swept.outcomes.size < swept.orphans.length;
}

function sweptBalancers(parts: SweepParts): OrphanKind<LoadBalancer> {
  const { deps, owners, listed } = parts;
  const { cloud, config, log, metrics } = deps;
  return {
    skipMessage: 'orphaned load balancers were not looked for',
    idOf: ({ loadBalancerId }) => loadBalancerId,
    createdAtMs: ({ createdAtMs }) => createdAtMs,
    list: async (context) => {
      const query = { tag: { key: CLUSTER_TAG, value: config.clusterId } };
      const { loadBalancers, isConsistent } = await cloud.loadBalancers.find(query, context);
      if (!isConsistent) return 'SweepInconsistent';
      try {
        // After the load balancers: what has an owner by now is none.
        await owners.read(context.signal);
      } catch (error) {
        context.signal.throwIfAborted();
        if (!isKubeError(error)) throw error;
        log.warn('the owners of load balancers cannot be read', { error });
        return 'NotSynced';
      }
      listed.balancers = loadBalancers;
      // When none of them has an owner, it is the owners that were lost, or the cluster's id is wrong.
      listed.whyNone = loadBalancers.some((balancer) => owners.has(balancer))
        ? undefined
        : `no load balancer of this cluster has its ${owners.names[0]}. ${lostText(owners)} Otherwise delete it in the console`;
      return loadBalancers;
    },
    isOurs: (balancer) => owners.ownerOf(balancer) !== undefined,
    ownerCheck: () => (balancer) => isKept(balancer) || owners.has(balancer),
    limit: () => limitOf(config),
    whyKept: ({ isDeleteProtected, isPrepaid }) => {
      if (!config.deletesOrphanBalancers) return undefined;
      if (listed.whyNone !== undefined) return listed.whyNone;
      if (isDeleteProtected) return 'it is protected against deletion; take the protection off, or leave it';
      return isPrepaid ? 'it is paid for in advance, and only the console can return it' : undefined;
    },
    // It is observed, with what is on it, when it is deleted.
    lookAgain: async (balancer) => balancer,
    remove: (balancer, context) => deleteBalancer(parts, balancer, context),
    report: (balancer, outcome) => {
      metrics.orphanOutcomes.inc({ outcome: COUNTED[outcome.kind] });
      const { loadBalancerId, name, vips, domain } = balancer;
      const { kind, uid } = owners.ownerOf(balancer) ?? {};
      const address = [...vips, domain].filter((one) => one !== '').join(', ');
      const owner = kind === 'ingress' ? 'an Ingress' : 'a Service';
      const what = `the load balancer ${loadBalancerId} (${name}, ${address}) was made for ${owner} with the uid ${uid}, which does not exist any more`;
      report(deps, what, outcome);
    },
    reportTooMany: ({ length: orphans }, all) => {
      log.error('too many load balancers seem to be orphans', { orphans, all });
      const none = `${orphans} of the ${all} load balancers of this cluster seem to have no ${owners.names[0]}; none is deleted`;
      recordEvent(deps, 'Warning', `${none}. ${lostText(owners)}`);
    },
  };
}

/** Values of the label of what was done about a load balancer. */
const COUNTED = {
  removed: 'deleted',
  kept: 'kept',
  spared: 'kept',
  waiting: 'reported',
  failed: 'failed',
  later: 'failed',
} as const;

async function deleteBalancer(
  { deps: { cloud, clock, config }, owners }: SweepParts,
  balancer: LoadBalancer,
  context: CallContext,
): Promise<OrphanOutcome> {
  const { loadBalancerId } = balancer;
  const made = owners.ownerOf(balancer);
  if (made === undefined) return { kind: 'spared' };
  const owner = ownerOf(config.clusterId, made.uid, made.kind);
  const listenerName = listenerNameOf(config.clusterId, made.uid, made.kind);
  const claim = new ListenerMemory().claimOf(listenerName);
  const view = await observeLoadBalancer({ cloud }, { owner, ...claim, loadBalancerId }, context);
  // What was listed may have changed since.
  if (view.kind !== 'found' || !view.observed.isOwn) return { kind: 'spared' };
  if (view.observed.balancer.loadBalancerId !== loadBalancerId) return { kind: 'spared' };
  const foreign = view.observed.listeners.find(({ name }) => name !== listenerName);
  if (foreign !== undefined) {
    const why = `its listener ${foreign.listenerId} (${foreign.name}) is of somebody else; delete it by hand`;
    return { kind: 'kept', why };
  }
  const runner = new StepRunner({ cloud, calls: new UnresolvedCalls({ cloud, clock }) }, view.observed, listenerName);
  try {
    for (const step of releaseSteps(listenerName, view.observed)) await runner.run(step, context);
  } catch (error) {
    context.signal.throwIfAborted();
    if (!(error instanceof StepError)) throw error;
    return { kind: 'failed', error };
  }
  return { kind: 'removed' };
}

/** Security groups that were made for source ranges. One that a load balancer has goes after that. */
function sweptGroups({ deps, owners, listed }: SweepParts): OrphanKind<SecurityGroup> {
  const { cloud, config, log } = deps;
  return {
    skipMessage: 'orphaned security groups were not looked for',
    idOf: ({ securityGroupId }) => securityGroupId,
    createdAtMs: ({ createdAtMs }) => createdAtMs,
    list: async (context) => {
      const { groups, isConsistent } = await cloud.groups.find({ key: CLUSTER_TAG, value: config.clusterId }, context);
      return isConsistent ? groups : 'SweepInconsistent';
    },
    isOurs: (group) => owners.ownerOf(group)?.kind === 'service',
    ownerCheck: () => {
      const bound = new Set(listed.balancers.flatMap(({ securityGroupIds }) => securityGroupIds));
      return (group) => bound.has(group.securityGroupId) || owners.has(group);
    },
    limit: () => limitOf(config),
    whyKept: () => (config.deletesOrphanBalancers ? listed.whyNone : undefined),
    lookAgain: async ({ securityGroupId, tags }, context) => {
      const { groups } = await cloud.groups.find({ key: OWNER_TAG, value: tags[OWNER_TAG] ?? '' }, context);
      return groups.find((group) => group.securityGroupId === securityGroupId);
    },
    remove: async ({ securityGroupId }, context) => {
      await deleteGroup(cloud, securityGroupId, context);
      return { kind: 'removed' };
    },
    report: ({ securityGroupId, name }, outcome) => {
      const what = `the security group ${securityGroupId} (${name}) was made for source ranges of a Service that does not exist any more`;
      report(deps, what, outcome);
    },
    reportTooMany: ({ length: orphans }, all) =>
      log.error('too many security groups seem to be orphans', { orphans, all }),
  };
}

function limitOf({ deletesOrphanBalancers, orphanBalancerLimit }: ControllerDeps['config']): number {
  return deletesOrphanBalancers ? orphanBalancerLimit : 0;
}

function report(deps: ControllerDeps, what: string, outcome: OrphanOutcome): void {
  const { config, log } = deps;
  if (outcome.kind === 'spared') return;
  if (outcome.kind === 'removed') {
    const message = `${what}; it was deleted, as --delete-orphan-load-balancers says`;
    log.info('an orphan is deleted', { message });
    recordEvent(deps, 'Normal', message);
    return;
  }
  let end = 'delete it in the console, or set --delete-orphan-load-balancers';
  if (config.deletesOrphanBalancers)
    end = 'it is deleted in one of the next sweeps, as --orphan-load-balancer-limit says';
  if (outcome.kind === 'kept' || outcome.kind === 'later') end = `it is not deleted: ${outcome.why}`;
  if (outcome.kind === 'failed')
    end = `it could not be deleted: ${outcome.error.message}; look at it in the console. It is tried again`;
  log.warn('an orphan', { message: `${what}; ${end}` });
  recordEvent(deps, 'Warning', `${what}; ${end}`);
}

function recordEvent({ events, config }: ControllerDeps, type: 'Normal' | 'Warning', message: string): void {
  const involved = { apiVersion: 'v1', kind: 'Namespace', name: config.namespace };
  const reason = type === 'Normal' ? 'OrphanLoadBalancerDeleted' : 'OrphanLoadBalancer';
  events.record({ involved, type, reason, message });
}

function lostText({ names: [, owners] }: LivingOwners): string {
  return `Were ${owners} lost, or is --clusterid that of another cluster?`;
}
