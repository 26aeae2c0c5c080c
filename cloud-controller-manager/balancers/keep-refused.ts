import type { CallContext } from '../../cloud/cloud.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { type BalancerOwner, ownerOf } from './balancer-owner.ts';
import type { Baseline } from './find-drift.ts';
import { followTargets } from './follow-targets.ts';
import type { BalancerKeeper } from './keep-balancer.ts';
import type { ListenerMemory } from './listener-memory.ts';
import type { Notice } from './notice.ts';
import { observeLoadBalancer } from './observe-load-balancer.ts';
import { allTargetsOf } from './observed-load-balancer.ts';
import type { OwnerAddresses } from './owner-addresses.ts';
import { readOwnerMark } from './owner-mark.ts';
import type { OwnerGates, OwnerPlan } from './owner-plan.ts';
import type { OwnerUnit } from './owner-unit.ts';

/** What refused owners are kept with. */
type RefusedParts = {
  readonly keeper: Pick<BalancerKeeper, 'keep' | 'refusedIps'>;
  readonly memory: Pick<ListenerMemory, 'claimOf'>;
  readonly gates: Pick<OwnerGates, 'note' | 'fail' | 'forget'>;
  readonly published: Pick<OwnerAddresses, 'isOld' | 'note'>;
};

/**
 * Keeps what is kept of an owner that is refused: its backends come and go, so the targets of the listeners that it has
 * follow them; and what is a target may not go to another Pod.
 */
export class RefusedKeeper<H extends BalancerOwner> {
  readonly #deps: Pick<ControllerDeps, 'cloud' | 'config'>;
  readonly #parts: RefusedParts;

  constructor(deps: Pick<ControllerDeps, 'cloud' | 'config'>, parts: RefusedParts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /** Leaves the load balancer of an owner as it is. @throws CloudError */
  async leave(unit: OwnerUnit<H>, notices: readonly Notice[], context: CallContext): Promise<void> {
    const { head, listenerName } = unit;
    const { memory, published } = this.#parts;
    const claim = memory.claimOf(listenerName);
    const loadBalancerId = claim.knownAt ?? readOwnerMark(head).loadBalancerId;
    unit.report(notices);
    if (loadBalancerId === undefined || !published.isOld(head.key)) return;
    const owner = ownerOf(this.#deps.config.clusterId, head.uid, head.kind);
    // All that it has is published, whatever it asks for.
    const view = await observeLoadBalancer(this.#deps, { owner, ...claim, loadBalancerId }, context);
    if (view.kind === 'absent') published.note(head.key, []);
    if (view.kind === 'found') published.note(head.key, allTargetsOf(view.observed), view.observed.unreadIds);
  }

  /**
   * Lets the targets of an owner follow its backends, where it has a load balancer and they are known, and leaves all else.
   * @param before what was in force when it was compared last; undefined: not known
   * @returns when to look again, infinite when nothing waits; and what is in force now, where that is known
   * @throws CloudError, KubeError, StepError
   */
  async follow(
    unit: OwnerUnit<H>,
    { notices, listeners, ruleListeners, unbound }: OwnerPlan,
    vpcId: string | undefined,
    context: CallContext,
    before?: Baseline,
  ): Promise<{ readonly waitMs: number; readonly baseline?: Baseline }> {
    const { gates, keeper, memory } = this.#parts;
    const { head, object, key } = unit;
    const loadBalancerId = memory.claimOf(unit.listenerName).knownAt ?? readOwnerMark(head).loadBalancerId;
    if (listeners === undefined || loadBalancerId === undefined || vpcId === undefined) {
      gates.note(key, 'refused');
      await this.leave(unit, notices, context);
      return { waitMs: Number.POSITIVE_INFINITY };
    }
    const desired = followTargets(unit.listenerName, loadBalancerId, { listeners, ruleListeners });
    const noteGates = (): void => {
      if (unbound === undefined) gates.forget(key);
      else gates.note(key, { desired, unbound, refused: keeper.refusedIps(head.key) });
      gates.fail(key);
    };
    noteGates();
    unit.report(notices);
    const kept = await keeper.keep(object, desired, vpcId, { ...context, priority: 'pod' }, before);
    noteGates();
    unit.report([...notices, ...kept.notices.filter(({ blocks }) => !blocks)]);
    return kept.kind === 'again' ? { waitMs: kept.afterMs } : kept;
  }
}
