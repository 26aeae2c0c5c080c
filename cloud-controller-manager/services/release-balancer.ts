import type { CallContext } from '../../cloud/cloud.ts';
import { OWNER_TAG } from '../../crd/cloud-tags.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { releaseSteps } from './diff-load-balancer.ts';
import { observeLoadBalancer } from './observe-load-balancer.ts';
import { ownerOf } from './plan-load-balancer.ts';
import { readAnnotations } from './read-annotations.ts';
import { readRecord } from './read-record.ts';
import { readServiceHead } from './read-service.ts';
import { deleteGroup, StepRunner } from './run-step.ts';
import type { ServiceReports } from './service-reports.ts';

/** What a release works with. */
type ReleaseDeps = Pick<ControllerDeps, 'cloud'> & {
  readonly clock: Clock;
  readonly reports: ServiceReports;
  /** By Service, and by `groupsKeyOf` it: since when nothing of it is found. */
  readonly absentSinceMs: Map<string, number>;
};

type ReleasedService = {
  readonly object: KubeObject;
  readonly clusterId: string;
  readonly listenerName: string;
};

const SOON_MS = 2_000;
/** Nothing is found for so long before it counts as gone, unless it was deleted here. */
const APPEARS_MS = 60_000;

/**
 * Removes what a Service has in the cloud: its own load balancer, or its listeners of one that exists for others too.
 * @returns `done` when nothing is left. @throws CloudError, StepError when it is to be tried again
 */
export async function releaseBalancer(
  deps: ReleaseDeps,
  { object, clusterId, listenerName }: ReleasedService,
  context: CallContext,
): Promise<ReconcileResult> {
  const { clock, reports, absentSinceMs } = deps;
  const head = readServiceHead(object);
  if (readAnnotations(head.annotations, head.labels).settings.mode === 'skip') return { kind: 'done' };
  const record = readRecord(head);
  const { loadBalancerId } = record;
  const search = { owner: ownerOf(clusterId, head.uid), listenerName, loadBalancerId };
  const view = await observeLoadBalancer(deps, search, context);
  if (view.kind === 'pending') return { kind: 'again', afterMs: SOON_MS };
  const steps = view.kind === 'absent' ? [] : releaseSteps(listenerName, view.observed);
  if (view.kind === 'absent' || steps.length === 0) {
    if (record.serial === 0) return { kind: 'done' };
    const groups = groupsKeyOf(head.key);
    if (record.sourceGroup === true) {
      const deleted = await releaseGroups(deps, search.owner, context);
      if (deleted === undefined) return { kind: 'again', afterMs: SOON_MS };
      if (deleted > 0) absentSinceMs.set(groups, Number.NEGATIVE_INFINITY);
    }
    // What is read may be as of a while ago.
    const leftMs = Math.max(
      ...[head.key, ...(record.sourceGroup === true ? [groups] : [])].map((key) => {
        const since = absentSinceMs.get(key) ?? clock.monotonicMs();
        absentSinceMs.set(key, since);
        return since + APPEARS_MS - clock.monotonicMs();
      }),
    );
    return leftMs <= 0 ? { kind: 'done' } : { kind: 'again', afterMs: Math.min(leftMs, APPEARS_MS / 3) };
  }
  const { observed } = view;
  const { loadBalancerId: id } = observed.balancer;
  const what = observed.isOwn ? `Deleting load balancer ${id}` : `Deleting the listeners of the Service of ${id}`;
  reports.progress(head, { reason: 'DeletingLoadBalancer', message: what });
  const runner = new StepRunner(deps, observed, listenerName);
  for (const step of steps) await runner.run(step, context);
  reports.progress(head, { reason: 'DeletedLoadBalancer', message: `Deleted load balancer ${id}` });
  // Once more: what is gone is not found any more, and that is certain.
  absentSinceMs.set(head.key, Number.NEGATIVE_INFINITY);
  return { kind: 'again', afterMs: 0 };
}

/** Returns the key of the security groups of a Service. */
export function groupsKeyOf(service: string): string {
  return `${service} security groups`;
}

/** Deletes the security groups of an owner, whose load balancer is gone. @returns how many; undefined: not known */
async function releaseGroups({ cloud }: ReleaseDeps, owner: string, context: CallContext): Promise<number | undefined> {
  const { groups, isConsistent } = await cloud.groups.find({ key: OWNER_TAG, value: owner }, context);
  if (!isConsistent) return undefined;
  for (const { securityGroupId } of groups) await deleteGroup(cloud, securityGroupId, context);
  return groups.length;
}
