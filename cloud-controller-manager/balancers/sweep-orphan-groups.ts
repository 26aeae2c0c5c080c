import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import { areTooMany, OrphanTracker } from '../../cloud/orphan-tracker.ts';
import type { SecurityGroup } from '../../cloud/security-groups.ts';
import { CLUSTER_TAG } from '../../crd/cloud-tags.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { orphanUidOf, uidOf } from './find-orphan-balancers.ts';
import { deleteGroup } from './run-step.ts';

/** What a sweep of load balancers found. */
type SweptCluster = {
  readonly loadBalancers: readonly LoadBalancer[];
  /** Of all Services. */
  readonly uids: ReadonlySet<string>;
  /** Wall clock. */
  readonly nowMs: number;
  /** Whether orphans are deleted at all. */
  readonly mayDelete: boolean;
};

/** An orphan is found in two sweeps, so long apart. */
const APART_MS = 600_000;

/** Finds security groups that were made for source ranges of Services that do not exist any more. */
export class OrphanGroupSweep {
  readonly #deps: ControllerDeps;
  readonly #tracker = new OrphanTracker<SecurityGroup>(({ securityGroupId }) => securityGroupId);

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
  }

  /**
   * Reports orphans, or deletes them with --delete-orphan-load-balancers. One that a load balancer has goes after that. A fault
   * of the cloud is logged. @returns whether one waits for its second sweep
   */
  async sweep(swept: SweptCluster, context: CallContext): Promise<boolean> {
    const { clock, log } = this.#deps;
    try {
      const orphans = await this.#find(swept, context);
      if (orphans === undefined) return false;
      const due = this.#tracker.note(orphans, clock.monotonicMs(), APART_MS);
      let left = swept.mayDelete ? this.#deps.config.orphanBalancerLimit : 0;
      for (const group of due) {
        await this.#treat(group, left > 0, context);
        left -= 1;
      }
      return due.length < orphans.length;
    } catch (error) {
      if (!isCloudError(error)) throw error;
      context.signal.throwIfAborted();
      log.warn('orphaned security groups were not looked for', { error });
      return false;
    }
  }

  /** Undefined: what was found is not plausible. */
  async #find(
    { loadBalancers, uids, nowMs }: SweptCluster,
    context: CallContext,
  ): Promise<readonly SecurityGroup[] | undefined> {
    const { cloud, config, log } = this.#deps;
    const { clusterId } = config;
    const { groups, isConsistent } = await cloud.groups.find({ key: CLUSTER_TAG, value: clusterId }, context);
    if (!isConsistent) return undefined;
    const bound = new Set(loadBalancers.flatMap(({ securityGroupIds }) => securityGroupIds));
    const own = groups.filter((group) => uidOf(clusterId, group, 'service') !== undefined);
    const orphans = own.filter(
      (group) =>
        !bound.has(group.securityGroupId) && orphanUidOf(clusterId, group, 'service', uids, nowMs) !== undefined,
    );
    if (!areTooMany(orphans.length, own.length)) return orphans;
    this.#tracker.clear();
    log.error('too many security groups seem to be orphans', { orphans: orphans.length, all: own.length });
    return undefined;
  }

  async #treat({ securityGroupId, name }: SecurityGroup, mayDelete: boolean, context: CallContext): Promise<void> {
    const { cloud, config, events, log } = this.#deps;
    const what = `the security group ${securityGroupId} (${name}) was made for source ranges of a Service that does not exist any more`;
    const record = (
      type: 'Normal' | 'Warning',
      reason: 'OrphanLoadBalancer' | 'OrphanLoadBalancerDeleted',
      end: string,
    ) =>
      events.record({
        involved: { apiVersion: 'v1', kind: 'Namespace', name: config.namespace },
        ...{ type, reason, message: `${what}; ${end}` },
      });
    if (!mayDelete) {
      record('Warning', 'OrphanLoadBalancer', 'delete it in the console, or set --delete-orphan-load-balancers');
      return;
    }
    try {
      await deleteGroup(cloud, securityGroupId, context);
    } catch (error) {
      if (!isCloudError(error)) throw error;
      context.signal.throwIfAborted();
      record('Warning', 'OrphanLoadBalancer', `it could not be deleted: ${error.message}; it is tried again`);
      return;
    }
    log.info('an orphaned security group is deleted', { securityGroupId });
    record('Normal', 'OrphanLoadBalancerDeleted', 'it was deleted, as --delete-orphan-load-balancers says');
  }
}
