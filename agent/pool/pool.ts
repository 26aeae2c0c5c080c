import type { Cooldown, Offer } from '../journal/journal-content.ts';
import { type Lease, type LeaseKey, leaseKey } from '../journal/lease.ts';
import { claimKey } from '../journal/supply.ts';
import { type LeaseEnd, marksOfRest, type ShownPods, withoutContradicted, withoutMarks, withProof } from './brief.ts';
import { chooseAddresses, isCooled } from './choose.ts';
import type {
  AdoptConflict,
  Exhausted,
  LeaseRequest,
  LeaseResult,
  PoolAddress,
  PoolCounts,
  PoolState,
  ReleaseResult,
  Step,
} from './pool-state.ts';
import { isHeldBack, isRegistered } from './registered.ts';

/**
 * Leases a key one free address per family, all on one ENI: the fullest ENI first, on it the address freed longest ago.
 * A key that has a lease gets the same addresses again, whatever the families. Where none is free, one with a brief rest
 * is taken before its time, as `forceCool` takes others.
 */
export function lease(state: PoolState, request: LeaseRequest): Step<LeaseResult> {
  return leaseWith(state, request, false);
}

/**
 * Does as `lease`, and under pressure cuts cooldowns short, those that have run longest first. The caller flushes the
 * connection tracking entries of `forced` before a Pod gets them.
 */
export function forceCool(state: PoolState, request: LeaseRequest): Step<LeaseResult> {
  return leaseWith(state, request, true);
}

function leaseWith(state: PoolState, request: LeaseRequest, mayForce: boolean): Step<LeaseResult> {
  const current = state.leases.get(request.key);
  if (current !== undefined) {
    const addresses = current.flatMap((ip) => state.addresses.get(ip) ?? []);
    return { state, result: { kind: 'leased', addresses, isNew: false, forced: [] } };
  }
  const choice = chooseAddresses(state, request, mayForce);
  if (choice === undefined) return { state, result: describeExhaustion(state, request) };
  const cut = new Set(choice.forced);
  const leased = choice.addresses.map((address): PoolAddress => {
    const hasRested = !cut.has(address.ip) || address.isBrief === true;
    return { ...asLeased(address, request.key), ...(hasRested ? { leasedAtMs: request.nowMs } : {}) };
  });
  const isUnderPressure = choice.addresses.some(({ ip, isBrief }) => cut.has(ip) && isBrief !== true);
  return {
    state: {
      ...state,
      addresses: withAddresses(state, leased),
      leases: new Map(state.leases).set(
        request.key,
        leased.map((address) => address.ip),
      ),
    },
    result: {
      ...{ kind: 'leased', addresses: leased, isNew: true, forced: choice.forced },
      ...(isUnderPressure ? { isUnderPressure } : {}),
    },
  };
}

/**
 * Ends a lease: its addresses cool for `cooldownMs`, then are free if the supply still lists them; with 0 at once. A
 * static one is kept for the next Pod of the name meanwhile. A key without lease is `unknown`, which is no error: DEL may
 * come twice.
 */
export function release(
  state: PoolState,
  { key, nowMs, cooldownMs, ...pod }: LeaseEnd & { readonly key: LeaseKey; readonly cooldownMs: number },
): Step<ReleaseResult> {
  const leasedIps = state.leases.get(key);
  if (leasedIps === undefined) return { state, result: { kind: 'unknown' } };
  const leases = new Map(state.leases);
  leases.delete(key);
  const freed = leasedIps
    .flatMap((ip) => state.addresses.get(ip) ?? [])
    .map((address) => {
      const named = pod.podKey === undefined ? {} : { podKey: pod.podKey };
      const cooling = { freedAtMs: nowMs, coolUntilMs: nowMs + cooldownMs, cooldownMs, ...named };
      return asCooling(address, { ...cooling, ...marksOfRest(address, { nowMs, ...pod }) });
    });
  const released: PoolState = { ...state, addresses: withAddresses(state, freed.map(whileCooling)), leases };
  return {
    state: cooldownMs > 0 ? released : endCooldownsOf(released, freed),
    result: { kind: 'released', cooldowns: cooldownMs > 0 ? freed.flatMap(cooldownOf) : [] },
  };
}

