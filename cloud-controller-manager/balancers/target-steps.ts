import { TARGETS_PER_CHANGE, type Target } from '../../cloud/targets.ts';
import type { DesiredTargets } from './desired-targets.ts';
import type { TargetDiff, TargetFacts } from './diff-targets.ts';
import type { ContentStep, LoadBalancerStep, StepTarget } from './load-balancer-step.ts';

/** What is known of targets beside what the cloud lists. */
export type KnownOfTargets = Pick<TargetFacts, 'isDrained' | 'serves' | 'isHeldBack'> & {
  /** Whether rules that go have waited long enough for others to serve; absent: they have not. */
  readonly hasWaited?: boolean;
};

/** Steps of targets: those that come before a listener or rule is made, and those that come afterwards. */
type TargetSteps = { readonly before: readonly ContentStep[]; readonly after: readonly ContentStep[] };

type Weighted = Extract<LoadBalancerStep, { readonly kind: 'setWeights' }>['targets'];

/** Orders what is done about the targets of all listeners or rules of a load balancer. */
export function orderTargetSteps(diffs: readonly TargetDiff[]): TargetSteps {
  return {
    before: weightSteps(diffs.flatMap(({ drainFirst }) => drainFirst)),
    after: [
      ...deregistrations(diffs.flatMap(({ deregisterFirst }) => deregisterFirst)),
      ...weightSteps(diffs.flatMap(({ raise }) => raise)),
      ...weightedSteps(
        'register',
        diffs.flatMap(({ register }) => register),
      ),
      ...weightSteps(diffs.flatMap(({ drainLast }) => drainLast)),
      ...deregistrations(diffs.flatMap(({ deregister }) => deregister)),
    ],
  };
}

/** Collects what the targets of one listener or rule are compared by. */
export function targetFactsOf(
  { targets: desired, keptIps, keepsNodes, maxTargets }: DesiredTargets,
  observed: readonly Target[],
  { isDrained, serves, isHeldBack }: KnownOfTargets,
): TargetFacts {
  return {
    ...{ desired, observed, isDrained },
    ...(serves === undefined ? {} : { serves }),
    ...(isHeldBack === undefined ? {} : { isHeldBack }),
    ...(keptIps === undefined ? {} : { keptIps }),
    ...(keepsNodes === undefined ? {} : { keepsNodes }),
    ...(maxTargets === undefined ? {} : { maxTargets }),
  };
}

/** Divides a list into parts of at most `size`. */
export function batches<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, at) => items.slice(at * size, (at + 1) * size));
}

function weightSteps(targets: Weighted): readonly ContentStep[] {
  return weightedSteps('setWeights', targets);
}

function weightedSteps(kind: 'register' | 'setWeights', targets: Weighted): readonly ContentStep[] {
  return batches(targets, TARGETS_PER_CHANGE).map((batch) => ({ kind, targets: batch }));
}

function deregistrations(targets: readonly StepTarget[]): readonly ContentStep[] {
  return batches(targets, TARGETS_PER_CHANGE).map((batch) => ({ kind: 'deregister', targets: batch }));
}
