import type { CallContext } from '../../cloud/cloud.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { Baseline } from './find-drift.ts';
import type { BalancerKeeper } from './keep-balancer.ts';
import type { GateKeeper } from './keep-gates.ts';
import type { Notice } from './notice.ts';
import { observeLoadBalancer } from './observe-load-balancer.ts';
import { followTargets, listenerNameOf, ownerOf } from './plan-load-balancer.ts';
import type { AddressPublisher } from './publish-addresses.ts';
import { readRecord } from './read-record.ts';
import type { ServiceHead } from './read-service.ts';
import type { ServicePlan } from './service-planner.ts';
import type { ServiceReports } from './service-reports.ts';

/** What refused Services are kept with. */
type RefusedParts = {
  readonly keeper: Pick<BalancerKeeper, 'keep' | 'refusedIps'>;
  readonly reports: Pick<ServiceReports, 'problems'>;
  readonly gates: Pick<GateKeeper, 'note' | 'fail' | 'forget'>;
  readonly published: Pick<AddressPublisher, 'isOld' | 'note'>;
};

/**
 * Keeps what is kept of a Service that is refused: its backends come and go, so the targets of the listeners that it has
 * follow them; and what is a target may not go to another Pod.
 */
export class RefusedKeeper {
  readonly #deps: Pick<ControllerDeps, 'cloud' | 'config'>;
  readonly #parts: RefusedParts;

  constructor(deps: Pick<ControllerDeps, 'cloud' | 'config'>, parts: RefusedParts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /** Leaves the load balancer of a Service as it is. @throws CloudError */
  async leave(head: ServiceHead, notices: readonly Notice[], context: CallContext): Promise<void> {
    const { clusterId } = this.#deps.config;
    const { loadBalancerId } = readRecord(head);
    const { reports, published } = this.#parts;
    reports.problems(head, notices);
    if (loadBalancerId === undefined || !published.isOld(head.key)) return;
    const names = { owner: ownerOf(clusterId, head.uid), listenerName: listenerNameOf({ clusterId, service: head }) };
    const view = await observeLoadBalancer(this.#deps, { ...names, loadBalancerId }, context);
    if (view.kind !== 'pending') published.note(head.key, view.kind === 'found' ? view.observed.targets : []);
  }

  /**
   * Lets the targets of a Service follow its backends, where it has a load balancer and they are known, and leaves all else.
   * @param before what was in force when it was compared last; undefined: not known
   * @returns when to look again, infinite when nothing waits; and what is in force now, where that is known
   * @throws CloudError, KubeError, StepError
   */
  async follow(
    object: KubeObject,
    head: ServiceHead,
    { notices, listeners, unbound }: ServicePlan,
    vpcId: string | undefined,
    context: CallContext,
    before?: Baseline,
  ): Promise<{ readonly waitMs: number; readonly baseline?: Baseline }> {
    const { gates, keeper, reports } = this.#parts;
    const { loadBalancerId } = readRecord(head);
    if (listeners === undefined || loadBalancerId === undefined || vpcId === undefined) {
      gates.note(head.key, 'refused');
      await this.leave(head, notices, context);
      return { waitMs: Number.POSITIVE_INFINITY };
    }
    const { clusterId } = this.#deps.config;
    const desired = followTargets({ clusterId, service: head }, loadBalancerId, listeners);
    const noteGates = (): void => {
      if (unbound === undefined) gates.forget(head.key);
      else gates.note(head.key, { desired, unbound, refused: keeper.refusedIps(head.key) });
      gates.fail(head.key);
    };
    noteGates();
    reports.problems(head, notices);
    const kept = await keeper.keep(object, desired, vpcId, { ...context, priority: 'pod' }, before);
    noteGates();
    reports.problems(head, [...notices, ...kept.notices.filter(({ blocks }) => !blocks)]);
    return kept.kind === 'again' ? { waitMs: kept.afterMs } : kept;
  }
}
