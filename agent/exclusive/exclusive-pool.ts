import type { Cooldown, Offer } from '../journal/journal-content.ts';
import { type Lease, type LeaseKey, leaseKey } from '../journal/lease.ts';
import type { ClaimMark, EniPrimaryAddress, ExclusiveSupplyEni } from '../journal/supply.ts';
import {
  type BriefMarks,
  type LeaseEnd,
  marksOfRest,
  type ShownPods,
  withoutContradicted,
  withoutMarks,
  withProof,
} from '../pool/brief.ts';
import { mayCutCooldown } from '../pool/registered.ts';

/** One ENI of the pool of whole ENIs. */
export type ExclusiveEni = {
  readonly eniId: string;
  readonly mac: string;
  readonly primary: readonly EniPrimaryAddress[];
  readonly assignmentId: string;
  /** Its state in the supply; `missing`: the supply no longer lists it, and only a lease or cooldown holds it. */
  readonly supplyState: ExclusiveSupplyEni['state'] | 'missing';
  readonly draining: boolean;
  /** Present on an ENI for the Pods of one name; it does not belong to the pool. */
  readonly claim?: ClaimMark;
  readonly use: 'free' | 'leased' | 'cooling';
  /** Offered for release: serves no Pod until the offer is taken back. */
  readonly offered: boolean;
  /** Load balancers may still have its address as a target: no Pod but that of its claim gets it. */
  readonly registered?: true;
  readonly leaseKey?: LeaseKey;
  /** End of the cooldown, milliseconds since boot; only while cooling. */
  readonly coolUntilMs?: number;
  readonly freedAtMs?: number;
} & BriefMarks;

/** The pool: by ENI id, in the order of the supply. Each function returns a new one. */
export type ExclusivePoolState = ReadonlyMap<string, ExclusiveEni>;

/** A request for an ENI. */
export type ExclusiveRequest = {
  readonly key: LeaseKey;
  readonly podNamespace: string;
  readonly podName: string;
  readonly podUid: string;
  /** It requires an ENI with its own claim: its address is static, or it has security groups of its own. */
  readonly needsClaim: boolean;
  /** ENIs whose interface is idle in the host's namespace. */
  readonly present: ReadonlySet<string>;
  readonly nowMs: number;
  /** A cooling ENI may be taken before its cooldown ends. */
  readonly mayForce: boolean;
  /** Addresses that load balancers may still have as targets; absent: no controller publishes for this node. */
  readonly registered?: ReadonlySet<string>;
};

/** The result of a request. */
export type ExclusiveLeaseResult =
  | {
      readonly kind: 'leased';
      readonly eni: ExclusiveEni;
      /** Its cooldown was cut short: flush its connection tracking entries before use. */
      readonly isForced: boolean;
      /** And it had an owner that lived. */
      readonly isUnderPressure: boolean;
    }
  | { readonly kind: 'exhausted'; readonly awaitsClaim: boolean; readonly missingNics: number };

/**
 * Puts the whole ENIs of a supply in force. Idempotent. What is leased or cooling stays until that ends, listed or not.
 * An ENI with another assignment id was detached meanwhile, so an offer of it has ended.
 */
export function applyExclusiveSupply(
  state: ExclusivePoolState,
  enis: readonly ExclusiveSupplyEni[],
): ExclusivePoolState {
  const next = new Map<string, ExclusiveEni>();
  for (const { state: supplyState, claim, ...eni } of enis) {
    const known = state.get(eni.eniId);
    const { claim: _claim, ...before } = known ?? { use: 'free' as const, offered: false };
    const isSame = known?.assignmentId === eni.assignmentId;
    next.set(eni.eniId, {
      ...before,
      ...eni,
      supplyState,
      offered: isSame && before.offered,
      ...(claim === undefined ? {} : { claim }),
    });
  }
  for (const known of state.values()) {
    if (!next.has(known.eniId) && known.use !== 'free') next.set(known.eniId, { ...known, supplyState: 'missing' });
  }
  return next;
}

/**
 * Leases one ENI to a key: one whose claim mark names its Pod; else, unless a claim is required, the one of the pool
 * that was freed longest ago. A Pod whose name stands in any claim mark gets no other. A key that has an ENI gets it
 * again.
 */
