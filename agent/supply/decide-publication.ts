import { compareTexts } from '../../runtime/compare-texts.ts';
import type { Offer } from '../journal/journal-content.ts';
import type { WarmTargets } from '../journal/supply.ts';
import { countedFamily, demandInUnits, isFree, type OutsideDemand } from '../pool/demand.ts';
import { isIdle } from '../pool/pool.ts';
import type { PoolAddress, PoolState } from '../pool/pool-state.ts';
import { mayGather } from './may-gather.ts';
import type { AgentSpec, AssignedIp, Gathering, ObservedNec, Publication, ReleasePacing } from './publication.ts';

/** All inputs of the decision on a publication. */
export type PublicationInput = {
  readonly pool: PoolState;
  /** Recorded offers, by IP. */
  readonly offers: ReadonlyMap<string, Offer>;
  /** The object to write on: the write is guarded by its resourceVersion. */
  readonly nec: ObservedNec;
  readonly warm: WarmTargets;
  readonly outside: OutsideDemand;
  readonly pacing: ReleasePacing;
  /** Default: nothing waits. */
  readonly gathering?: Gathering;
  /** Extended resources that the node serves now. */
  readonly readyResources: readonly string[];
  /** Name of this agent's journal. */
  readonly life: string;
  /** False when offers cannot be recorded; then none is made. Default true. */
  readonly mayOffer?: boolean;
};

/** The product's pace of release, milliseconds: one address, or all surplus, every two minutes. */
const RELEASE_EVERY_MS = 120_000;

/**
 * Decides what the agent writes into its NodeENIConfig, and which offers are journaled, withdrawn and restored with it.
 * - Offered at once: what is free on draining ENIs, and what exceeds the node's limit. Other surplus is offered at its
 *   pace, the emptiest ENI first.
 * - When more is desired, offers that ipamd has not acted on are taken back before new addresses are requested.
 * - A static address whose claim mark names no Pod is offered as soon as no sandbox has it; the offer stays until the
 *   mark names one.
 * - An address that load balancers may still have as a target is not offered. A static one is: ipamd takes it only for
 *   its own Pod.
 * - A rise of the demand that is not urgent (`mayGather`) waits for more, and so does an epoch that answers nothing but
 *   new addresses; whatever else is written has them too.
 * - An object that is not in force (`isInForce`) changes no offer. The first write on an object of another journal
 *   removes the offers in it, and makes any write of that journal's agent fail that is still on its way.
 */
export function decidePublication(input: PublicationInput): Publication {
  const { pool, nec, warm, outside, pacing } = input;
  const isCurrent = isInForce(pool, nec, input.life);
  const sorted = sortOffers(input, isCurrent);
  const { desired, bound, free, surplus, excess } = demandInUnits(pool, warm, outside);
  const [kept, open] = splitStatic(pool, sorted.open);
  const awaited = kept.filter(({ ip }) => pool.addresses.get(ip)?.claim?.uid !== undefined);
  const shortage = Math.max(0, desired - bound);
  const restored = new Set([...sorted.misplaced, ...awaited, ...selectToRestore(input, open, shortage)]);
  const { everyMs = RELEASE_EVERY_MS } = pacing;
  const isIntervalOver = pacing.nowMs >= pacing.lastReleaseMs + everyMs;
  const paced = surplus.slice(excess);
  const pacedNow =
    isCurrent && isIntervalOver && input.mayOffer !== false ? (pacing.isQuick ? paced : paced.slice(0, 1)) : [];
  const surplusToOffer = [...surplus.slice(0, excess), ...pacedNow].flat();
  const toOffer =
    isCurrent && input.mayOffer !== false
      ? [...sorted.foreign, ...offersOf([...unboundStaticAddresses(pool), ...freeOnDraining(pool), ...surplusToOffer])]
      : [];
  const stays = [...input.offers.values()].filter((offer) => !sorted.ended.has(offer));
  const ownFields = {
    desired,
    observedEpoch: Math.max(0, pool.epoch, nec.spec.observedEpoch ?? 0),
    readyResources: input.readyResources,
    life: input.life,
  };
  const specWithoutRestored = {
    ...ownFields,
    releasable: listOf([...stays.filter((offer) => !restored.has(offer)), ...toOffer]),
  };
  // A write that changes nothing does not make an older write of ours fail. So the offer is written first; the next
  // write takes it out.
  const isFence = restored.size === 0 || !isSame(specWithoutRestored, nec);
  const spec = isFence ? specWithoutRestored : { ...ownFields, releasable: listOf([...stays, ...toOffer]) };
  const isLeft = paced.length > pacedNow.length;
  const isDifferent = !isSame(spec, nec);
  const sinceMs = isDifferent && isCurrent ? gatheringSinceMs(input, spec, { bound, free }) : undefined;
  const isWaiting = sinceMs !== undefined && pacing.nowMs < sinceMs + (input.gathering?.forMs ?? 0);
  return {
    spec,
    isDue: isDifferent && !isWaiting,
    ...(sinceMs === undefined ? {} : { gatheringSinceMs: sinceMs }),
    toOffer,
    isPaced: pacedNow.length > 0,
    toErase: [...sorted.ended],
    toRestore: isFence ? [...restored] : [],
    ...(isLeft ? { nextReleaseMs: (isIntervalOver ? pacing.nowMs : pacing.lastReleaseMs) + everyMs } : {}),
  };
}

