import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { claimMarkOf } from './claim-marks.ts';
import type { ClaimWish } from './claim-wish.ts';
import { eniClaimOf } from './direct-creation.ts';
import { awaitedWishes, directSupplyOf, isFor } from './direct-supply.ts';
import type { KeptEni } from './kept-eni.ts';
import type { NodeView } from './node-view.ts';
import { offersOf } from './offers.ts';
import { isSameData } from './same-data.ts';
import { detachingEni, isShared, withEnis } from './with-enis.ts';

/**
 * Sets the claim marks of exclusive ENIs before any call is decided: which Pod may use an ENI now, which ENIs go to
 * another node, and which unattached ones come here. A uid is written only once the security groups of that Pod are
 * set. Returns the same status when nothing changes.
 */
export function decideDirectMarks(view: NodeView, status: NodeEniConfigStatus): NodeEniConfigStatus {
  const enis = status.eniInfos ?? [];
  if (enis.every(isShared) && awaitedWishes(view, status).length === 0) return withStaticPlaces(view, status);
  const busy = busyEnis(status);
  const marked = withEnis(
    status,
    enis.flatMap((eni) => (isShared(eni) ? [eni] : marking(view, eni, busy.has(eni.eniID)))),
  );
  return withStaticPlaces(view, withArrivals(view, withRevived(view, marked, busy), busy));
}

/**
 * Writes the numbers that the agent's pool has to leave for claims. A number is present only when it limits something.
 */
function withStaticPlaces(view: NodeView, status: NodeEniConfigStatus): NodeEniConfigStatus {
  const { kept, awaited, most } = directSupplyOf(view, status);
  const { staticDirectENIs: heldKept, allocatableDirectENIs: heldMost, ...rest } = status;
  const count = Math.min(kept + awaited, MOST_ENIS);
  // Otherwise the pool would use an ENI slot for a spare ENI although a Pod waits for the slot.
  const places = view.instance !== undefined && most < (view.maxDirectENI ?? 0) ? most : undefined;
  if ((heldKept ?? 0) === count && heldMost === places) return status;
  return {
    ...rest,
    ...(count === 0 ? {} : { staticDirectENIs: count }),
    ...(places === undefined ? {} : { allocatableDirectENIs: places }),
  };
}

/** The maximum of the schema. */
const MOST_ENIS = 64;

/** Finds the request of an ENI's claim; undefined for a pool ENI, or when the claim has no request. */
export function wishOf({ claims }: Pick<NodeView, 'claims'>, eni: NodeEniInfo): ClaimWish | undefined {
  const key = eniClaimOf(eni);
  const wish = key === undefined ? undefined : claims?.get(key);
  return wish?.mode === 'direct-eni' ? wish : undefined;
}

/** Tells whether the Pod of an ENI's claim is on this node and is to have this ENI. */
export function isWantedHere(view: Pick<NodeView, 'claims'>, eni: NodeEniInfo): boolean {
  const wish = wishOf(view, eni);
  return wish !== undefined && isFor(wish, eni);
}

/**
 * Decides the complete list of security groups of an ENI, in order. A static ENI gets those of its Pod. Undefined
 * leaves the groups unchanged: a static ENI without a Pod is unused, and the groups of the next Pod are set before that
 * Pod may use it.
 */
export function wantedGroupsOf(view: NodeView, eni: NodeEniInfo): readonly string[] | undefined {
  if (eni.claim === undefined) return view.securityGroups;
  const wish = wishOf(view, eni);
  return wish !== undefined && isFor(wish, eni) ? (wish.securityGroupIds ?? view.securityGroups) : undefined;
}

/**
 * Tells whether an ENI is being handed over to its VpcENI: it is static and was detached. No node deletes such an ENI,
 * because another node may have it already. The VpcENI controller deletes it once its claim has ended.
 */
export function isHandedOver({ state, deviceIndex, claim }: NodeEniInfo): boolean {
  return state === 'Detaching' && deviceIndex === undefined && claim !== undefined;
}

/** Tells whether the VpcENI has taken the ENI over, or names another node for it. */
function isTaken({ keptEnis, nodeName }: NodeView, { eniID }: NodeEniInfo): boolean {
  const kept = keptEnis?.get(eniID);
  return kept !== undefined && (kept.isAlone || (kept.nodeName !== undefined && kept.nodeName !== nodeName));
}

/** Finds the static ENI of a request's claim, wherever it is; among several the one with the required address. */
export function keptEniOf(
  { keptEnis }: Pick<NodeView, 'keptEnis'>,
  { key, ip }: Pick<ClaimWish, 'key' | 'ip'>,
): KeptEni | undefined {
  const ofClaim = [...(keptEnis?.values() ?? [])].filter(({ claim }) => claim === key);
  return ip === undefined ? ofClaim[0] : ofClaim.find(({ primaryIp }) => primaryIp === ip);
}

/** ENIs that have a call in flight. */
function busyEnis({ intents = [] }: NodeEniConfigStatus): ReadonlySet<string> {
  return new Set(intents.flatMap(({ eniID }) => (eniID === undefined ? [] : [eniID])));
}

/** Returns the updated entry; none once the VpcENI has taken the ENI over and no node has it. */
function marking(view: NodeView, held: NodeEniInfo, isBusy: boolean): readonly NodeEniInfo[] {
  const eni = withLostMark(view, held);
  if (eni.claim === undefined) return [eni];
  const wish = wishOf(view, eni);
  if (wish !== undefined && isFor(wish, eni)) return [admitted(view, eni, wish, isBusy)];
  if (!isBusy && isHandedOver(eni) && isTaken(view, eni)) return [];
  if (wish === undefined) return [eni];
  const free = withUid(eni, undefined);
  // It was never attached here, and no Pod waits for it any more.
  const isUnbound = eni.state === 'Attaching' && eni.deviceIndex === undefined;
  return [isUnbound && !isBusy ? detachingEni(free) : free];
}

