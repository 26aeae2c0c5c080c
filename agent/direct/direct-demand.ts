import type { DirectWarmTargets } from '../journal/supply.ts';
import { boundByPods } from '../pool/brief.ts';
import { type DirectEni, type DirectPoolState, isUsable } from './direct-pool.ts';

/** How many whole ENIs the pool of the node should have, and which it could release. */
type DirectDemand = {
  /** In use + cooling + still registered with load balancers + waiting + warm, within the limit. ENIs with a claim, and who waits for one, do not count. */
  readonly desired: number;
  /** Number that is here now, without those offered. */
  readonly bound: number;
  /** Free ENIs beyond the warm maximum or the limit; those freed longest ago first. */
  readonly surplus: readonly DirectEni[];
  /** Number of the surplus that exceeds the limit. */
  readonly excess: number;
};

/** Demand that the pool does not contain. */
type DirectOutsideDemand = {
  /** Pods and ADDs that need an ENI of the pool and have none. */
  readonly waiting: number;
  /** Allocatable Pods of the Node; absent while it was not read. */
  readonly maxPods?: number | undefined;
};

/** Computes the demand for whole ENIs from the pool. */
export function directDemand(
  state: DirectPoolState,
  warm: DirectWarmTargets,
  { waiting, maxPods }: DirectOutsideDemand,
): DirectDemand {
  const all = [...state.values()];
  const pool = all.filter(({ claim }) => claim === undefined);
  const isWaiting = ({ use, registered }: DirectEni) => use === 'free' && registered === true;
  const isBriefRest = ({ use, isBrief }: DirectEni) => use === 'cooling' && isBrief === true;
  const used = pool.filter((eni) => (eni.use !== 'free' && !isBriefRest(eni)) || isWaiting(eni)).length;
  const leased = pool.filter(({ use }) => use === 'leased').length;
  const heldBack = pool.filter(isWaiting).length;
  // One that rests briefly serves the next Pod if no other is free: it is one of the warm ones.
  const brief = pool.filter((eni) => isBriefRest(eni) && isUsable(eni)).length;
  const free = pool.filter((eni) => eni.use === 'free' && isUsable(eni) && !isWaiting(eni));
  const bound = used + free.length + brief;
  const needed = boundByPods(used - heldBack + waiting, leased + waiting, maxPods) + heldBack;
  const limit = Math.max(
    0,
    (warm.limit ?? Number.POSITIVE_INFINITY) - (warm.awaited ?? 0) - (all.length - pool.length),
  );
  const ready = Math.min(Math.max(bound - needed, warm.min), warm.max);
  const excess = Math.min(free.length, Math.max(0, bound - limit));
  const beyondWarm = Math.min(free.length, Math.max(0, bound - needed - warm.max));
  const byAge = free.toSorted((a, b) => (a.freedAtMs ?? 0) - (b.freedAtMs ?? 0) || (a.eniId < b.eniId ? -1 : 1));
  return {
    desired: Math.min(needed + ready, limit),
    bound,
    surplus: byAge.slice(0, Math.max(excess, beyondWarm)),
    excess,
  };
}