export function leaseExclusive(
  state: ExclusivePoolState,
  request: ExclusiveRequest,
): { readonly state: ExclusivePoolState; readonly result: ExclusiveLeaseResult } {
  const all = [...state.values()];
  const current = all.find((eni) => eni.leaseKey === request.key);
  if (current !== undefined)
    return { state, result: { kind: 'leased', eni: current, isForced: false, isUnderPressure: false } };
  const ofName = all.filter(({ claim }) => isOfName(claim, request));
  const awaitsClaim = request.needsClaim || ofName.length > 0;
  const candidates = awaitsClaim
    ? ofName.filter(({ claim }) => claim?.uid !== undefined && claim.uid === request.podUid)
    : all.filter(({ claim, registered }) => claim === undefined && registered !== true);
  const mayForce = (eni: ExclusiveEni): boolean => request.mayForce && mayCutCooldown(request, eni, request.nowMs);
  const isGivable = (eni: ExclusiveEni): boolean => isCooled(eni, request.nowMs) || isBriefSpare(eni, request);
  const usable = candidates.filter((eni) => isUsable(eni) && (isGivable(eni) || mayForce(eni)));
  const [best] = usable
    .filter(({ eniId }) => request.present.has(eniId))
    .toSorted(
      (a, b) =>
        priceOf(a, request.nowMs) - priceOf(b, request.nowMs) ||
        (a.freedAtMs ?? Number.NEGATIVE_INFINITY) - (b.freedAtMs ?? Number.NEGATIVE_INFINITY),
    );
  if (best === undefined) {
    const missingNics = usable.filter(({ eniId }) => !request.present.has(eniId)).length;
    return { state, result: { kind: 'exhausted', awaitsClaim, missingNics } };
  }
  const { coolUntilMs: _cool, ...rest } = withoutMarks(best);
  const isForced = !isCooled(best, request.nowMs);
  const isUnderPressure = isForced && best.isBrief !== true;
  const since = isUnderPressure ? {} : { leasedAtMs: request.nowMs };
  const eni: ExclusiveEni = { ...rest, ...since, use: 'leased', leaseKey: request.key };
  return { state: withEni(state, eni), result: { kind: 'leased', eni, isForced, isUnderPressure } };
}

/**
 * Ends a lease: the ENI cools for `cooldownMs`. One with a claim does not cool, because only Pods of one name get it.
 * Returns the cooldowns to record; undefined for a key without lease.
 */
export function releaseExclusive(
  state: ExclusivePoolState,
  { key, nowMs, cooldownMs, ...pod }: LeaseEnd & { readonly key: LeaseKey; readonly cooldownMs: number },
): { readonly state: ExclusivePoolState; readonly cooldowns: readonly Cooldown[] | undefined } {
  const leased = [...state.values()].find((eni) => eni.leaseKey === key);
  if (leased === undefined) return { state, cooldowns: undefined };
  const { leaseKey: _key, ...rest } = withoutMarks(leased);
  const isCooling = cooldownMs > 0 && leased.claim === undefined;
  const freed: ExclusiveEni = isCooling
    ? {
        ...rest,
        ...marksOfRest(leased, { nowMs, ...pod }),
        use: 'cooling',
        freedAtMs: nowMs,
        coolUntilMs: nowMs + cooldownMs,
      }
    : { ...rest, use: 'free', freedAtMs: nowMs };
  const [first] = leased.primary;
  if (!isCooling || first === undefined) return { state: withoutGone(withEni(state, freed)), cooldowns: [] };
  const cooldown: Cooldown = {
    ...{ ip: first.ip, family: first.family, eniId: leased.eniId, assignmentId: leased.assignmentId },
    ...{ freedAtMs: nowMs, coolUntilMs: nowMs + cooldownMs, cooldownMs },
    isWholeEni: true,
  };
  return { state: withEni(state, freed), cooldowns: [cooldown] };
}

/** Ends the cooldowns whose time is over and returns the ids of their ENIs. */
export function tickExclusive(
  state: ExclusivePoolState,
  nowMs: number,
): { readonly state: ExclusivePoolState; readonly ended: readonly string[] } {
  const over = [...state.values()].filter((eni) => eni.use === 'cooling' && isCooled(eni, nowMs));
  if (over.length === 0) return { state, ended: [] };
  const next = new Map(state);
  for (const { coolUntilMs: _cool, ...eni } of over.map(withoutMarks)) next.set(eni.eniId, { ...eni, use: 'free' });
  return { state: withoutGone(next), ended: over.map(({ eniId }) => eniId) };
}

/** Takes over leases that exist already; leases of other kinds are skipped. Idempotent. */
export function adoptExclusive(state: ExclusivePoolState, leases: readonly Lease[]): ExclusivePoolState {
  const next = new Map(state);
  for (const lease of leases) {
    if (lease.plugin !== 'direct-eni') continue;
    const known = next.get(lease.eniId) ?? unknownEni(lease);
    const { coolUntilMs: _cool, failedPod: _pod, isBrief: _brief, ...rest } = known;
    next.set(lease.eniId, { ...rest, use: 'leased', leaseKey: leaseKey(lease) });
  }
  return next;
}

