import type { Target } from '../../cloud/targets.ts';
import type { DesiredTarget } from './desired-targets.ts';
import type { StepTarget } from './load-balancer-step.ts';
import type { TargetPlace } from './target-place.ts';

type Place = Pick<DesiredTarget, 'ip' | 'port' | 'instanceId'>;
type Weighted = StepTarget & { readonly weight: number };

/** What makes the targets of one listener or rule as they are desired. */
export type TargetDiff = {
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
  /** What is not asked for any more, and keeps its weight until a target that is asked for serves. */
  readonly held: readonly Target[];
};

/** The targets of a listener as they are desired, and as they are. */
export type TargetFacts = {
  /** Undefined: they stay as they are. */
  readonly desired: readonly DesiredTarget[] | undefined;
  readonly observed: readonly Target[];
  /** Addresses whose targets, where they have a weight, stay as they are though they are not asked for. */
  readonly keptIps?: readonly string[];
  /** Whether targets that are instances, and not asked for, stay as they are. */
  readonly keepsNodes?: boolean;
  /** Most targets of the listener, those with weight 0 too. */
  readonly maxTargets?: number;
  readonly isDrained: (target: Target) => boolean;
  /** Whether a registered target is known to serve; absent: each one does, and those that are registered now. */
  readonly serves?: (target: Target) => boolean;
  /** Whether one that is asked for is not to be registered now; it stays one that is to come. Absent: none. */
  readonly isHeldBack?: (target: StepTarget) => boolean;
};

/**
 * Compares the targets of one listener or rule. A target that goes gets weight 0 before it is deregistered. At no step the last
 * one with a weight gets weight 0 while another one is still to be registered.
 */
export function diffTargets(
  place: TargetPlace,
  {
    desired,
    observed,
    keptIps = [],
    keepsNodes,
    maxTargets = Number.POSITIVE_INFINITY,
    isDrained,
    serves,
    isHeldBack,
  }: TargetFacts,
): TargetDiff {
  if (desired === undefined)
    return { drainFirst: [], deregisterFirst: [], register: [], raise: [], drainLast: [], deregister: [], held: [] };
  const wantedById = new Map(desired.map((target) => [idOf(target), target]));
  const presentById = new Map(observed.map((target) => [idOf(target), target]));
  const kept = new Set(keptIps);
  const stays = (target: Target): boolean =>
    (keepsNodes === true && target.instanceId !== undefined) || (target.weight > 0 && kept.has(target.ip));
  const wantedWeightOf = (target: Target): number => {
    const wanted = wantedById.get(idOf(target))?.weight ?? (stays(target) ? 'asIs' : 0);
    return wanted === 'asIs' ? target.weight : wanted;
  };
  const drains = observed.filter((target) => target.weight > 0 && wantedWeightOf(target) === 0);
  const gone = observed.filter(
    (target) => !wantedById.has(idOf(target)) && !stays(target) && isDrained({ ...target, weight: 0 }),
  );
  const toCome = desired.flatMap((target): readonly Weighted[] => {
    const { weight } = target;
    const isMissing = weight !== 'asIs' && weight > 0 && !presentById.has(idOf(target));
    return isMissing ? [{ ...refOf(place, target), weight }] : [];
  });
  const missing = toCome.filter((target) => isHeldBack?.(target) !== true);
  const idle = gone.filter(({ weight }) => weight === 0);
  const free = maxTargets - observed.length + idle.length;
  // They would stay as long as their endpoints are there, which is not known to end.
  const spent = observed
    .filter((target) => wantedById.get(idOf(target))?.weight === 0 && target.weight === 0 && isDrained(target))
    .slice(0, Math.max(0, missing.length - free));
  const register = missing.slice(0, Math.max(0, free + spent.length));
  const raise = observed
    .filter((target) => wantedWeightOf(target) > 0 && target.weight !== wantedWeightOf(target))
    .map((target) => ({ ...refOf(place, target), weight: wantedWeightOf(target) }));
  const staysServed = observed.some((target) => target.weight > 0 && wantedWeightOf(target) > 0);
  // The quota allows no new one until an old one is deregistered: one has to serve meanwhile.
  const isFull = missing.length > 0 && register.length + raise.length === 0;
  const isProven = observed.some(
    (target) => target.weight > 0 && wantedWeightOf(target) > 0 && serves?.(target) !== false,
  );
  const hasSuccessor = toCome.length > 0 || observed.some((target) => wantedWeightOf(target) > 0);
  // One with an entry of weight 0 ends by itself: it does not wait for others.
  const isHeld = serves !== undefined && hasSuccessor && !isProven && (!isFull || staysServed);
  const held = isHeld ? drains.filter((target) => !wantedById.has(idOf(target))) : [];
  const now = drains.filter((target) => !held.includes(target));
  // One whose endpoint is still there: what is gone is deregistered, so that a new one fits.
  const last = isFull && !staysServed ? (now.find((target) => wantedById.has(idOf(target))) ?? now[0]) : undefined;
  const zero = (some: readonly Target[]): readonly Weighted[] =>
    some.map((target) => ({ ...refOf(place, target), weight: 0 }));
  return {
    drainFirst: staysServed ? zero(now) : [],
    deregisterFirst: [...idle, ...spent].map((target) => refOf(place, target)),
    register,
    raise,
    drainLast: staysServed ? [] : zero(now.filter((target) => target !== last)),
    deregister: gone
      .filter((target) => target.weight > 0 && target !== last && !held.includes(target))
      .map((target) => refOf(place, target)),
    held,
  };
}

function refOf(place: TargetPlace, { ip, port, instanceId }: Place): StepTarget {
  return { place, ip, port, ...(instanceId === undefined ? {} : { instanceId }) };
}

function idOf({ ip, port }: Place): string {
  return `${ip}:${port}`;
}
