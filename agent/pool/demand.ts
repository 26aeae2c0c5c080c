import type { Family } from '../../dataplane/ip-prefix.ts';
import { compareTexts } from '../../runtime/compare-texts.ts';
import type { WarmTargets } from '../journal/supply.ts';
import { coolingDemand } from './brief.ts';
import { isBriefSpare } from './choose.ts';
import type { PoolAddress, PoolDemand, PoolState } from './pool-state.ts';
import { isHeldBack } from './registered.ts';

/** Demand that the pool does not contain. */
export type OutsideDemand = {
  /** Pods and ADDs that need an address and have none. */
  readonly waiting: number;
  /** At least so many addresses count as in use. */
  readonly floor: number;
  /** Allocatable Pods of the Node; absent while it was not read. */
  readonly maxPods?: number | undefined;
  /** Milliseconds since boot; absent: where load balancers count, no rest is taken to be old enough to end early. */
  readonly nowMs?: number;
};

const NO_OUTSIDE_DEMAND: OutsideDemand = { waiting: 0, floor: 0 };

/**
 * Computes how many addresses the node should have and which it could release. Cooling addresses count as used, or a
 * node that restarts many Pods would run out; as demand they count up to the number of Pods that the node can run. One
 * whose sandbox failed counts as free while it can be given. Addresses that load balancers still have as targets count
 * as used. Counts IPv4 addresses, or IPv6 where there are no others: an IPv6 partner comes and goes with its IPv4
 * address. Free addresses of a draining ENI do not count. Static addresses are left out, and the part of the limit that
 * they use is not available to the pool.
 */
export function demand(state: PoolState, warm: WarmTargets, outside?: OutsideDemand): PoolDemand {
  const { desired, used, bound, surplus } = demandInUnits(state, warm, outside);
  return { desired, used, bound, surplus: surplus.flat() };
}

/**
 * Does as `demand`, with the surplus in units that are released together: an address and its partner of the other
 * family. The first `excess` of them exceed the node's limit.
 */
export function demandInUnits(
  state: PoolState,
  warm: WarmTargets,
  { waiting, floor, maxPods, nowMs = 0 }: OutsideDemand = NO_OUTSIDE_DEMAND,
): Omit<PoolDemand, 'surplus'> & {
  readonly surplus: readonly (readonly PoolAddress[])[];
  readonly excess: number;
  /** Addresses that Pods could have at once. */
  readonly free: number;
} {
  const all = [...state.addresses.values()];
  const family = countedFamily(state);
  const counted = all.filter((address) => address.family === family && address.claim === undefined);
  const spare = counted.filter((address) => isBriefSpare(state, address, nowMs)).length;
  const used = counted.filter((address) => isOccupied(state, address)).length - spare;
  const cooling = counted.filter((address) => address.state === 'cooling').length - spare;
  const free = counted.filter((address) => isFree(state, address) && state.enis.get(address.eniId)?.serves === true);
  const bound = used + free.length + spare;
  const needed = Math.max(used - cooling + coolingDemand(cooling, maxPods) + waiting, floor);
  const limit = Math.max(0, (warm.limit ?? Number.POSITIVE_INFINITY) - (warm.keptPlaces ?? 0));
  const ready = Math.min(Math.max(bound - needed, warm.min), warm.max);
  const excess = Math.min(free.length, Math.max(0, bound - limit));
  // What cools beyond the demand is no reason to give a free one back.
  const beyondWarm = Math.min(free.length, Math.max(0, bound - Math.max(used + waiting, floor) - warm.max));
  return {
    desired: Math.min(needed + ready, limit),
    used,
    bound,
    free: free.length,
    surplus: withPartners(state, emptiestFirst(state, free)).slice(0, Math.max(excess, beyondWarm)),
    excess,
  };
}

/** Returns the family in which addresses are counted: IPv4, or IPv6 where there are no others. */
export function countedFamily(state: PoolState): Family {
  for (const { family } of state.addresses.values()) if (family === 4) return 4;
  return 6;
}

/**
 * Orders free addresses for release: on the ENI with the fewest users first, of those on the one with the fewest free
 * addresses. So ENIs become empty as a whole, and warm addresses stay on as few ENIs as possible.
 */
function emptiestFirst(state: PoolState, free: readonly PoolAddress[]): readonly PoolAddress[] {
  const users = new Map<string, number>();
  for (const address of state.addresses.values()) {
    const { eniId, claim } = address;
    // An ENI is also in use by the static addresses on it.
    if (isOccupied(state, address) || claim !== undefined) users.set(eniId, (users.get(eniId) ?? 0) + 1);
  }
  const usersOf = (address: PoolAddress) => users.get(address.eniId) ?? 0;
  const left = new Map<string, number>();
  for (const { eniId } of free) left.set(eniId, (left.get(eniId) ?? 0) + 1);
  const leftOf = (address: PoolAddress) => left.get(address.eniId) ?? 0;
  return free.toSorted(
    (a, b) =>
      usersOf(a) - usersOf(b) ||
      leftOf(a) - leftOf(b) ||
      compareTexts(a.eniId, b.eniId) ||
      (a.freedAtMs ?? 0) - (b.freedAtMs ?? 0) ||
      compareTexts(a.ip, b.ip),
  );
}

/** Adds the IPv6 partner of each; an address whose partner is in use cannot be released. */
function withPartners(state: PoolState, candidates: readonly PoolAddress[]): readonly (readonly PoolAddress[])[] {
  return candidates.flatMap((address) => {
    const partner = address.pairedIp === undefined ? undefined : state.addresses.get(address.pairedIp);
    if (partner === undefined) return [[address]];
    return isFree(state, partner) ? [[address, partner]] : [];
  });
}

function isOccupied(state: PoolState, address: PoolAddress): boolean {
  const { state: use } = address;
  return use === 'leased' || use === 'cooling' || (use === 'free' && isHeldBack(state, address));
}

/** Reports whether an address is free and may be given to a Pod or given back. */
export function isFree(state: PoolState, address: PoolAddress): boolean {
  return address.state === 'free' && !isHeldBack(state, address);
}