/**
 * Reports whether the pool follows this object: it has our journal's name, and its epoch is the one in force; not a lower
 * one (a restored etcd), nor a higher one that could not be read.
 */
export function isInForce(pool: PoolState, nec: ObservedNec, life: string): boolean {
  return nec.spec.life === life && nec.supplyEpoch === pool.epoch;
}

type SortedOffers = {
  /** ipamd acted on them: the address is not in the status any more, or has another assignment id. */
  readonly ended: ReadonlySet<Offer>;
  /** ipamd has not acted on them; they may be taken back. */
  readonly open: readonly Offer[];
  /** Of an address that is in use all the same: taken back at once. */
  readonly misplaced: readonly Offer[];
  /** In the object but not on record, of free addresses. They count as offered, because ipamd acts on them. */
  readonly foreign: readonly Offer[];
};

function sortOffers({ pool, offers, nec }: PublicationInput, isCurrent: boolean): SortedOffers {
  if (!isCurrent) return { ended: new Set(), open: [], misplaced: [], foreign: [] };
  const all = [...offers.values()];
  const ended = new Set(all.filter(({ ip, assignmentId }) => nec.addresses.get(ip)?.assignmentId !== assignmentId));
  const assigned = all.filter((offer) => !ended.has(offer) && nec.addresses.get(offer.ip)?.state === 'assigned');
  const isWithdrawn = ({ ip }: Offer): boolean => pool.addresses.get(ip)?.state === 'withdrawn';
  return {
    ended,
    open: assigned.filter(isWithdrawn),
    misplaced: assigned.filter((offer) => !isWithdrawn(offer)),
    foreign: foreignOffers(pool, offers, nec),
  };
}

/**
 * Finds offers that are in the object but not on record: of a restored etcd, or written by a person. ipamd acts on
 * them, so no Pod may get their addresses. Offers of addresses that are in use are left out: the next write removes
 * them.
 */
export function foreignOffers(pool: PoolState, offers: ReadonlyMap<string, Offer>, nec: ObservedNec): readonly Offer[] {
  return nec.spec.releasable.flatMap(({ ip, assignmentId }) => {
    const address = pool.addresses.get(ip);
    const isApplicable = address !== undefined && isIdle(address) && address.assignmentId === assignmentId;
    return isApplicable && offers.get(ip)?.assignmentId !== assignmentId ? offersOf([address]) : [];
  });
}

/**
 * Selects offers to take back: on ENIs that serve, the fullest first, an address with its partner of the other family.
 */
function selectToRestore(
  { pool, offers }: PublicationInput,
  open: readonly Offer[],
  shortage: number,
): readonly Offer[] {
  const family = countedFamily(pool);
  const users = usersByEni(pool);
  const openIps = new Set(open.map(({ ip }) => ip));
  const units = open
    .filter((offer) => offer.family === family && pool.enis.get(currentEniOf(pool, offer))?.serves === true)
    .toSorted(
      (a, b) =>
        (users.get(currentEniOf(pool, b)) ?? 0) - (users.get(currentEniOf(pool, a)) ?? 0) ||
        compareTexts(currentEniOf(pool, a), currentEniOf(pool, b)) ||
        compareTexts(a.ip, b.ip),
    )
    .flatMap((offer): readonly (readonly Offer[])[] => {
      const partner = offers.get(pool.addresses.get(offer.ip)?.pairedIp ?? '');
      if (partner === undefined) return [[offer]];
      return openIps.has(partner.ip) ? [[offer, partner]] : [];
    });
  return units.slice(0, shortage).flat();
}

