import type { ControllerDeps } from '../controller/controller-deps.ts';
import { type BalancerOwner, type OwnerKind, type OwnerReports, ownerIdOf } from './balancer-owner.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import { withSourceGroup } from './diff-security-groups.ts';
import { type Drift, renderDrift } from './drift.ts';
import { type Baseline, findDrift, findNameDrift, respectDrift } from './find-drift.ts';
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

/** What is being set again. */
type Repair = {
  readonly baseline: Baseline | undefined;
  readonly drifts: readonly Drift[];
  readonly what: string;
  readonly isReported: boolean;
};

/** Most drifts that a message names. */
const SHOWN = 10;

/** Finds what another client changed of load balancers; reports it, and by --load-balancer-drift leaves it. */
export class DriftFinder {
  readonly #deps: Pick<ControllerDeps, 'config' | 'metrics'>;
  readonly #kind: OwnerKind;
  readonly #reports: Pick<OwnerReports, 'drift'>;
  /** By owner. */
  readonly #repairs = new Map<string, Repair>();

  constructor(deps: Pick<ControllerDeps, 'config' | 'metrics'>, kind: OwnerKind, reports: Pick<OwnerReports, 'drift'>) {
    this.#deps = deps;
    this.#kind = kind;
    this.#reports = reports;
  }

  /** Decides about what differs from the baseline. Without one nothing but a name is known to be a change of others. */
  decide(
    head: BalancerOwner,
    desired: DesiredLoadBalancer,
    observed: ObservedLoadBalancer | undefined,
    baseline: Baseline | undefined,
  ): DriftDecision {
    const { config, metrics } = this.#deps;
    const all = observed === undefined ? [] : driftOf(baseline, observed);
    const drifts = desired.keepsNames === true ? all.filter(({ field }) => field !== 'name') : all;
    const fields = drifts.map(({ field }) => field);
    const isLeft = config.loadBalancerDrift === 'report';
    metrics.driftsLeft.set(ownerIdOf(head), isLeft ? fields : []);
    if (drifts.length === 0 || observed === undefined) return { desired, drifts, left: [], notices: [] };
    const what = textOf(observed, drifts);
    if (isLeft) {
      const message = `${what}. It stays, as --load-balancer-drift=report says`;
      const before = withSourceGroup(baseline?.desired ?? desired, observed);
      const respected = respectDrift(desired, before, drifts);
      return { desired: respected, drifts, left: drifts, notices: [remark('DriftFound', message)] };
    }
    const before = this.#repairs.get(head.key);
    const isReported = before?.isReported === true && before.what === what;
    this.#repairs.set(head.key, { baseline, drifts, what, isReported });
    return { desired, drifts, left: [], notices: [] };
  }

  /** Decides once more in a later round: what differs after a change of ours is no change of others, but for a name. */
  decideAgain(head: BalancerOwner, before: DriftDecision, observed: ObservedLoadBalancer | undefined): DriftDecision {
    if (before.desired.keepsNames === true) return before;
    const isNew = ({ of }: Drift): boolean => before.drifts.every((one) => one.field !== 'name' || one.of !== of);
    if (observed === undefined || !findNameDrift(observed).some(isNew)) return before;
    const repair = this.#repairs.get(head.key);
    const now = this.decide(head, before.desired, observed, undefined);
    const drifts = [...before.drifts, ...now.drifts];
    if (repair !== undefined) this.#repairs.set(head.key, { ...repair, drifts, what: textOf(observed, drifts) });
    return {
      desired: now.desired,
      drifts,
      left: [...before.left, ...now.left],
      notices: [...before.notices, ...now.notices],
    };
  }

  /** Reports what became of what was to be set again, now that nothing is left to do. */
  reportOutcome(head: BalancerOwner, observed: ObservedLoadBalancer): void {
    const repair = this.#repairs.get(head.key);
    if (repair === undefined) return;
    this.#repairs.delete(head.key);
    const { baseline, drifts, what } = repair;
    const now = driftOf(baseline, observed).filter((one) => !isDraining(one));
    const isLeft = (drift: Drift): boolean => now.some(({ field, of }) => field === drift.field && of === drift.of);
    const left = drifts.filter(isLeft);
    for (const { field } of drifts.filter((one) => !isLeft(one))) this.#deps.metrics.driftsRepaired.inc({ field });
    const outcome =
      left.length === 0
        ? 'It is set again'
        : `Not set again, as it is not asked for any more, or as other events say why: ${listOf(left)}`;
    this.#reports.drift(head, `${what}. ${outcome}`);
  }

  /** Reports what is to be set again and is not yet, once. */
  reportOpen(head: BalancerOwner): void {
    const repair = this.#repairs.get(head.key);
    if (repair === undefined || repair.isReported) return;
    this.#repairs.set(head.key, { ...repair, isReported: true });
    this.#reports.drift(head, `${repair.what}. It is not set again yet: other events say what it waits for`);
  }

  /** Decides about a load balancer that another client deleted. @returns why no other one is made; undefined: one is */
  decideLost(head: BalancerOwner, loadBalancerId: string): Notice | undefined {
    const { config, metrics } = this.#deps;
    const what = `somebody else deleted the load balancer ${loadBalancerId}`;
    if (config.loadBalancerDrift === 'report') {
      metrics.driftsLeft.set(ownerIdOf(head), ['loadBalancer']);
      return remark('DriftFound', `${what}. No other one is made, as --load-balancer-drift=report says`);
    }
    metrics.driftsRepaired.inc({ field: 'loadBalancer' });
    this.#reports.drift(head, `${what}. Another one is made, with another address`);
    return undefined;
  }

  /** Forgets an owner. */
  forget(key: string): void {
    this.#repairs.delete(key);
    this.#deps.metrics.driftsLeft.set(ownerIdOf({ kind: this.#kind, key }), []);
  }
}

function driftOf(baseline: Baseline | undefined, observed: ObservedLoadBalancer): readonly Drift[] {
  return baseline === undefined ? findNameDrift(observed) : findDrift(baseline, observed);
}

/** Reports whether a target that another client registered has no connections any more: it is deregistered in a minute. */
function isDraining({ field, is }: Drift): boolean {
  return (field === 'target' || field === 'weight') && is === '0';
}

function textOf({ balancer }: ObservedLoadBalancer, drifts: readonly Drift[]): string {
  return `somebody else changed ${balancer.loadBalancerId}: ${listOf(drifts)}`;
}

function listOf(drifts: readonly Drift[]): string {
  const shown = drifts.slice(0, SHOWN).map(renderDrift);
  const more = drifts.length > SHOWN ? [`${drifts.length - SHOWN} more`] : [];
  return [...shown, ...more].join('; ');
}