/** Takes over recorded cooldowns. */
export function adoptExclusiveCooldowns(state: ExclusivePoolState, cooldowns: readonly Cooldown[]): ExclusivePoolState {
  const next = new Map(state);
  for (const { eniId, freedAtMs, coolUntilMs } of cooldowns) {
    const known = next.get(eniId);
    if (known?.use === 'free') next.set(eniId, { ...known, use: 'cooling', freedAtMs, coolUntilMs });
  }
  return next;
}

/**
 * Marks ENIs as offered, or as not offered any more; only those of the same assignment, and no leased one as offered. A
 * cooling one may be offered: the end of its cooldown could not be recorded.
 */
export function setOffered(
  state: ExclusivePoolState,
  offers: readonly Pick<Offer, 'eniId' | 'assignmentId'>[],
  offered: boolean,
): ExclusivePoolState {
  const next = new Map(state);
  for (const { eniId, assignmentId } of offers) {
    const known = next.get(eniId);
    if (known === undefined || known.assignmentId !== assignmentId || (offered && known.use === 'leased')) continue;
    next.set(eniId, { ...known, offered });
  }
  return next;
}

/** Marks the ENIs with an address that load balancers may still have as a target; clears the mark of all others. */
export function markRegistered(state: ExclusivePoolState, ips: ReadonlySet<string>): ExclusivePoolState {
  return new Map(
    [...state].map(([eniId, eni]) => {
      const { registered: _before, ...rest } = eni;
      const isTarget = eni.primary.some(({ ip }) => ips.has(ip));
      return [eniId, isTarget ? { ...rest, registered: true as const } : rest] as const;
    }),
  );
}

/** Takes over what the watch of the node's Pods shows: a sandbox whose address a Pod has did not fail. Idempotent. */
export function noteShownExclusive(state: ExclusivePoolState, shown: ShownPods): ExclusivePoolState {
  const ipsOf = ({ primary }: ExclusiveEni) => primary.map(({ ip }) => ip);
  return new Map([...state].map(([eniId, eni]) => [eniId, withoutContradicted(eni, ipsOf(eni), shown)]));
}

/** The API server answered that a Pod has no address: the rests after its sandboxes are brief. Idempotent. */
export function proveFailedExclusive(state: ExclusivePoolState, podUid: string): ExclusivePoolState {
  return new Map([...state].map(([eniId, eni]) => [eniId, withProof(eni, podUid)]));
}

/**
 * Reports whether an ENI of the pool rests after a sandbox that failed and goes to the next Pod now if no other is free: it
 * is one of the warm ones.
 */
export function isBriefSpare(
  eni: ExclusiveEni,
  { nowMs, registered }: { readonly nowMs: number; readonly registered?: ReadonlySet<string> | undefined },
): boolean {
  if (eni.isBrief !== true || eni.claim !== undefined || eni.registered === true) return false;
  return isUsable(eni) && mayCutCooldown({ registered }, eni, nowMs);
}

/** Reports whether an ENI may be leased now: attached, not offered, not draining, not leased. */
export function isUsable({ supplyState, draining, offered, use }: ExclusiveEni): boolean {
  return supplyState === 'attached' && !draining && !offered && use !== 'leased';
}

function isOfName(claim: ClaimMark | undefined, { podNamespace, podName }: ExclusiveRequest): boolean {
  return claim !== undefined && podName !== '' && claim.namespace === podNamespace && claim.name === podName;
}

function isCooled({ coolUntilMs }: ExclusiveEni, nowMs: number): boolean {
  return coolUntilMs === undefined || coolUntilMs <= nowMs;
}

/** Free ones come first, then those with a brief rest. */
function priceOf(eni: ExclusiveEni, nowMs: number): number {
  return isCooled(eni, nowMs) ? 0 : eni.isBrief === true ? 1 : 2;
}

function withEni(state: ExclusivePoolState, eni: ExclusiveEni): ExclusivePoolState {
  return new Map(state).set(eni.eniId, eni);
}

/** Removes ENIs that the supply does not list and that no lease or cooldown holds any more. */
function withoutGone(state: ExclusivePoolState): ExclusivePoolState {
  return new Map([...state].filter(([, { use, supplyState }]) => use !== 'free' || supplyState !== 'missing'));
}

function unknownEni({ eniId, addresses, nic }: Lease): ExclusiveEni {
  return {
    eniId,
    mac: nic?.mac ?? '',
    primary: nic?.primary ?? [],
    assignmentId: addresses[0]?.assignmentId ?? '',
    supplyState: 'missing',
    draining: false,
    use: 'free',
    offered: false,
  };
}
