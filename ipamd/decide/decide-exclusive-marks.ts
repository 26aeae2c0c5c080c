import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { claimMarkOf, eniClaimOf } from './claim-marks.ts';
import type { ClaimRequest } from './claim-request.ts';
import { countSlots } from './count-slots.ts';
import { KINDS } from './eni-kinds.ts';
import type { NodeView } from './node-view.ts';
import { offersOf } from './offers.ts';
import { matchesEni, openEniRequests } from './open-requests.ts';
import { isSameData } from './same-data.ts';
import type { StaticEni } from './static-eni.ts';
import { detachingEni, isShared, withEnis } from './with-enis.ts';

/**
 * Sets the claim marks of exclusive ENIs before any call is decided: which Pod may use an ENI now, which ENIs go to
 * another node, and which unattached ones come here. A uid is written only once the security groups of that Pod are
 * set. Returns the same status when nothing changes.
 */
export function decideExclusiveMarks(view: NodeView, status: NodeEniConfigStatus): NodeEniConfigStatus {
  const enis = status.eniInfos ?? [];
  if (enis.every(isShared) && openEniRequests(KINDS.exclusive, view, status).length === 0)
    return withStaticEniCount(view, status);
  const busy = busyEnis(status);
  const marked = withEnis(
    status,
    enis.flatMap((eni) => (isShared(eni) ? [eni] : updateMark(view, eni, busy.has(eni.eniID)))),
  );
  return withStaticEniCount(view, withAssignedEnis(view, withReattached(view, marked, busy), busy));
}

/**
 * Writes the numbers that the agent's pool has to leave for claims. A number is present only when it limits something.
 */
function withStaticEniCount(view: NodeView, status: NodeEniConfigStatus): NodeEniConfigStatus {
  const { claimed, maxEnis } = countSlots(KINDS.exclusive, view, status);
  const { staticDirectENIs: staticBefore, allocatableDirectENIs: mostBefore, ...rest } = status;
  const count = Math.min(claimed, MAX_ENIS);
  // Otherwise the pool would use an ENI slot for a spare ENI although a Pod waits for the slot.
  const allocatable = view.instance !== undefined && maxEnis < (view.maxDirectENI ?? 0) ? maxEnis : undefined;
  if ((staticBefore ?? 0) === count && mostBefore === allocatable) return status;
  return {
    ...rest,
    ...(count === 0 ? {} : { staticDirectENIs: count }),
    ...(allocatable === undefined ? {} : { allocatableDirectENIs: allocatable }),
  };
}

/** The maximum of the schema. */
const MAX_ENIS = 64;

/** Finds the request of an ENI's claim; undefined for a pool ENI, or when the claim has no request. */
export function requestOf({ claims }: Pick<NodeView, 'claims'>, eni: NodeEniInfo): ClaimRequest | undefined {
  const key = eniClaimOf(eni);
  const request = key === undefined ? undefined : claims?.get(key);
  return request?.mode === 'direct-eni' ? request : undefined;
}

/** Reports whether the Pod of an ENI's claim is on this node and is to have this ENI. */
export function isRequestedHere(view: Pick<NodeView, 'claims'>, eni: NodeEniInfo): boolean {
  const request = requestOf(view, eni);
  return request !== undefined && matchesEni(request, eni);
}

/**
 * Decides the complete list of security groups of an ENI, in order. A static ENI gets those of its Pod. An ENI whose
 * groups were taken away gets them back once nothing says any more which it should have. Undefined leaves the groups unchanged: a static ENI without a Pod is unused, and the groups of the next Pod are set before that
 * Pod may use it.
 */
export function desiredGroupsOf(view: NodeView, eni: NodeEniInfo): readonly string[] | undefined {
  const ofNode = view.securityGroups ?? eni.clearedSecurityGroups;
  if (eni.claim === undefined) return ofNode;
  const request = requestOf(view, eni);
  return request !== undefined && matchesEni(request, eni) ? (request.securityGroupIds ?? ofNode) : undefined;
}

