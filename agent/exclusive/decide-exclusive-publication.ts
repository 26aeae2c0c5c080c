import { compareTexts } from '../../runtime/compare-texts.ts';
import type { Offer } from '../journal/journal-content.ts';
import type { ExclusiveWarmTargets } from '../journal/supply.ts';
import { coolingDemand } from '../pool/brief.ts';
import { type ExclusiveEni, type ExclusivePoolState, isBriefSpare, isUsable } from './exclusive-pool.ts';

/** One attachment of an ENI. */
type AttachedEniId = { readonly eniId: string; readonly assignmentId: string };

/** The agent's fields about whole ENIs. */
export type ExclusiveSpec = { readonly desired: number; readonly releasable: readonly AttachedEniId[] };

/** What the object says about whole ENIs. */
export type ObservedExclusive = {
  readonly desired: number | undefined;
  readonly releasable: readonly AttachedEniId[];
  /** By ENI id; `isLeaving`: ipamd detaches it. */
  readonly enis: ReadonlyMap<string, { readonly assignmentId: string; readonly isLeaving: boolean }>;
};

/** All inputs of the decision. */
export type ExclusivePublicationInput = ExclusiveOutsideDemand & {
  readonly pool: ExclusivePoolState;
  /** Recorded offers of whole ENIs. */
  readonly offers: readonly Offer[];
  readonly observed: ObservedExclusive;
  /** Undefined for a node that has none and may have none. */
  readonly warm: ExclusiveWarmTargets | undefined;
  /** The pool follows this object. */
  readonly isCurrent: boolean;
  /** False when offers cannot be recorded. */
  readonly mayOffer: boolean;
  /** More surplus may be offered now; it goes one at a time. */
  readonly isIntervalOver: boolean;
};

/** The part of a `Publication` that is about whole ENIs. */
type ExclusivePublication = {
  /** Absent: the fields stay as they are. */
  readonly spec?: ExclusiveSpec;
  readonly isDue: boolean;
  readonly toOffer: readonly Offer[];
  readonly isPaced: boolean;
  readonly toErase: readonly Offer[];
  /** They return to use once the write succeeded and changed the object. */
  readonly toRestore: readonly Offer[];
  /** More surplus is left for a later write. */
  readonly isLeft: boolean;
};

const NOTHING: ExclusivePublication = {
  isDue: false,
  toOffer: [],
  isPaced: false,
  toErase: [],
  toRestore: [],
  isLeft: false,
};

/**
 * Decides what the agent publishes about whole ENIs, with the same protocol as for addresses.
 * - Offered at once: ENIs that are draining, that exceed the limit, or whose claim mark names no Pod that may use them
 *   now. Other surplus is offered one at a time.
 * - Taken back: offers of the pool, when more is desired; offers of ENIs whose claim mark names a Pod by now.
 */
export function decideExclusivePublication(input: ExclusivePublicationInput): ExclusivePublication {
  const { pool, offers, observed, warm, isCurrent } = input;
  const isUnasked = (observed.desired ?? 0) === 0 && observed.releasable.length === 0;
  if (warm === undefined && offers.length === 0 && isUnasked) return NOTHING;
  const { desired, bound, surplus, excess } = exclusiveDemand(pool, warm ?? { min: 0, max: 0 }, input);
  const isOver = ({ eniId, assignmentId }: Offer): boolean => observed.enis.get(eniId)?.assignmentId !== assignmentId;
  const ended = isCurrent ? offers.filter(isOver) : [];
  const stays = offers.filter((offer) => !ended.includes(offer));
  const open = isCurrent ? stays.filter(({ eniId }) => observed.enis.get(eniId)?.isLeaving === false) : [];
  const restored = selectToRestore(pool, open, desired - bound);
  const mayOffer = isCurrent && input.mayOffer;
  const paced = surplus.slice(excess);
  const pacedNow = mayOffer && input.isIntervalOver ? paced.slice(0, 1) : [];
  const atOnce = [...surplus.slice(0, excess), ...[...pool.values()].filter(canServeNoPod)];
  const toOffer = mayOffer
    ? [...foreignExclusiveOffers(pool, stays, observed), ...offersOf([...atOnce, ...pacedNow])]
    : [];
  const specWithoutRestored = specOf(desired, [...stays.filter((offer) => !restored.includes(offer)), ...toOffer]);
  // As with addresses: a write that changes nothing does not make an older one fail, so the offer is written first.
  const isFence = restored.length === 0 || !isSame(specWithoutRestored, observed);
  const spec = isFence ? specWithoutRestored : specOf(desired, [...stays, ...toOffer]);
  return {
    spec,
    isDue: !isSame(spec, observed),
    toOffer: uniqueByEni(toOffer),
    isPaced: pacedNow.length > 0,
    toErase: ended,
    toRestore: isFence ? restored : [],
    isLeft: paced.length > pacedNow.length,
  };
}

/**
 * Selects offers to take back: ENIs that a Pod has; ENIs whose claim mark names a Pod, which waits for that very one;
 * ENIs of the pool, as many as are short.
 */
function selectToRestore(pool: ExclusivePoolState, open: readonly Offer[], shortage: number): readonly Offer[] {
  const claimOf = ({ eniId }: Offer) => pool.get(eniId)?.claim;
  const isLeased = ({ eniId }: Offer): boolean => pool.get(eniId)?.use === 'leased';
  const misplaced = open.filter(isLeased);
  const rest = open.filter((offer) => !isLeased(offer));
  const awaited = rest.filter((offer) => claimOf(offer)?.uid !== undefined);
  const ofPool = rest.filter((offer) => claimOf(offer) === undefined && pool.get(offer.eniId)?.draining !== true);
  return [...misplaced, ...awaited, ...ofPool.slice(0, Math.max(0, shortage))];
}

