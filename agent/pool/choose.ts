import type { Family } from '../../dataplane/ip-prefix.ts';
import type { LeaseRequest, PoolAddress, PoolState } from './pool-state.ts';
import { isHeldBack, mayCutCooldown } from './registered.ts';

/** Addresses for a lease: one per family of the request, all on one ENI. */
type Choice = {
  readonly addresses: readonly PoolAddress[];
  /** IPs that are still cooling. */
  readonly forced: readonly string[];
};

type EniChoice = Choice & {
  readonly leasedOnEni: number;
  /** How many of the forced had an owner that lived. */
  readonly livedForced: number;
  readonly youngestForcedMs: number;
};

/**
 * Selects an address per family; undefined when there is none. The fullest ENI that can serve all families is
 * preferred, so that others become empty and can be released; on it the address that was freed longest ago. With
 * `mayForce`, cooling addresses are taken when there is no other way: as few as possible, then those that have cooled
 * longest, on whatever ENI they are.
 */
export function chooseAddresses(state: PoolState, request: LeaseRequest, mayForce: boolean): Choice | undefined {
  const byEni = groupCandidates(state, request, mayForce);
  let best: EniChoice | undefined;
  for (const eni of state.enis.values()) {
    const allowed = eni.serves && (request.enis === undefined || request.enis.has(eni.eniId));
    const group = byEni.get(eni.eniId);
    if (!allowed || group === undefined) continue;
    const choice = chooseOnEni(group, request);
    // Only a strictly better one replaces it: among equals the supply's order decides, so that the result is always the
    // same.
    if (choice !== undefined && (best === undefined || isBetter(choice, best))) best = choice;
  }
  return best;
}

/**
 * Reports whether an address rests after a sandbox that failed and goes to the next Pod now if no other is free: it is one
 * of the warm ones.
 */
export function isBriefSpare(state: PoolState, address: PoolAddress, nowMs: number): boolean {
  if (address.isBrief !== true || state.enis.get(address.eniId)?.serves !== true) return false;
  return isGivable(state, address) && mayCutCooldown(state, address, nowMs);
}

/** Reports whether a cooldown is over, or there is none. */
export function isCooled(address: PoolAddress, nowMs: number): boolean {
  return address.coolUntilMs === undefined || address.coolUntilMs <= nowMs;
}

type EniGroup = { leased: number; readonly candidates: PoolAddress[] };

function groupCandidates(state: PoolState, request: LeaseRequest, mayForce: boolean): Map<string, EniGroup> {
  const byEni = new Map<string, EniGroup>();
  for (const address of state.addresses.values()) {
    const group = byEni.get(address.eniId) ?? { leased: 0, candidates: [] };
    byEni.set(address.eniId, group);
    if (address.state === 'leased') group.leased++;
    else if (isCandidate(state, address, request, mayForce)) group.candidates.push(address);
  }
  return byEni;
}

function isCandidate(state: PoolState, address: PoolAddress, request: LeaseRequest, mayForce: boolean): boolean {
  if (!isGivable(state, address) || !request.families.includes(address.family)) return false;
  if (address.state === 'free') return true;
  if (address.state !== 'cooling') return false;
  if (isCooled(address, request.nowMs) || isBriefSpare(state, address, request.nowMs)) return true;
  return mayForce && mayCutCooldown(state, address, request.nowMs);
}

/** Reports whether nothing but its owner or its rest keeps an address from the next Pod. */
function isGivable(state: PoolState, address: PoolAddress): boolean {
  const { claim, supplyState, offered } = address;
  return claim === undefined && supplyState === 'assigned' && !offered && !isHeldBack(state, address);
}

function chooseOnEni(group: EniGroup, request: LeaseRequest): EniChoice | undefined {
  const isForced = (address: PoolAddress) => address.state === 'cooling' && !isCooled(address, request.nowMs);
  const priceOf = (address: PoolAddress) => (!isForced(address) ? 0 : address.isBrief === true ? 1 : 2);
  const ordered = group.candidates.toSorted((a, b) => priceOf(a) - priceOf(b) || freedAt(a) - freedAt(b));
  const addresses: PoolAddress[] = [];
  for (const family of [...request.families].sort()) {
    const address = chooseOfFamily(ordered, family, addresses[0], isForced);
    if (address === undefined) return undefined;
    addresses.push(address);
  }
  const forced = addresses.filter(isForced);
  return {
    addresses,
    forced: forced.map((address) => address.ip),
    leasedOnEni: group.leased,
    livedForced: forced.filter(({ isBrief }) => isBrief !== true).length,
    youngestForcedMs: Math.max(Number.NEGATIVE_INFINITY, ...forced.map(freedAt)),
  };
}

/**
 * Selects an address of one family. The cloud may pair an IPv4 with an IPv6 address for one Pod: the partner of the
 * first selected address is preferred to the oldest one.
 */
function chooseOfFamily(
  ordered: readonly PoolAddress[],
  family: Family,
  first: PoolAddress | undefined,
  isForced: (address: PoolAddress) => boolean,
): PoolAddress | undefined {
  const ofFamily = ordered.filter((address) => address.family === family);
  const partner =
    first === undefined ? undefined : ofFamily.find((a) => a.ip === first.pairedIp || a.pairedIp === first.ip);
  return partner !== undefined && !isForced(partner) ? partner : ofFamily[0];
}

function isBetter(a: EniChoice, b: EniChoice): boolean {
  if (a.livedForced !== b.livedForced) return a.livedForced < b.livedForced;
  if (a.forced.length !== b.forced.length) return a.forced.length < b.forced.length;
  if (a.youngestForcedMs !== b.youngestForcedMs) return a.youngestForcedMs < b.youngestForcedMs;
  return a.leasedOnEni > b.leasedOnEni;
}

/** An address that was never leased counts as the oldest of all. */
function freedAt(address: PoolAddress): number {
  return address.freedAtMs ?? Number.NEGATIVE_INFINITY;
}