/**
 * Reports whether an ENI is being handed over to its VpcENI: it is static and was detached. No node deletes such an ENI,
 * because another node may have it already. The VpcENI controller deletes it once its claim has ended.
 */
export function isHandedOver({ state, deviceIndex, claim }: NodeEniInfo): boolean {
  return state === 'Detaching' && deviceIndex === undefined && claim !== undefined;
}

/** Reports whether the VpcENI has taken the ENI over, or names another node for it. */
function isTakenOver({ staticEnis, nodeName }: NodeView, { eniID }: NodeEniInfo): boolean {
  const staticEni = staticEnis?.get(eniID);
  return (
    staticEni !== undefined &&
    (staticEni.isDetached || (staticEni.nodeName !== undefined && staticEni.nodeName !== nodeName))
  );
}

/** Finds the static ENI of a request's claim, wherever it is; among several the one with the required address. */
export function staticEniOf(
  { staticEnis }: Pick<NodeView, 'staticEnis'>,
  { key, ip }: Pick<ClaimRequest, 'key' | 'ip'>,
): StaticEni | undefined {
  const ofClaim = [...(staticEnis?.values() ?? [])].filter(({ claim }) => claim === key);
  return ip === undefined ? ofClaim[0] : ofClaim.find(({ primaryIp }) => primaryIp === ip);
}

/** ENIs that have a call in flight. */
function busyEnis({ intents = [] }: NodeEniConfigStatus): ReadonlySet<string> {
  return new Set(intents.flatMap(({ eniID }) => (eniID === undefined ? [] : [eniID])));
}

/** Returns the updated entry; none once the VpcENI has taken the ENI over and no node has it. */
function updateMark(view: NodeView, current: NodeEniInfo, isBusy: boolean): readonly NodeEniInfo[] {
  const eni = withRestoredMark(view, current);
  if (eni.claim === undefined) return [eni];
  const request = requestOf(view, eni);
  if (request !== undefined && matchesEni(request, eni)) return [withPodOnceReady(view, eni, request, isBusy)];
  if (!isBusy && isHandedOver(eni) && isTakenOver(view, eni)) return [];
  if (request === undefined) return [eni];
  const free = withUid(eni, undefined);
  // It was never attached here, and no Pod waits for it any more.
  const isUnbound = eni.state === 'Attaching' && eni.deviceIndex === undefined;
  return [isUnbound && !isBusy ? detachingEni(free) : free];
}

/** Restores a missing claim mark: a restored object does not contain it, but the VpcENI does. */
function withRestoredMark({ staticEnis }: NodeView, eni: NodeEniInfo): NodeEniInfo {
  const staticEni = eni.claim === undefined ? staticEnis?.get(eni.eniID) : undefined;
  return staticEni === undefined ? eni : { ...eni, claim: claimMarkOf(staticEni.claim) };
}

function withPodOnceReady(view: NodeView, eni: NodeEniInfo, { podUid }: ClaimRequest, isBusy: boolean): NodeEniInfo {
  if (eni.claim?.uid === podUid || eni.state !== 'Attached' || isBusy) return eni;
  const desired = desiredGroupsOf(view, eni);
  return desired === undefined || isSameData(eni.securityGroups, desired) ? withUid(eni, podUid) : eni;
}

function withUid(eni: NodeEniInfo, uid: string | undefined): NodeEniInfo {
  if (eni.claim === undefined || eni.claim.uid === uid) return eni;
  const { uid: _before, ...claim } = eni.claim;
  return { ...eni, claim: uid === undefined ? claim : { ...claim, uid } };
}

/** Takes back ENIs that were being detached and are requested here again, as long as ENI slots are free. */
function withReattached(view: NodeView, status: NodeEniConfigStatus, busy: ReadonlySet<string>): NodeEniConfigStatus {
  if (view.leaving !== 'no') return status;
  const isRequestedAgain = (eni: NodeEniInfo) =>
    eni.state === 'Detaching' && eni.deviceIndex === undefined && !busy.has(eni.eniID) && isRequestedHere(view, eni);
  return (status.eniInfos ?? []).filter(isRequestedAgain).reduce((current, { eniID }) => {
    if (countSlots(KINDS.exclusive, view, current).freeEnis === 0) return current;
    const reattach = (eni: NodeEniInfo) => (eni.eniID === eniID ? reattached(eni) : eni);
    return withEnis(current, (current.eniInfos ?? []).map(reattach));
  }, status);
}