/**
 * Reports whether a cooldown keeps an address from whoever the supply has it for. It does not keep it from the next Pod of
 * the name that its last Pod had; but one that left the supply may come back for anybody.
 */
export function isResting({ coolUntilMs, claim, supplyState, podKey }: PoolAddress): boolean {
  if (coolUntilMs === undefined) return false;
  return claim === undefined || supplyState === 'missing' || claimKey(claim) !== podKey;
}

/** Returns an address whose cooldown runs in the state that it has meanwhile. */
function whileCooling(address: PoolAddress): PoolAddress {
  return isResting(address) ? address : (asSupplied(address) ?? address);
}

/**
 * Ends the cooldowns whose time is over and returns their IPs. A deadline later than a whole cooldown from now was set
 * by another clock (a journal of an older release): it is shortened to that, so that no address cools forever.
 */
export function tick(state: PoolState, nowMs: number): Step<readonly string[]> {
  const cooling = [...state.addresses.values()].filter(({ coolUntilMs }) => coolUntilMs !== undefined);
  const over = cooling.filter((address) => isCooled(address, nowMs));
  const moved = cooling.flatMap((address): readonly PoolAddress[] => {
    const latestMs = nowMs + (address.cooldownMs ?? 0);
    return (address.coolUntilMs ?? 0) > latestMs ? [{ ...address, coolUntilMs: latestMs }] : [];
  });
  if (over.length === 0 && moved.length === 0) return { state, result: [] };
  const next = endCooldownsOf({ ...state, addresses: withAddresses(state, moved) }, over);
  return { state: next, result: over.map(({ ip }) => ip) };
}

function endCooldownsOf(state: PoolState, over: readonly PoolAddress[]): PoolState {
  const addresses = new Map(state.addresses);
  for (const { coolUntilMs: _until, cooldownMs: _length, podKey: _pod, ...address } of over) {
    const supplied = asSupplied(address);
    if (supplied === undefined) addresses.delete(address.ip);
    else addresses.set(address.ip, supplied);
  }
  return { ...state, addresses };
}

/**
 * Takes over leases that exist already: from the journal or found in the kernel. Idempotent. An address need not be in
 * the supply. One that has another owner stays with that owner and is reported.
 */
export function adopt(state: PoolState, found: readonly Lease[]): Step<readonly AdoptConflict[]> {
  const addresses = new Map(state.addresses);
  const leases = new Map(state.leases);
  const conflicts: AdoptConflict[] = [];
  for (const one of found) {
    const key = leaseKey(one);
    const ips: string[] = [];
    for (const { ip, family, eniId, assignmentId } of one.addresses) {
      const known = addresses.get(ip);
      if (known?.leaseKey !== undefined && known.leaseKey !== key) {
        conflicts.push({ ip, owner: known.leaseKey, claimant: key });
        continue;
      }
      const base: PoolAddress =
        known?.eniId === eniId
          ? known
          : {
              ip,
              family,
              eniId,
              assignmentId,
              state: 'free',
              supplyState: 'missing',
              offered: false,
              ...nextEntry(known),
            };
      addresses.set(ip, asLeased(base, key));
      ips.push(ip);
    }
    // A lease that is adopted twice has its addresses still: the map of leases and the owners of addresses always
    // agree.
    if (ips.length > 0) leases.set(key, [...new Set([...(leases.get(key) ?? []), ...ips])]);
  }
  return { state: { ...state, addresses, leases }, result: conflicts };
}

/**
 * Takes over cooldowns from the journal. Idempotent. An address that is leased by now does not cool. The record does not
 * say whose it was: one that the supply in force keeps for a name is taken for that of its last Pod.
 */
export function adoptCooldowns(state: PoolState, cooldowns: readonly Cooldown[]): Step<void> {
  const cooling = cooldowns
    .filter(({ ip }) => state.addresses.get(ip)?.leaseKey === undefined)
    .map(({ freedAtMs, coolUntilMs, cooldownMs, ...found }) => {
      const known = state.addresses.get(found.ip) ?? {
        ...found,
        state: 'free',
        supplyState: 'missing',
        offered: false,
      };
      const podKey = known.podKey ?? (known.claim === undefined ? undefined : claimKey(known.claim));
      const named = podKey === undefined ? {} : { podKey };
      return whileCooling(asCooling(known, { freedAtMs, coolUntilMs, cooldownMs, ...named }));
    });
  return { state: { ...state, addresses: withAddresses(state, cooling) }, result: undefined };
}

