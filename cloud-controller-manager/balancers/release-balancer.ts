import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { OWNER_TAG } from '../../crd/cloud-tags.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { type BalancerOwner, OWNER_NAMES, type OwnerReports, ownerOf } from './balancer-owner.ts';
import type { ListenerClaim } from './claim-listeners.ts';
import { releaseSteps, retainSteps } from './diff-load-balancer.ts';
import { observeLoadBalancer } from './observe-load-balancer.ts';
import { readOwnerMark } from './owner-mark.ts';
import { deleteGroup, StepRunner } from './run-step.ts';
import { APPEARS_MS, type UnresolvedCalls } from './unresolved-calls.ts';

/** What a release works with. */
type ReleaseDeps = Pick<ControllerDeps, 'cloud'> & {
  readonly clock: Clock;
  readonly reports: Pick<OwnerReports, 'progress'>;
  readonly calls: UnresolvedCalls;
  /** By owner, and by `groupsKeyOf` it: since when nothing of it is found. */
  readonly absentSinceMs: Map<string, number>;
};

/** What is released, and how. */
type ReleasedOwner = {
  readonly head: BalancerOwner;
  readonly settings: ReleaseSettings;
  readonly clusterId: string;
} & ListenerClaim;

/** What annotations say of the release. */
export type ReleaseSettings = {
  /** `skip`: all that is in the cloud stays. */
  readonly mode?: string;
  /** Whether the load balancer stays, without the listeners of the owner. */
  readonly retain?: boolean;
  /** `false`: the protection against deletion is taken off before. */
  readonly deletionProtection?: boolean;
  /** The load balancer of others that it asks for. */
  readonly existedLbId?: string;
  /** Value of `OWNER_TAG` of the load balancers of its pool. */
  readonly poolOwner?: string;
};

const SOON_MS = 2_000;

/**
 * Removes what an owner has in the cloud: its own load balancer, or its listeners of one that exists for others too.
 * @returns `done` when nothing is left. @throws CloudError, StepError when it is to be tried again
 */
export async function releaseBalancer(
  deps: ReleaseDeps,
  { head, settings, clusterId, ...claim }: ReleasedOwner,
  context: CallContext,
): Promise<ReconcileResult> {
  const { calls, clock, reports, absentSinceMs } = deps;
  const { mode, retain, deletionProtection, existedLbId, poolOwner } = settings;
  if (mode === 'skip') return { kind: 'done' };
  const mark = readOwnerMark(head);
  const { loadBalancerId } = mark;
  const looksForGroups = retain === true && mark.sourceGroup === true;
  const { listenerName } = claim;
  const owner = ownerOf(clusterId, head.uid, head.kind);
  const search = { owner, ...claim, loadBalancerId, otherIds: [existedLbId], poolOwner, looksForGroups };
  const hasRecord = mark.serial > 0;
  // One with another id, or none, does not tell what was sent to the load balancer that the annotation names.
  if (existedLbId === undefined || loadBalancerId === existedLbId) calls.see(listenerName, mark, head.hasFinalizer);
  const view = await observeLoadBalancer(deps, search, context);
  if (view.kind === 'pending') return { kind: 'again', afterMs: SOON_MS };
  const stepsOf = retain === true ? retainSteps : releaseSteps;
  const steps = view.kind === 'absent' ? [] : stepsOf(listenerName, view.observed);
  if (view.kind === 'absent' || steps.length === 0) {
    // On a load balancer that stays, something may still be made.
    const unresolvedMs = view.kind === 'absent' ? 0 : await calls.resolve(listenerName, context);
    if (!hasRecord) return unresolvedMs > 0 ? { kind: 'again', afterMs: unresolvedMs } : { kind: 'done' };
    const groups = groupsKeyOf(head.key);
    if (mark.sourceGroup === true) {
      const deleted = await releaseGroups(deps, search.owner, head.key, context);
      if (deleted === undefined) return { kind: 'again', afterMs: SOON_MS };
      if (deleted > 0) absentSinceMs.set(groups, Number.NEGATIVE_INFINITY);
    }
    // What is read may be as of a while ago: nothing is found for so long before it counts as gone, unless it was deleted here.
    const leftMs = Math.max(
      unresolvedMs,
      ...[head.key, ...(mark.sourceGroup === true ? [groups] : [])].map((key) => {
        const since = absentSinceMs.get(key) ?? clock.monotonicMs();
        absentSinceMs.set(key, since);
        return since + APPEARS_MS - clock.monotonicMs();
      }),
    );
    return leftMs <= 0 ? { kind: 'done' } : { kind: 'again', afterMs: Math.min(leftMs, APPEARS_MS / 3) };
  }
  const { observed } = view;
  const { loadBalancerId: id } = observed.balancer;
  const isDeleted = steps.some(({ kind }) => kind === 'delete');
  const what = isDeleted
    ? `Deleting load balancer ${id}`
    : `Deleting the listeners of the ${OWNER_NAMES[head.kind].object} of ${id}`;
  reports.progress(head, { reason: 'DeletingLoadBalancer', message: what });
  const runner = new StepRunner(deps, observed, listenerName);
  if (isDeleted && deletionProtection === false && observed.balancer.isDeleteProtected)
    await runner.run({ kind: 'modify', changes: { isDeleteProtected: false } }, context);
  for (const step of steps) await runner.run(step, context);
  reports.progress(head, {
    reason: 'DeletedLoadBalancer',
    message: isDeleted
      ? `Deleted load balancer ${id}`
      : `The listeners of the ${OWNER_NAMES[head.kind].object} of ${id} are gone; ${id} stays`,
  });
  // Once more: what is gone is not found any more, and that is certain.
  absentSinceMs.set(head.key, Number.NEGATIVE_INFINITY);
  return { kind: 'again', afterMs: 0 };
}

/** Returns the key of the security groups of an owner. */
export function groupsKeyOf(owner: string): string {
  return `${owner} security groups`;
}

/** Returns the key of the security groups of an owner that others use. */
export function usedGroupsKeyOf(owner: string): string {
  return `${owner} security groups in use`;
}

/**
 * Deletes the security groups of an owner, whose load balancer is gone. One that something uses a minute later is left to the
 * sweep: whoever uses it must not hold the owner. @returns how many; undefined: not known. @throws CloudError
 */
async function releaseGroups(
  { cloud, clock, absentSinceMs }: ReleaseDeps,
  owner: string,
  key: string,
  context: CallContext,
): Promise<number | undefined> {
  const { groups, isConsistent } = await cloud.groups.find({ key: OWNER_TAG, value: owner }, context);
  if (!isConsistent) return undefined;
  const sinceMs = absentSinceMs.get(usedGroupsKeyOf(key)) ?? clock.monotonicMs();
  let deleted = 0;
  for (const { securityGroupId } of groups)
    try {
      await deleteGroup(cloud, securityGroupId, context);
      deleted += 1;
    } catch (error) {
      if (!isCloudError(error, 'never') || !error.code.includes('InUse')) throw error;
      absentSinceMs.set(usedGroupsKeyOf(key), sinceMs);
      if (clock.monotonicMs() - sinceMs < APPEARS_MS) throw error;
    }
  return deleted;
}
