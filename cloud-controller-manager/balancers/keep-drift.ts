import type { ControllerDeps } from '../controller/controller-deps.ts';
import { type BalancerOwner, type OwnerKind, type OwnerReports, ownerIdOf } from './balancer-owner.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import { withSourceGroup } from './diff-security-groups.ts';
import { type Drift, renderDrift } from './drift.ts';
import { type Baseline, findDrift, respectDrift } from './find-drift.ts';
import { type Notice, remark } from './notice.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';

/** What becomes of what another client changed. */
export type DriftDecision = {
  /** What is made of the load balancer. */
  readonly desired: DesiredLoadBalancer;
  readonly drifts: readonly Drift[];
  /** Those that stay. */
  readonly left: readonly Drift[];
  readonly notices: readonly Notice[];
};

/** Most drifts that a message names. */
const SHOWN = 10;

/** Finds what another client changed of load balancers; reports it, and by --load-balancer-drift leaves it. */
export class DriftKeeper {
  readonly #deps: Pick<ControllerDeps, 'config' | 'metrics'>;
  readonly #kind: OwnerKind;
  readonly #reports: Pick<OwnerReports, 'drift'>;

  constructor(deps: Pick<ControllerDeps, 'config' | 'metrics'>, kind: OwnerKind, reports: Pick<OwnerReports, 'drift'>) {
    this.#deps = deps;
    this.#kind = kind;
    this.#reports = reports;
  }

  /** Decides about what differs from the baseline. Without one nothing is known to be a change of others. */
  decide(
    head: BalancerOwner,
    desired: DesiredLoadBalancer,
    observed: ObservedLoadBalancer | undefined,
    baseline: Baseline | undefined,
  ): DriftDecision {
    const { config, metrics } = this.#deps;
    const drifts = observed === undefined || baseline === undefined ? [] : findDrift(baseline, observed);
    const fields = drifts.map(({ field }) => field);
    const isLeft = config.loadBalancerDrift === 'report';
    metrics.loadBalancers.onDriftLeft(ownerIdOf(head), isLeft ? fields : []);
    if (drifts.length === 0 || observed === undefined || baseline === undefined)
      return { desired, drifts, left: [], notices: [] };
    const shown = drifts.slice(0, SHOWN).map(renderDrift);
    const more = drifts.length > SHOWN ? [`${drifts.length - SHOWN} more`] : [];
    const what = `somebody else changed ${observed.balancer.loadBalancerId}: ${[...shown, ...more].join('; ')}`;
    if (isLeft) {
      const message = `${what}. It stays, as --load-balancer-drift=report says`;
      const respected = respectDrift(desired, withSourceGroup(baseline.desired, observed), drifts);
      return { desired: respected, drifts, left: drifts, notices: [remark('DriftFound', message)] };
    }
    metrics.loadBalancers.onDriftRepaired(fields);
    this.#reports.drift(head, `${what}. It is set again`);
    return { desired, drifts, left: [], notices: [] };
  }

  /** Decides about a load balancer that another client deleted. @returns why no other one is made; undefined: one is */
  decideLost(head: BalancerOwner, loadBalancerId: string): Notice | undefined {
    const { config, metrics } = this.#deps;
    const what = `somebody else deleted the load balancer ${loadBalancerId}`;
    if (config.loadBalancerDrift === 'report') {
      metrics.loadBalancers.onDriftLeft(ownerIdOf(head), ['loadBalancer']);
      return remark('DriftFound', `${what}. No other one is made, as --load-balancer-drift=report says`);
    }
    metrics.loadBalancers.onDriftRepaired(['loadBalancer']);
    this.#reports.drift(head, `${what}. Another one is made, with another address`);
    return undefined;
  }

  /** Forgets an owner. */
  forget(key: string): void {
    this.#deps.metrics.loadBalancers.onDriftLeft(ownerIdOf({ kind: this.#kind, key }), []);
  }
}