/**
 * Takes over offers from the journal: their addresses stay out of use. Idempotent. An unknown address is added as
 * withdrawn until a supply shows what became of it; one that has an owner stays with the owner; an offer of another
 * assignment than the supply's is ignored.
 */
export function adoptOffers(state: PoolState, offers: readonly Offer[]): Step<void> {
  const offered = offers.flatMap(({ ip, family, eniId, assignmentId }): readonly PoolAddress[] => {
    const known = state.addresses.get(ip);
    if (known === undefined) {
      return [{ ip, family, eniId, assignmentId, state: 'withdrawn', supplyState: 'missing', offered: true }];
    }
    if (known.state === 'leased' || known.assignmentId !== assignmentId) return [];
    return [{ ...known, state: isIdle(known) ? 'withdrawn' : known.state, offered: true }];
  });
  return { state: { ...state, addresses: withAddresses(state, offered) }, result: undefined };
}

/** Withdraws free and static addresses from use before they are offered; returns those that it took. Idempotent. */
export function withdraw(state: PoolState, ips: readonly string[]): Step<readonly PoolAddress[]> {
  const taken = ips
    .flatMap((ip) => state.addresses.get(ip) ?? [])
    .filter(isIdle)
    .map((address): PoolAddress => ({ ...address, state: 'withdrawn', offered: true }));
  return { state: { ...state, addresses: withAddresses(state, taken) }, result: taken };
}

/** Replaces the addresses that load balancers may still have as targets; undefined: no controller publishes any. */
export function setRegistered(state: PoolState, ips: ReadonlySet<string> | undefined): Step<void> {
  const { registered: _before, ...rest } = state;
  return { state: ips === undefined ? rest : { ...rest, registered: ips }, result: undefined };
}

/** Replaces the addresses that another program has on this node: no Pod gets them, and none is given back. */
export function setStrangers(state: PoolState, ips: ReadonlySet<string>): Step<void> {
  const { strangers: _before, ...rest } = state;
  return { state: ips.size === 0 ? rest : { ...rest, strangers: ips }, result: undefined };
}

/** Takes over what the watch of the node's Pods shows: a sandbox whose address a Pod has did not fail. Idempotent. */
export function noteShown(state: PoolState, shown: ShownPods): Step<void> {
  const next = [...state.addresses.values()].map((address) => withoutContradicted(address, [address.ip], shown));
  return replaceChanged(state, next);
}

/** The API server answered that a Pod has no address: the rests after its sandboxes are brief. Idempotent. */
export function proveFailed(state: PoolState, podUid: string): Step<void> {
  const next = [...state.addresses.values()].map((address) => withProof(address, podUid));
  return replaceChanged(state, next);
}

function replaceChanged(state: PoolState, all: readonly PoolAddress[]): Step<void> {
  const changed = all.filter((address) => state.addresses.get(address.ip) !== address);
  const isSame = changed.length === 0;
  return { state: isSame ? state : { ...state, addresses: withAddresses(state, changed) }, result: undefined };
}

/** Returns offered addresses to use, once the offer was removed from the object that ipamd reads. Idempotent. */
export function restore(state: PoolState, ips: readonly string[]): Step<readonly PoolAddress[]> {
  const restored = ips
    .flatMap((ip) => state.addresses.get(ip) ?? [])
    .filter((address) => address.offered)
    .flatMap((address) => asSupplied({ ...address, offered: false }) ?? []);
  return { state: { ...state, addresses: withAddresses(state, restored) }, result: restored };
}

/** Counts addresses by state. */
export function counts(state: PoolState): PoolCounts {
  const all = [...state.addresses.values()];
  const of = (addressState: PoolAddress['state']) => all.filter((address) => address.state === addressState).length;
  return {
    total: all.length,
    free: of('free'),
    kept: of('kept'),
    leased: of('leased'),
    cooling: of('cooling'),
    withdrawn: of('withdrawn'),
    missing: all.filter((address) => address.supplyState === 'missing').length,
  };
}

/**
 * Returns an address that is neither leased nor cooling any more in the state that the supply gives it; undefined =
 * drop it.
 */