/** Restores a missing claim mark: a restored object does not contain it, but the VpcENI does. */
function withLostMark({ keptEnis }: NodeView, eni: NodeEniInfo): NodeEniInfo {
  const kept = eni.claim === undefined ? keptEnis?.get(eni.eniID) : undefined;
  return kept === undefined ? eni : { ...eni, claim: claimMarkOf(kept.claim) };
}

function admitted(view: NodeView, eni: NodeEniInfo, { podUid }: ClaimWish, isBusy: boolean): NodeEniInfo {
  if (eni.claim?.uid === podUid || eni.state !== 'Attached' || isBusy) return eni;
  const wanted = wantedGroupsOf(view, eni);
  return wanted === undefined || isSameData(eni.securityGroups, wanted) ? withUid(eni, podUid) : eni;
}

function withUid(eni: NodeEniInfo, uid: string | undefined): NodeEniInfo {
  if (eni.claim === undefined || eni.claim.uid === uid) return eni;
  const { uid: _before, ...claim } = eni.claim;
  return { ...eni, claim: uid === undefined ? claim : { ...claim, uid } };
}

/** Takes back ENIs that were being detached and are requested here again, as long as ENI slots are free. */
function withRevived(view: NodeView, status: NodeEniConfigStatus, busy: ReadonlySet<string>): NodeEniConfigStatus {
  if (view.leaving !== 'no') return status;
  const isBack = (eni: NodeEniInfo) =>
    eni.state === 'Detaching' && eni.deviceIndex === undefined && !busy.has(eni.eniID) && isWantedHere(view, eni);
  return (status.eniInfos ?? []).filter(isBack).reduce((current, { eniID }) => {
    if (directSupplyOf(view, current).placesLeft === 0) return current;
    const revive = (eni: NodeEniInfo) => (eni.eniID === eniID ? revived(eni) : eni);
    return withEnis(current, (current.eniInfos ?? []).map(revive));
  }, status);
}

function revived(eni: NodeEniInfo): NodeEniInfo {
  const { assignmentID: _before, draining: _over, ...rest } = eni;
  return { ...rest, state: 'Attaching' };
}

/** Gives each waiting Pod an existing ENI: its own unattached one, else a pool ENI that the agent offers. */
function withArrivals(view: NodeView, status: NodeEniConfigStatus, busy: ReadonlySet<string>): NodeEniConfigStatus {
  if (view.leaving !== 'no') return status;
  return awaitedWishes(view, status).reduce((current, wish) => arriving(view, current, wish, busy), status);
}

function arriving(
  view: NodeView,
  status: NodeEniConfigStatus,
  wish: ClaimWish,
  busy: ReadonlySet<string>,
): NodeEniConfigStatus {
  // A call of another node may bring it an ENI: a second one would be a duplicate.
  if (view.claimCallsElsewhere?.has(wish.key) === true) return status;
  const claim = claimMarkOf(wish.key);
  const enis = status.eniInfos ?? [];
  const kept = keptEniOf(view, wish);
  if (kept !== undefined) {
    const mayCome = kept.isFree && !isOtherZone(view, kept) && directSupplyOf(view, status).placesLeft > 0;
    const isNew = !enis.some((eni) => eni.eniID === kept.eniId);
    return mayCome && isNew ? withEnis(status, [...enis, entryOf(kept, claim)]) : status;
  }
  if (wish.source !== undefined) return status;
  const own = spareOf(view, enis, wish, busy);
  if (own === undefined) return status;
  return withEnis(
    status,
    enis.map((eni) => (eni === own ? { ...eni, claim } : eni)),
  );
}

/** Tells whether an ENI cannot be used on this node: an ENI never leaves the zone of its subnet. */
export function isOtherZone({ instance }: NodeView, { zone }: KeptEni): boolean {
  return zone !== undefined && instance !== undefined && zone !== instance.zone;
}

/** Builds the entry from the fields of the VpcENI; the attachment brings the rest. */
function entryOf(
  { eniId, mac, name, primaryIp, subnetId, gateway, subnetCidr }: KeptEni,
  claim: { readonly namespace: string; readonly name: string },
): NodeEniInfo {
  const named = name === '' ? {} : { name };
  const place = { primaryIP: primaryIp, gateway, subnetID: subnetId, subnetCIDR: subnetCidr };
  return { eniID: eniId, mac, mode: 'direct-eni', ...named, ...place, state: 'Attaching', claim, addresses: [] };
}

/** Finds a pool ENI that no Pod has or is about to get: offered by the agent, or never attached. */
function spareOf(
  view: NodeView,
  enis: readonly NodeEniInfo[],
  wish: ClaimWish,
  busy: ReadonlySet<string>,
): NodeEniInfo | undefined {
  const offers = offersOf(view);
  const isNew = (eni: NodeEniInfo) => eni.state === 'Attaching' && eni.assignmentID === undefined;
  const spare = enis
    .filter((eni) => !isShared(eni) && eni.claim === undefined && eni.draining !== true)
    .filter((eni) => !busy.has(eni.eniID) && !view.stuck.has(eni.eniID))
    .filter((eni) => fits(eni, wish) && (offers.isEniOffered(eni) || isNew(eni)));
  return spare.find(offers.isEniOffered) ?? spare[0];
}

function fits({ primaryIP = '', subnetID = '' }: NodeEniInfo, { ip, ips, subnetIds }: ClaimWish): boolean {
  if (ip !== undefined && ip !== primaryIP) return false;
  return (ips?.includes(primaryIP) ?? true) && (subnetIds?.includes(subnetID) ?? true);
}
