import type { DirectWarmTargets } from '../journal/supply.ts';
import { type DirectEni, type DirectPoolState, isUsable } from './direct-pool.ts';

/** How many whole ENIs the node should have for its pool, and which it could give back. */
export type DirectDemand = {
  /** In use + cooling + waiting + warm, within the limit. ENIs that are marked are outside, as is who waits for one. */
  readonly desired: number;
  /** Here now, less those offered. */
  readonly bound: number;
  /** Free beyond the warm maximum or the limit, freed longest ago first. */
  readonly surplus: readonly DirectEni[];
  /** Of the surplus: so many are beyond the limit. */
  readonly excess: number;
};

/** Computes demand from the pool. Pure. */
export function directDemand(state: DirectPoolState, warm: DirectWarmTargets, waiting: number): DirectDemand {
  const all = [...state.values()];
  const pool = all.filter(({ claim }) => claim === undefined);
  const used = pool.filter(({ use }) => use !== 'free').length;
  const free = pool.filter((eni) => eni.use === 'free' && isUsable(eni));
  const bound = used + free.length;
  const needed = used + waiting;
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