export function asSupplied(address: PoolAddress): PoolAddress | undefined {
  if (address.supplyState === 'missing') return undefined;
  const { leaseKey: _owner, next: _next, ...rest } = withoutMarks(address);
  const isOut = address.offered || address.supplyState === 'releasing';
  if (!isOut && isResting(address)) return { ...rest, state: 'cooling' };
  return { ...rest, state: isOut ? 'withdrawn' : address.claim === undefined ? 'free' : 'kept' };
}

/** Reports whether an address is idle: free, or static without a Pod. It is not in use, not cooling and not offered. */
export function isIdle({ state }: PoolAddress): boolean {
  return state === 'free' || state === 'kept';
}

/** Returns the address as leased to a key. */
export function asLeased(address: PoolAddress, key: LeaseKey): PoolAddress {
  const { coolUntilMs: _until, cooldownMs: _length, podKey: _pod, ...rest } = withoutMarks(address);
  return { ...rest, state: 'leased', offered: false, leaseKey: key };
}

type Cooling = Required<Pick<PoolAddress, 'freedAtMs' | 'coolUntilMs' | 'cooldownMs'>> &
  Pick<PoolAddress, 'podKey'> &
  ReturnType<typeof marksOfRest>;

/** Returns the address as cooling; one that the supply moved while it was leased changes to its new ENI now. */
function asCooling(address: PoolAddress, cooling: Cooling): PoolAddress {
  const { leaseKey: _owner, next, ...rest } = withoutMarks(address);
  if (next === undefined) return { ...rest, ...cooling, state: 'cooling' };
  const { claim: _claim, ...elsewhere } = rest;
  return { ...elsewhere, ...next, ...cooling, state: 'cooling' };
}

function nextEntry(known: PoolAddress | undefined): Pick<PoolAddress, 'next'> {
  if (known === undefined || known.supplyState === 'missing') return {};
  const { eniId, assignmentId, supplyState, pairedIp, claim } = known;
  const also = { ...(pairedIp === undefined ? {} : { pairedIp }), ...(claim === undefined ? {} : { claim }) };
  return { next: { eniId, assignmentId, supplyState, ...also } };
}

function cooldownOf(address: PoolAddress): readonly Cooldown[] {
  const { ip, family, eniId, assignmentId, freedAtMs, coolUntilMs, cooldownMs } = address;
  if (freedAtMs === undefined || coolUntilMs === undefined || cooldownMs === undefined) return [];
  return [{ ip, family, eniId, assignmentId, freedAtMs, coolUntilMs, cooldownMs }];
}

/** Returns all addresses, with the changed ones in place of the old. */
export function withAddresses(state: PoolState, changed: readonly PoolAddress[]): ReadonlyMap<string, PoolAddress> {
  const addresses = new Map(state.addresses);
  for (const address of changed) addresses.set(address.ip, address);
  return addresses;
}

function describeExhaustion(state: PoolState, { families: want, enis }: LeaseRequest): Exhausted {
  const ofFamilies = [...state.addresses.values()].filter((address) => want.includes(address.family));
  const of = (name: PoolAddress['state']) =>
    ofFamilies.filter((address) => address.state === name && (name === 'leased' || !isHeldBack(state, address)));
  const isWaiting = (address: PoolAddress) => address.state !== 'leased' && isRegistered(state, address);
  const registered = ofFamilies.filter(isWaiting).length;
  const strangers = ofFamilies.filter(({ ip, state: use }) => use !== 'leased' && state.strangers?.has(ip)).length;
  const deadlines = of('cooling').flatMap((address) => address.coolUntilMs ?? []);
  const isServing = ({ eniId }: PoolAddress) =>
    state.enis.get(eniId)?.serves === true && (enis === undefined || enis.has(eniId));
  const free = of('free').filter(isServing).length;
  return {
    kind: 'exhausted',
    want,
    free,
    unserved: of('free').length - free,
    cooling: of('cooling').length,
    leased: of('leased').length,
    ...(registered === 0 ? {} : { registered }),
    ...(strangers === 0 ? {} : { strangers }),
    ...(deadlines.length === 0 ? {} : { nextCoolAtMs: Math.min(...deadlines) }),
  };
}
