import type { Target } from '../../cloud/targets.ts';
import type { DesiredTarget } from './desired-load-balancer.ts';
import type { ListenerKey, StepTarget } from './load-balancer-step.ts';

type Weighted = StepTarget & { readonly weight: number };

/** What makes the targets of one listener as they are desired. */
type TargetDiff = {
  /** Weights that fall to 0 while other targets serve. */
  readonly drainFirst: readonly Weighted[];
  readonly register: readonly Weighted[];
  /** Weights that are wrong and not to be 0. */
  readonly raise: readonly Weighted[];
  /** Weights that fall to 0 once the new targets serve. */
  readonly drainLast: readonly Weighted[];
  readonly deregister: readonly StepTarget[];
};

/**
 * Compares the targets of one listener. A target that goes gets weight 0 before it is deregistered.
 * @param desired undefined: they stay as they are
 */
export function diffTargets(
  listener: ListenerKey,
  desired: readonly DesiredTarget[] | undefined,
  observed: readonly Target[],
  isDrained: (target: Target) => boolean,
): TargetDiff {
  if (desired === undefined) return { drainFirst: [], register: [], raise: [], drainLast: [], deregister: [] };
  const wantedById = new Map(desired.map((target) => [idOf(target), target]));
  const presentById = new Map(observed.map((target) => [idOf(target), target]));
  const wantedWeightOf = (target: Target): number => wantedById.get(idOf(target))?.weight ?? 0;
  const drains = observed
    .filter((target) => target.weight > 0 && wantedWeightOf(target) === 0)
    .map((target): Weighted => ({ ...refOf(listener, target), weight: 0 }));
  const staysServed = observed.some((target) => target.weight > 0 && wantedWeightOf(target) > 0);
  return {
    drainFirst: staysServed ? drains : [],
    register: desired
      .filter((target) => target.weight > 0 && !presentById.has(idOf(target)))
      .map((target) => ({ ...refOf(listener, target), weight: target.weight })),
    raise: observed
      .filter((target) => wantedWeightOf(target) > 0 && target.weight !== wantedWeightOf(target))
      .map((target) => ({ ...refOf(listener, target), weight: wantedWeightOf(target) })),
    drainLast: staysServed ? [] : drains,
    deregister: observed
      .filter((target) => !wantedById.has(idOf(target)) && isDrained({ ...target, weight: 0 }))
      .map((target) => refOf(listener, target)),
  };
}

function refOf(listener: ListenerKey, { ip, port, instanceId }: DesiredTarget | Target): StepTarget {
  return { listener, ip, port, ...(instanceId === undefined ? {} : { instanceId }) };
}

function idOf({ ip, port }: DesiredTarget | Target): string {
  return `${ip}:${port}`;
}
