import type { WarmTargets } from '../supply/supply.ts';
import type { PoolAddress, PoolDemand, PoolState } from './pool-state.ts';

/**
 * Computes how many addresses the node should have and which it could give back. Pure.
 * Cooling addresses count as used, or a node that restarts many Pods would starve. Counts IPv4 addresses, or IPv6 where
 * there are no others: an IPv6 partner comes and goes with its IPv4 address. What a draining ENI has free counts as gone.
 */
export function demand(state: PoolState, warm: WarmTargets): PoolDemand {
  const all = [...state.addresses.values()];
  const family = all.some((address) => address.family === 4) ? 4 : 6;
  const counted = all.filter((address) => address.family === family);
  const used = counted.filter((address) => address.state === 'leased' || address.state === 'cooling').length;
  const free = counted.filter((address) => address.state === 'free' && state.enis.get(address.eniId)?.serves === true);
  const bound = used + free.length;
  const limit = warm.limit ?? Number.POSITIVE_INFINITY;
  const ready = Math.min(Math.max(free.length, warm.min), warm.max);
  const surplusCount = Math.min(free.length, Math.max(0, free.length - warm.max, bound - limit));
  return {
    desired: Math.min(used + ready, limit),
    used,
    bound,
    surplus: withPartners(state, emptiestFirst(all, free)).slice(0, surplusCount).flat(),
  };
}

/** Orders so that the ENI with the fewest users empties first and can be given back as a whole. */
function emptiestFirst(all: readonly PoolAddress[], free: readonly PoolAddress[]): readonly PoolAddress[] {
  const users = new Map<string, number>();
  for (const { state, eniId } of all) {
    if (state === 'leased' || state === 'cooling') users.set(eniId, (users.get(eniId) ?? 0) + 1);
  }
  const usersOf = (address: PoolAddress) => users.get(address.eniId) ?? 0;
  return free.toSorted(
    (a, b) =>
      usersOf(a) - usersOf(b) ||
      compare(a.eniId, b.eniId) ||
      (a.freedAtMs ?? 0) - (b.freedAtMs ?? 0) ||
      compare(a.ip, b.ip),
  );
}

/** Adds the IPv6 partner of each; an address whose partner is in use cannot go. */
function withPartners(state: PoolState, candidates: readonly PoolAddress[]): readonly (readonly PoolAddress[])[] {
  return candidates.flatMap((address) => {
    const partner = address.pairedIp === undefined ? undefined : state.addresses.get(address.pairedIp);
    if (partner === undefined) return [[address]];
    return partner.state === 'free' ? [[address, partner]] : [];
  });
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