/** Splits offers into those of static addresses and those of the pool. */
function splitStatic(pool: PoolState, open: readonly Offer[]): readonly [readonly Offer[], readonly Offer[]] {
  const isStatic = ({ ip }: Offer): boolean => pool.addresses.get(ip)?.claim !== undefined;
  return [open.filter(isStatic), open.filter((offer) => !isStatic(offer))];
}

/**
 * Lists static addresses that no Pod may use now. The next Pod of the name may start on any node, so ipamd must be able
 * to take the address from here.
 */
function unboundStaticAddresses(pool: PoolState): readonly PoolAddress[] {
  return [...pool.addresses.values()].filter(({ state, claim }) => state === 'kept' && claim?.uid === undefined);
}

function freeOnDraining(pool: PoolState): readonly PoolAddress[] {
  return [...pool.addresses.values()].filter(
    (address) => isFree(pool, address) && pool.enis.get(address.eniId)?.draining === true,
  );
}

function offersOf(addresses: readonly PoolAddress[]): readonly Offer[] {
  return addresses.map(({ ip, family, eniId, assignmentId }) => ({ ip, family, eniId, assignmentId }));
}

function listOf(offers: readonly Offer[]): readonly AssignedIp[] {
  const byIp = new Map(offers.map(({ ip, assignmentId }) => [ip, { ip, assignmentId }]));
  return [...byIp.values()].sort((a, b) => compareTexts(a.ip, b.ip));
}

/**
 * Reports whether the object already holds this. Entries that ipamd cannot act on any more do not count; the next write
 * leaves them out.
 */
function isSame(spec: AgentSpec, { spec: seen, addresses }: ObservedNec): boolean {
  const keyOf = ({ ip, assignmentId }: AssignedIp): string => `${ip} ${assignmentId}`;
  const desiredKeys = new Set(spec.releasable.map(keyOf));
  const relevant = seen.releasable.filter(
    (entry) => desiredKeys.has(keyOf(entry)) || addresses.get(entry.ip)?.assignmentId === entry.assignmentId,
  );
  return (
    seen.desired === spec.desired &&
    seen.life === spec.life &&
    seen.observedEpoch === spec.observedEpoch &&
    seen.readyResources.join() === spec.readyResources.join() &&
    relevant.length === desiredKeys.size &&
    relevant.every((entry) => desiredKeys.has(keyOf(entry)))
  );
}

/** Returns since when this write has waited, now for one that begins to; undefined when it does not wait. */
function gatheringSinceMs(
  { nec, outside, pacing, gathering }: PublicationInput,
  spec: AgentSpec,
  { bound, free }: { readonly bound: number; readonly free: number },
): number | undefined {
  const { desired: asked, observedEpoch } = nec.spec;
  if (gathering === undefined || asked === undefined) return undefined;
  // Offers count once their epoch is answered (ADR 0019).
  if (spec.releasable.length > 0 || (nec.exclusive?.releasable.length ?? 0) > 0) return undefined;
  if (observedEpoch === undefined || !isSame({ ...spec, desired: asked, observedEpoch }, nec)) return undefined;
  const { sinceMs = pacing.nowMs, lastWriteMs } = gathering;
  const { eniPlaces = Number.POSITIVE_INFINITY } = nec;
  const mayWait = mayGather({
    rise: spec.desired - asked,
    free: free - outside.waiting,
    coming: Math.max(0, asked - bound),
    needsEni: asked - bound <= eniPlaces && spec.desired - bound > eniPlaces,
    gatheredMs: pacing.nowMs - sinceMs,
    sinceWriteMs: pacing.nowMs - lastWriteMs,
  });
  return mayWait ? sinceMs : undefined;
}

/** Returns the ENI on which the supply lists the address now; it may have moved since it was offered. */
function currentEniOf(pool: PoolState, offer: Offer): string {
  return pool.addresses.get(offer.ip)?.eniId ?? offer.eniId;
}

function usersByEni(pool: PoolState): ReadonlyMap<string, number> {
  const users = new Map<string, number>();
  for (const { state, eniId, claim } of pool.addresses.values()) {
    if (state === 'leased' || state === 'cooling' || claim !== undefined) users.set(eniId, (users.get(eniId) ?? 0) + 1);
  }
  return users;
}
