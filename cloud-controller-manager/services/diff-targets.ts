import type { Target } from '../../cloud/targets.ts';
import type { DesiredTarget } from './desired-load-balancer.ts';
import type { ListenerKey, StepTarget } from './load-balancer-step.ts';

type Place = Pick<DesiredTarget, 'ip' | 'port' | 'instanceId'>;
type Weighted = StepTarget & { readonly weight: number };

/** What makes the targets of one listener as they are desired. */
type TargetDiff = {
  /** Weights that fall to 0 while other targets serve. */
  readonly drainFirst: readonly Weighted[];
  /** What has weight 0 already, and had its time: it counts against the quota. */
  readonly deregisterFirst: readonly StepTarget[];
  readonly register: readonly Weighted[];
  /** Weights that are wrong and not to be 0. */
  readonly raise: readonly Weighted[];
  /** Weights that fall to 0 once the new targets serve. */
  readonly drainLast: readonly Weighted[];
  readonly deregister: readonly StepTarget[];
};

/** The targets of a listener as they are desired, and as they are. */
type TargetFacts = {
  /** Undefined: they stay as they are. */
  readonly desired: readonly DesiredTarget[] | undefined;
  readonly observed: readonly Target[];
  /** Most targets of the listener, those with weight 0 too. */
  readonly maxTargets?: number;
  readonly isDrained: (target: Target) => boolean;
};

/**
 * Compares the targets of one listener. A target that goes gets weight 0 before it is deregistered. At no step the last
 * one with a weight gets weight 0 while another one is still to be registered.
 */
export function diffTargets(
  listener: ListenerKey,
  { desired, observed, maxTargets = Number.POSITIVE_INFINITY, isDrained }: TargetFacts,
): TargetDiff {
  if (desired === undefined)
    return { drainFirst: [], deregisterFirst: [], register: [], raise: [], drainLast: [], deregister: [] };
  const wantedById = new Map(desired.map((target) => [idOf(target), target]));
  const presentById = new Map(observed.map((target) => [idOf(target), target]));
  const wantedWeightOf = (target: Target): number => {
    const wanted = wantedById.get(idOf(target))?.weight ?? 0;
    return wanted === 'asIs' ? target.weight : wanted;
  };
  const drains = observed
    .filter((target) => target.weight > 0 && wantedWeightOf(target) === 0)
    .map((target): Weighted => ({ ...refOf(listener, target), weight: 0 }));
  const gone = observed.filter((target) => !wantedById.has(idOf(target)) && isDrained({ ...target, weight: 0 }));
  const idle = gone.filter(({ weight }) => weight === 0);
  const missing = desired.flatMap((target): readonly Weighted[] => {
    const { weight } = target;
    const isMissing = weight !== 'asIs' && weight > 0 && !presentById.has(idOf(target));
    return isMissing ? [{ ...refOf(listener, target), weight }] : [];
  });
  const register = missing.slice(0, Math.max(0, maxTargets - observed.length + idle.length));
  const raise = observed
    .filter((target) => wantedWeightOf(target) > 0 && target.weight !== wantedWeightOf(target))
    .map((target) => ({ ...refOf(listener, target), weight: wantedWeightOf(target) }));
  const staysServed = observed.some((target) => target.weight > 0 && wantedWeightOf(target) > 0);
  // The quota allows no new one until an old one is deregistered: one has to serve meanwhile.
  const isFull = missing.length > 0 && register.length + raise.length === 0;
  const drainLast = isFull ? drains.slice(1) : drains;
  const kept = isFull && !staysServed ? drains[0] : undefined;
  return {
    drainFirst: staysServed ? drains : [],
    deregisterFirst: idle.map((target) => refOf(listener, target)),
    register,
    raise,
    drainLast: staysServed ? [] : drainLast,
    deregister: gone
      .filter((target) => target.weight > 0 && (kept === undefined || idOf(kept) !== idOf(target)))
      .map((target) => refOf(listener, target)),
  };
}

function refOf(listener: ListenerKey, { ip, port, instanceId }: Place): StepTarget {
  return { listener, ip, port, ...(instanceId === undefined ? {} : { instanceId }) };
}

function idOf({ ip, port }: Place): string {
  return `${ip}:${port}`;
}