/**
 * Reports whether a free ENI can serve no Pod here: it is draining, or its claim mark names no Pod now, and the next Pod
 * of the name may run on another node.
 */
function canServeNoPod({ use, offered, supplyState, draining, claim, registered }: ExclusiveEni): boolean {
  if (use !== 'free' || offered || supplyState !== 'attached') return false;
  // ipamd takes a static one for its own Pod only; any other waits until no load balancer has it.
  if (claim === undefined && registered === true) return false;
  return draining || (claim !== undefined && claim.uid === undefined);
}

/**
 * Finds offers that are in the object but not on record, of free ENIs: ipamd acts on them, so they count as offered.
 */
export function foreignExclusiveOffers(
  pool: ExclusivePoolState,
  known: readonly Offer[],
  observed: Pick<ObservedExclusive, 'releasable'>,
): readonly Offer[] {
  return observed.releasable.flatMap(({ eniId, assignmentId }) => {
    const eni = pool.get(eniId);
    const isKnown = known.some((offer) => offer.eniId === eniId && offer.assignmentId === assignmentId);
    return eni !== undefined && !isKnown && isUsable(eni) && eni.use === 'free' && eni.assignmentId === assignmentId
      ? offersOf([eni])
      : [];
  });
}

function offersOf(enis: readonly ExclusiveEni[]): readonly Offer[] {
  return enis.flatMap(({ eniId, assignmentId, primary: [first] }): readonly Offer[] =>
    first === undefined ? [] : [{ ip: first.ip, family: first.family, eniId, assignmentId, isWholeEni: true }],
  );
}

function specOf(desired: number, offers: readonly Offer[]): ExclusiveSpec {
  const releasable = uniqueByEni(offers).map(({ eniId, assignmentId }) => ({ eniId, assignmentId }));
  return { desired, releasable: releasable.sort((a, b) => compareTexts(a.eniId, b.eniId)) };
}

function uniqueByEni(offers: readonly Offer[]): readonly Offer[] {
  return [...new Map(offers.map((offer) => [offer.eniId, offer])).values()];
}

function isSame(spec: ExclusiveSpec, { desired, releasable }: ObservedExclusive): boolean {
  const keyOf = ({ eniId, assignmentId }: AttachedEniId): string => `${eniId} ${assignmentId}`;
  const text = (all: readonly AttachedEniId[]): string => all.map(keyOf).sort().join();
  return spec.desired === desired && text(spec.releasable) === text(releasable);
}

/** How many whole ENIs the pool of the node should have, and which it could release. */
type ExclusiveDemand = {
  /** In use + cooling + still registered with load balancers + waiting + warm, within the limit. ENIs with a claim, and who waits for one, do not count. */
  readonly desired: number;
  /** Number that is here now, without those offered. */
  readonly bound: number;
  /** Free ENIs beyond the warm maximum or the limit; those freed longest ago first. */
  readonly surplus: readonly ExclusiveEni[];
  /** Number of the surplus that exceeds the limit. */
  readonly excess: number;
};

/** Demand that the pool does not contain. */
type ExclusiveOutsideDemand = {
  /** Pods and ADDs that need an ENI of the pool and have none. */
  readonly waiting: number;
  /** Allocatable Pods of the Node; absent while it was not read. */
  readonly maxPods?: number | undefined;
  /** Milliseconds since boot. */
  readonly nowMs: number;
  /** Addresses that load balancers may still have as targets; absent: no controller publishes for this node. */
  readonly registered?: ReadonlySet<string> | undefined;
};

/** Computes the demand for whole ENIs from the pool. */
export function exclusiveDemand(
  state: ExclusivePoolState,
  warm: ExclusiveWarmTargets,
  outside: ExclusiveOutsideDemand,
): ExclusiveDemand {
  const { waiting, maxPods } = outside;
  const all = [...state.values()];
  const pool = all.filter(({ claim }) => claim === undefined);
  const isWaiting = ({ use, registered }: ExclusiveEni) => use === 'free' && registered === true;
  const spare = pool.filter((eni) => isBriefSpare(eni, outside)).length;
  const used = pool.filter((eni) => eni.use !== 'free' || isWaiting(eni)).length - spare;
  const cooling = pool.filter(({ use }) => use === 'cooling').length - spare;
  const free = pool.filter((eni) => eni.use === 'free' && isUsable(eni) && !isWaiting(eni));
  const bound = used + free.length + spare;
  const needed = used - cooling + coolingDemand(cooling, maxPods) + waiting;
  const limit = Math.max(
    0,
    (warm.limit ?? Number.POSITIVE_INFINITY) - (warm.awaited ?? 0) - (all.length - pool.length),
  );
  const ready = Math.min(Math.max(bound - needed, warm.min), warm.max);
  const excess = Math.min(free.length, Math.max(0, bound - limit));
  // What cools beyond the demand is no reason to give a free one back.
  const beyondWarm = Math.min(free.length, Math.max(0, bound - used - waiting - warm.max));
  const byAge = free.toSorted((a, b) => (a.freedAtMs ?? 0) - (b.freedAtMs ?? 0) || compareTexts(a.eniId, b.eniId));
  return {
    desired: Math.min(needed + ready, limit),
    bound,
    surplus: byAge.slice(0, Math.max(excess, beyondWarm)),
    excess,
  };
}
