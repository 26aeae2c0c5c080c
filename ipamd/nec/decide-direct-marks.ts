import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { ClaimWish } from './claim-wish.ts';
import { claimKeyOf, claimOfKey } from './direct-creation.ts';
import { awaitedWishes, directSupplyOf } from './direct-supply.ts';
import type { KeptEni } from './kept-eni.ts';
import type { NodeView } from './node-view.ts';
import { offersOf } from './offers.ts';
import { isSameData } from './same-data.ts';
import { detachingEni, isShared, withEnis } from './with-enis.ts';

/**
 * Marks exclusive ENIs for whom they are kept, before any call is decided: which Pod may use one now, which go to another
 * node, which come from one that is on no node. A uid is written only once the security groups of that Pod are in force.
 * Returns the same status when nothing changes. Pure.
 */
export function decideDirectMarks(view: NodeView, status: NodeEniConfigStatus): NodeEniConfigStatus {
  const enis = status.eniInfos ?? [];
  if (enis.every(isShared) && awaitedWishes(view, status).length === 0) return status;
  const busy = busyEnis(status);
  const marked = withEnis(
    status,
    enis.flatMap((eni) => (isShared(eni) ? [eni] : marking(view, eni, busy.has(eni.eniID)))),
  );
  return withArrivals(view, withRevived(view, marked, busy), busy);
}

/** Finds what the node has to do for the Pods that an ENI is kept for; undefined for one of the pool, or when nobody knows. */
export function wishOf({ claims }: Pick<NodeView, 'claims'>, eni: NodeEniInfo): ClaimWish | undefined {
  const key = claimKeyOf(eni);
  const wish = key === undefined ? undefined : claims?.get(key);
  return wish?.mode === 'direct-eni' ? wish : undefined;
}

/**
 * Decides the whole list of security groups, in order, that an ENI shall have: of a kept one those of the Pod that it is
 * for. Undefined: leave them; nobody uses a kept one whose Pod is gone, and the next Pod's are set before it may. Pure.
 */
export function wantedGroupsOf(view: NodeView, eni: NodeEniInfo): readonly string[] | undefined {
  if (eni.claim === undefined) return view.securityGroups;
  const wish = wishOf(view, eni);
  return wish?.want === 'here' ? (wish.securityGroupIds ?? view.securityGroups) : undefined;
}

/** Tells whether an ENI is on its way to be kept by its VpcENI alone: taken off its instance, and not to be deleted. Pure. */
export function isHandedOver(view: NodeView, eni: NodeEniInfo): boolean {
  const isOff = eni.state === 'Detaching' && eni.deviceIndex === undefined;
  return isOff && eni.claim !== undefined && wishOf(view, eni)?.want !== 'free';
}

/** Finds the kept ENI of a claim, wherever it is. Pure. */
export function keptEniOf({ keptEnis }: Pick<NodeView, 'keptEnis'>, key: string): KeptEni | undefined {
  return [...(keptEnis?.values() ?? [])].find(({ claim }) => claim === key);
}

/** ENIs that an intent is under way for. */
function busyEnis({ intents = [] }: NodeEniConfigStatus): ReadonlySet<string> {
  return new Set(intents.flatMap(({ eniID }) => (eniID === undefined ? [] : [eniID])));
}

/** The entry as it is to be; none once its VpcENI has it and no node does. */
function marking(view: NodeView, held: NodeEniInfo, isBusy: boolean): readonly NodeEniInfo[] {
  const eni = withLostMark(view, held);
  if (eni.claim === undefined) return [eni];
  const wish = wishOf(view, eni);
  if (wish?.want === 'here') return [admitted(view, eni, wish, isBusy)];
  if (!isBusy && isHandedOver(view, eni) && view.keptEnis?.get(eni.eniID)?.isFree === true) return [];
  if (wish === undefined) return [eni];
  const free = withUid(eni, undefined);
  // It never came here, and nobody waits for it any more.
  const isUnbound = eni.state === 'Attaching' && eni.deviceIndex === undefined;
  return [isUnbound && !isBusy ? detachingEni(free) : free];
}

/** After a restore the object does not know whom an ENI of its is kept for; its VpcENI does. */
function withLostMark({ keptEnis }: NodeView, eni: NodeEniInfo): NodeEniInfo {
  const kept = eni.claim === undefined ? keptEnis?.get(eni.eniID) : undefined;
  const claim = kept === undefined ? undefined : claimOfKey(kept.claim);
  return claim === undefined ? eni : { ...eni, claim };
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

/** Takes back those that were on their way off and are wanted here again, as long as there are places. */
function withRevived(view: NodeView, status: NodeEniConfigStatus, busy: ReadonlySet<string>): NodeEniConfigStatus {
  if (view.leaving !== 'no') return status;
  const isBack = (eni: NodeEniInfo) =>
    eni.state === 'Detaching' &&
    eni.deviceIndex === undefined &&
    !busy.has(eni.eniID) &&
    wishOf(view, eni)?.want === 'here';
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

/** Gives each Pod that waits an ENI that is there: its own that is on no node, else one that the pool gives back. */
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
  const claim = claimOfKey(wish.key);
  if (claim === undefined) return status;
  const enis = status.eniInfos ?? [];
  const kept = keptEniOf(view, wish.key);
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

/** Tells whether an ENI cannot come to this node: an ENI never leaves the zone of its subnet. Pure. */
export function isOtherZone({ instance }: NodeView, { zone }: KeptEni): boolean {
  return zone !== undefined && instance !== undefined && zone !== instance.zone;
}

/** What its VpcENI tells; the rest comes with the attachment. */
function entryOf(
  { eniId, mac, name, subnetId }: KeptEni,
  claim: { readonly namespace: string; readonly name: string },
): NodeEniInfo {
  const named = name === '' ? {} : { name };
  const subnet = subnetId === '' ? {} : { subnetID: subnetId };
  return { eniID: eniId, mac, mode: 'direct-eni', ...named, ...subnet, state: 'Attaching', claim, addresses: [] };
}

/** One of the pool that no Pod has and none is about to get: offered by the agent, or never attached so far. */
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