function reattached(eni: NodeEniInfo): NodeEniInfo {
  const { assignmentID: _before, draining: _over, ...rest } = eni;
  return { ...rest, state: 'Attaching' };
}

/** Gives each waiting Pod an existing ENI: its own unattached one, else a pool ENI that the agent offers. */
function withAssignedEnis(view: NodeView, status: NodeEniConfigStatus, busy: ReadonlySet<string>): NodeEniConfigStatus {
  if (view.leaving !== 'no') return status;
  return openEniRequests(KINDS.exclusive, view, status).reduce(
    (current, request) => withAssignedEni(view, current, request, busy),
    status,
  );
}

function withAssignedEni(
  view: NodeView,
  status: NodeEniConfigStatus,
  request: ClaimRequest,
  busy: ReadonlySet<string>,
): NodeEniConfigStatus {
  // A call of another node may bring it an ENI: a second one would be a duplicate.
  if (view.claimCallsElsewhere?.has(request.key) === true) return status;
  const claim = claimMarkOf(request.key);
  const enis = status.eniInfos ?? [];
  const staticEni = staticEniOf(view, request);
  if (staticEni !== undefined) {
    const isAttachable =
      staticEni.isAttachable && !isOtherZone(view, staticEni) && countSlots(KINDS.exclusive, view, status).freeEnis > 0;
    const isNew = !enis.some((eni) => eni.eniID === staticEni.eniId);
    return isAttachable && isNew ? withEnis(status, [...enis, entryOf(staticEni, claim)]) : status;
  }
  if (request.source !== undefined) return status;
  const poolEni = sparePoolEniOf(view, enis, request, busy);
  if (poolEni === undefined) return status;
  return withEnis(
    status,
    enis.map((eni) => (eni === poolEni ? { ...eni, claim } : eni)),
  );
}

/** Reports whether an ENI cannot be used on this node: an ENI never leaves the zone of its subnet. */
export function isOtherZone({ instance }: NodeView, { zone }: StaticEni): boolean {
  return zone !== undefined && instance !== undefined && zone !== instance.zone;
}

/** Builds the entry from the fields of the VpcENI; the attachment brings the rest. */
function entryOf(
  { eniId, mac, name, primaryIp, subnetId, gateway, subnetCidr }: StaticEni,
  claim: { readonly namespace: string; readonly name: string },
): NodeEniInfo {
  const named = name === '' ? {} : { name };
  const network = { primaryIP: primaryIp, gateway, subnetID: subnetId, subnetCIDR: subnetCidr };
  return { eniID: eniId, mac, mode: 'direct-eni', ...named, ...network, state: 'Attaching', claim, addresses: [] };
}

/** Finds a pool ENI that no Pod has or is about to get: offered by the agent, or never attached. */
function sparePoolEniOf(
  view: NodeView,
  enis: readonly NodeEniInfo[],
  request: ClaimRequest,
  busy: ReadonlySet<string>,
): NodeEniInfo | undefined {
  const offers = offersOf(view);
  const isNew = (eni: NodeEniInfo) => eni.state === 'Attaching' && eni.assignmentID === undefined;
  const spare = enis
    .filter((eni) => !isShared(eni) && eni.claim === undefined && eni.draining !== true)
    .filter((eni) => !busy.has(eni.eniID) && !view.stuck.has(eni.eniID))
    .filter((eni) => fits(eni, request) && (offers.isEniOffered(eni) || isNew(eni)));
  return spare.find(offers.isEniOffered) ?? spare[0];
}

function fits({ primaryIP = '', subnetID = '' }: NodeEniInfo, { ip, ips, subnetIds }: ClaimRequest): boolean {
  if (ip !== undefined && ip !== primaryIP) return false;
  return (ips?.includes(primaryIP) ?? true) && (subnetIds?.includes(subnetID) ?? true);
}
