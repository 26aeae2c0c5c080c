import { CLOUD_FINALIZER } from '../../../crd/names.ts';
import { vpcIpName } from '../../../crd/vpc-ip.ts';
import type { VpcIpClaim } from '../../../crd/vpc-ip-claim.ts';
import { recordOf } from '../../../runtime/json.ts';
import { refOfKey } from '../../cache/pod-facts.ts';
import type { ClaimDecision, ClaimReason, ClaimWrite, DesiredClaim } from './claim-decision.ts';
import type { ClaimPod, ClaimView } from './claim-view.ts';
import {
  decideChoice,
  evaluateObstacle,
  isServed,
  type KnownAddress,
  type Obstacle,
  selectAddress,
} from './decide-address.ts';
import { decideExpiry, findExpiryFaults } from './decide-expiry.ts';
import { type ClaimAddress, decideFreeing, decideLeaving, decideRetaining, decideServing } from './decide-requests.ts';
import { chooseSubnet, isRefused, isReservedBetweenPods } from './decide-reservation.ts';
import { decideVips } from './decide-vips.ts';
import { findAllocation } from './pod-allocation.ts';
import { renderDurationMs } from './read-claim-pod.ts';

/**
 * A hand-over that waits for another node's agent is checked at this interval, because the wait may end by time alone.
 */
const HANDOVER_RECHECK_MS = 5_000;

/** No change of the claim's own objects shows that a load balancer has its address no more. */
const TARGET_RECHECK_MS = 10_000;

/**
 * Decides what is to be done for one claim.
 *
 * A claim binds an address to a Pod name; the Pod's uid is only a fence. `spec.podUID` is written before any node gets
 * the uid, and an address goes to another node only when its old node has released it. A claim that ends stays until no
 * node and no call has its address. A Pod that uses the address keeps the claim from ending; a Pod that cannot get the
 * address does not.
 */
export function decideClaim(view: ClaimView): ClaimDecision {
  const { claim, pod, vips } = view;
  if (claim === undefined) return decideAbsent(view);
  const mayUse = pod !== undefined && mayUseAddress(view, claim, pod);
  if (isBeingDeleted(claim) && !mayUse) return decideEnd(view, claim);
  if (vips.some(isBeingDeleted) && !mayUse) {
    return { ...decideEnd(view, claim), claim: { kind: 'delete', why: 'its VpcIP was deleted' } };
  }
  if (pod === undefined) return decideRetained(view, claim);
  return decideServed(view, claim, pod);
}

const NOTHING = { claim: undefined, vips: [], requests: new Map(), notices: [], recheckMs: undefined } as const;

function isBeingDeleted({ metadata }: Pick<VpcIpClaim, 'metadata'>): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/**
 * Reports whether the address was promised to the Pod: the Pod may be using it. It cannot where no node was given the uid, for
 * a reason that stays.
 */
function mayUseAddress(view: ClaimView, { spec }: VpcIpClaim, pod: ClaimPod): boolean {
  if (view.locations.some(({ podUid }) => podUid === pod.uid)) return true;
  if (spec.podUID !== pod.uid) return false;
  const { obstacle } = evaluateAddress(view, pod);
  return obstacle === undefined || !PERMANENT_REASONS.includes(obstacle.reason);
}

/** Reasons that stay until the claim is given up. No node was asked to give the Pod the address. */
const PERMANENT_REASONS: readonly ClaimReason[] = [
  'PodUnscheduled',
  'AddressElsewhere',
  'AddressTaken',
  'AddressPoolExhausted',
];

/** Decides when there is no claim: it was not created yet, or it was deleted by force. */
function decideAbsent(view: ClaimView): ClaimDecision {
  const { pod, vips, locations } = view;
  if (pod !== undefined) {
    const { spec, ...rest } = servedClaim(view, undefined, pod, { reason: 'AddressAwaited', message: 'it is new' });
    return { ...NOTHING, claim: { kind: 'create', desired: { ...rest, spec } } };
  }
  const mode = locations[0]?.mode ?? 'route-eni';
  const { restMs } = view;
  if (restMs !== undefined && (vips.length === 0 || vips.some(isBeingDeleted))) {
    const kept = vips.length === 0 ? [] : decideVips(view, selectAddress(view), undefined, true);
    return { ...NOTHING, vips: kept, requests: decideRetaining(view, mode), recheckMs: restMs };
  }
  if (vips.length === 0) return { ...NOTHING, requests: decideFreeing(view, mode) };
  if (vips.some(isBeingDeleted)) return { ...NOTHING, ...releasedVips(view), requests: decideFreeing(view, mode) };
  // An address without its claim must not be given up silently: it is retained like every static address.
  const message = 'the claim was absent although its VpcIP exists; the address is retained';
  const desired: DesiredClaim = {
    ...retainedClaim(view, undefined, message),
    reason: 'AddressRetained',
  };
  return { ...NOTHING, claim: { kind: 'create', desired }, requests: decideRetaining(view, mode) };
}

/** Decides the end of a claim that no Pod uses. */
function decideEnd(view: ClaimView, claim: VpcIpClaim): ClaimDecision {
  const { locations, calls, vips, hasEni, pod } = view;
  const targets = targetsOf(view, claim);
  if (targets.length > 0)
    return decideWaiting(view, claim, `no load balancer has ${targets.join(', ')} as a target`, TARGET_RECHECK_MS);
  const requests = decideFreeing(view, claim.spec.mode);
  const isReserved = claim.status?.reservation !== undefined;
  const isFree = locations.length === 0 && calls.length === 0 && !hasEni && !isReserved;
  if (isFree && vips.length === 0) return { ...NOTHING, claim: { kind: 'finish' }, requests };
  const nodes = [...new Set(locations.map(({ nodeName }) => nodeName))];
  if (view.restMs !== undefined) {
    const since = nodes.length === 0 ? '' : ` after node ${nodes.join(', ')} let go of it`;
    return decideWaiting(view, claim, `its address has rested for 2 minutes${since}`, view.restMs);
  }
  const problem = view.reservationProblem === undefined ? '' : `: ${view.reservationProblem}`;
  const reserved = isReserved ? `; the VPC has to give the reserved address back${problem}` : '';
  const waiting = nodes.length === 0 ? reserved : `; node ${nodes.join(', ')} has to give the address back`;
  const after = pod === undefined ? '' : '; the Pod that is there now gets a new one';
  const desired: DesiredClaim = {
    ...retainedClaim(view, claim, `it ends${waiting}${after}`),
    reason: 'AddressReleasing',
  };
  const status = { ...desired.status, phase: 'Releasing' as const };
  const recheckMs = nodes.length === 0 ? undefined : HANDOVER_RECHECK_MS;
  return {
    ...NOTHING,
    ...releasedVips(view),
    claim: { kind: 'put', desired: { ...desired, status } },
    requests,
    recheckMs,
  };
}

/** Lists the addresses of a claim without a Pod that load balancers may still have. */
function targetsOf({ locations, vips, isRegistered }: ClaimView, { status }: VpcIpClaim): readonly string[] {
  if (isRegistered === undefined) return [];
  const ofEnis = locations.flatMap(({ ip }) => ip ?? []);
  const all = new Set([...ofEnis, ...vips.map(({ spec }) => spec.ip), ...(status?.ips ?? [])]);
  return [...all].filter(isRegistered);
}

/** Decides for a claim that ends once another name may have its address: until then it keeps what it has. */
function decideWaiting(view: ClaimView, claim: VpcIpClaim, until: string, recheckMs: number): ClaimDecision {
  const desired: DesiredClaim = { ...retainedClaim(view, claim, `it ends when ${until}`), reason: 'AddressReleasing' };
  const requests = decideRetaining(view, claim.spec.mode);
  return { ...NOTHING, claim: { kind: 'put', desired }, requests, recheckMs };
}

/** Deletes the VpcIPs once no node and no call has their addresses; the cloud is not asked. */
function releasedVips(view: ClaimView): Pick<ClaimDecision, 'vips'> {
  if (view.locations.length > 0 || view.calls.length > 0) {
    return { vips: decideVips(view, selectAddress(view), undefined, true) };
  }
  return { vips: view.vips.map((vip) => ({ kind: 'end', vip })) };
}

/** Decides for a claim without a Pod. */
function decideRetained(view: ClaimView, claim: VpcIpClaim): ClaimDecision {
  const { locations, calls, vips, hasEni } = view;
  const address = selectAddress(view);
  const requests = isReservedBetweenPods(view)
    ? decideLeaving(view, claim.spec.mode)
    : decideRetaining(view, claim.spec.mode);
  const isReserved = claim.status?.reservation !== undefined;
  const isEmpty = locations.length === 0 && calls.length === 0 && vips.length === 0 && !hasEni && !isReserved;
  // The claim was written by a person before its Pod exists: it waits.
  if (!isOurs(claim) && isEmpty) return NOTHING;
  const desired: DesiredClaim = {
    ...retainedClaim(view, claim, 'the Pod is gone, the address waits for the next of its name'),
    reason: 'AddressRetained',
  };
  const isWritten = claim.status?.phase === 'Retained' && claim.spec.podUID === undefined;
  const put: ClaimWrite = { kind: 'put', desired };
  const notices = findExpiryFaults(vips);
  const decision = { ...NOTHING, claim: put, vips: decideVips(view, address, undefined, false), requests, notices };
  // The Pod's uid is removed from the claim first, so that its status shows since when it is retained.
  if (!isWritten) return decision;
  const why = endReasonOf(view, claim, isEmpty);
  // While the address rests, the next Pod of the name may have it.
  if (why !== undefined && view.restMs !== undefined && !isEmpty) {
    const message = `${why}: it ends when its address has rested for 2 minutes`;
    const resting: DesiredClaim = { ...retainedClaim(view, claim, message), reason: 'AddressRetained' };
    return { ...decision, claim: { kind: 'put', desired: resting }, recheckMs: view.restMs };
  }
  if (why !== undefined) return { ...NOTHING, claim: { kind: 'delete', why }, requests };
  const expiry = decideExpiry(view);
  const untilMs = expiry.kind === 'never' ? undefined : Math.max(0, expiry.leftMs);
  return { ...decision, recheckMs: locations.some((one) => one.isReleasing) ? HANDOVER_RECHECK_MS : untilMs };
}

/** Returns why a claim without a Pod ends; undefined while it does not. */
function endReasonOf(view: ClaimView, { spec }: VpcIpClaim, isEmpty: boolean): string | undefined {
  if (isEmpty) return 'its Pod is gone, and it never had an address';
  if (spec.deletePolicy === 'Immediate') return 'its Pod is gone, and its policy is Immediate';
  const expiry = decideExpiry(view);
  return expiry.kind === 'in' && expiry.leftMs <= 0 ? 'its time to wait for a Pod is over' : undefined;
}

/** Returns the address that a claim has or is to get, and what keeps its Pod from it. */
function evaluateAddress(view: ClaimView, pod: ClaimPod) {
  const known = selectAddress(view);
  const choice = known === undefined && pod.rule.mode === 'route-eni' ? decideChoice(view, pod) : undefined;
  const ip = known?.ip ?? (choice?.kind === 'this' ? choice.ip : undefined);
  const subnetId = known?.subnetId ?? (choice?.kind === 'this' ? choice.subnetId : undefined);
  const lacks = choice?.kind === 'none' ? choice.obstacle : undefined;
  return { known, ip, subnetId, obstacle: lacks ?? evaluateObstacle(view, pod, { ip, subnetId }) };
}

/** Decides for a claim whose Pod is alive. */
function decideServed(view: ClaimView, claim: VpcIpClaim, pod: ClaimPod): ClaimDecision {
  const { known, ip, subnetId, obstacle } = evaluateAddress(view, pod);
  const chosen: KnownAddress | undefined =
    ip === undefined ? undefined : { vip: undefined, location: undefined, ...known, ip, subnetId };
  const subnetIds = subnetId === undefined ? pod.rule.subnetIds : [subnetId];
  const address: ClaimAddress = { ip, subnetIds };
  const isSuper = view.nodeOf(pod.nodeName).isSuper === true;
  const serving = isSuper ? decideLeaving(view, pod.rule.mode) : decideServing(view, pod, address);
  const requests = obstacle === undefined ? serving : decideRetaining(view, pod.rule.mode);
  const state = obstacle ?? (isSuper ? publicationOf(view, pod) : progressOf(view, pod));
  const desired = servedClaim(view, claim, pod, state, chosen);
  const isEnding = isBeingDeleted(claim) || view.vips.some(isBeingDeleted);
  const inUse = 'its deletion was requested; it ends when its Pod, which still has the address, is deleted';
  return {
    claim: { kind: 'put', desired: isEnding ? withReason(desired, 'ClaimInUse', inUse) : desired },
    vips: decideVips(view, chosen, pod, false),
    requests,
    notices: [
      ...pod.rule.faults.map((message) => ({ reason: 'AnnotationInvalid', message }) as const),
      ...(known === undefined ? [] : ignoredNomination(pod, known)),
      ...findExpiryFaults(view.vips),
    ],
    recheckMs: recheckMsOf(view, state),
  };
}

/** Reports a nominated address that is ignored: the address of a claim stays, whatever its Pod requests later. */
function ignoredNomination({ rule }: ClaimPod, { ip }: KnownAddress): ClaimDecision['notices'] {
  const { nominatedIp, mode } = rule;
  if (nominatedIp === undefined || nominatedIp === ip || mode !== 'route-eni') return [];
  const message = `the Pod asks for ${nominatedIp}, and its claim keeps ${ip}: delete the VpcIPClaim and the Pod to change it`;
  return [{ reason: 'NominationIgnored', message }];
}

function recheckMsOf({ conflict }: ClaimView, { reason }: Obstacle): number | undefined {
  if (reason === 'AddressTaken' && conflict !== undefined) return Math.max(1, conflict.waitMs);
  const isWaiting = reason === 'HandOver' || reason === 'AddressTaken' || reason === 'AddressPoolExhausted';
  return isWaiting ? HANDOVER_RECHECK_MS : undefined;
}

function progressOf(view: ClaimView, pod: ClaimPod): Obstacle {
  if (isServed(view, pod)) return { reason: 'AddressBound', message: '' };
  const other = view.locations.find(({ nodeName }) => nodeName !== pod.nodeName);
  if (other === undefined) {
    if (view.wait?.isNodeFull === true) return { reason: 'NodeFull', message: nodeFullText(pod, view.wait.message) };
    const rest = view.wait === undefined ? '' : `: ${view.wait.message}`;
    return { reason: 'AddressAwaited', message: `node ${pod.nodeName} is being given an address${rest}` };
  }
  const what = `${other.ip ?? other.eniId} is on node ${other.nodeName}`;
  const rest = other.isReleasing ? ', and on its way to' : ', whose agent has to let go of it for';
  return { reason: 'HandOver', message: `${what}${rest} node ${pod.nodeName}` };
}

const NO_SUBNET =
  'no subnet of the ConfigMap, or of those that the Pod accepts, is in the zone of the node and has a free address';

/** Returns the progress of a Pod on a super node: its address leaves the ENIs, is reserved, and written into the Pod. */
function publicationOf(view: ClaimView, { nodeName, allocation, rule }: ClaimPod): Obstacle {
  const [other] = view.locations;
  if (other !== undefined) {
    const what = `${other.ip ?? other.eniId} is on node ${other.nodeName}`;
    return { reason: 'HandOver', message: `${what}, whose agent has to let go of it for super node ${nodeName}` };
  }
  const expected = findAllocation(view);
  if (expected !== undefined && expected === allocation) return { reason: 'AddressBound', message: '' };
  const ip = selectAddress(view)?.ip ?? rule.nominatedIp;
  const isSubnetKnown = ip !== undefined || rule.pool !== undefined;
  const isOfMachines = ip !== undefined && isRefused(view, view.subnetOf(ip), ip);
  const lacks = isOfMachines
    ? `${ip} is of ${view.subnetOf(ip)}, which is no subnet of the ConfigMap`
    : isSubnetKnown || chooseSubnet(view) !== undefined
      ? undefined
      : NO_SUBNET;
  const problem = view.reservationProblem ?? lacks;
  const rest = problem === undefined ? '' : `: ${problem}`;
  return { reason: 'AddressAwaited', message: `the address is being reserved for super node ${nodeName}${rest}` };
}

function nodeFullText({ nodeName }: ClaimPod, why: string): string {
  return `node ${nodeName} has no place for it: ${why}; delete this Pod, so that it goes to another node, or a Pod or VpcIPClaim of the node that is not needed`;
}

function withReason(desired: DesiredClaim, reason: ClaimReason, message: string): DesiredClaim {
  return { ...desired, reason, status: { ...desired.status, message } };
}

const FAILED: readonly ClaimReason[] = ['AddressTaken', 'AddressPoolExhausted', 'StaticIPDisabled'];

function servedClaim(
  view: ClaimView,
  claim: VpcIpClaim | undefined,
  pod: ClaimPod,
  { reason, message }: Obstacle,
  address?: KnownAddress,
): DesiredClaim {
  const { rule } = pod;
  const phase = reason === 'AddressBound' ? 'Bound' : FAILED.includes(reason) ? 'Failed' : 'Pending';
  return {
    spec: {
      podUID: pod.uid,
      mode: rule.mode,
      workload: rule.workload === undefined ? claim?.spec.workload : workloadOf(rule.workload),
      deletePolicy: rule.isStatic ? 'Never' : 'Immediate',
      claimExpiredDuration: rule.expiredMs === undefined ? undefined : renderDurationMs(rule.expiredMs),
      nominatedIP: rule.nominatedIp,
      nominatedSubnetIDs: rule.subnetIds,
    },
    status: {
      phase,
      ...locationFieldsOf(view, address),
      lastPod: claim?.status?.lastPod,
      retainedSince: undefined,
      message: message === '' ? undefined : message,
    },
    reason,
    conflict: view.conflict,
    ...(view.nodeOf(pod.nodeName).isSuper === true ? { published: publishedOf(pod, reason, message) } : {}),
  };
}

function publishedOf({ uid }: ClaimPod, reason: ClaimReason, message: string): NonNullable<DesiredClaim['published']> {
  const isPublished = reason === 'AddressBound';
  return { isPublished, message: isPublished ? `annotation of the Pod with uid ${uid}` : message };
}

function workloadOf({ kind, name, uid }: { readonly kind: string; readonly name: string; readonly uid: string }) {
  return { kind, name, uid };
}

function retainedClaim(view: ClaimView, claim: VpcIpClaim | undefined, message: string): Omit<DesiredClaim, 'reason'> {
  const { spec, status } = claim ?? {};
  const lastUid = spec?.podUID;
  return {
    spec: {
      podUID: undefined,
      mode: spec?.mode ?? view.locations[0]?.mode ?? 'route-eni',
      workload: spec?.workload,
      deletePolicy: spec === undefined ? 'Never' : spec.deletePolicy,
      claimExpiredDuration: spec?.claimExpiredDuration,
      nominatedIP: spec?.nominatedIP,
      nominatedSubnetIDs: spec?.nominatedSubnetIDs,
    },
    status: {
      phase: 'Retained',
      ...locationFieldsOf(view, selectAddress(view)),
      lastPod: lastUid === undefined ? status?.lastPod : { ...refOfKey(view.key), uid: lastUid },
      retainedSince: status?.retainedSince ?? view.nowText,
      message,
    },
    conflict: view.conflict,
  };
}

function locationFieldsOf({ locations }: ClaimView, address: KnownAddress | undefined) {
  const location = address?.location ?? locations[0];
  const ip = address?.ip ?? location?.ip;
  return {
    vpcIPs: address === undefined ? undefined : [vpcIpName(address.ip)],
    ips: ip === undefined ? undefined : [ip],
    eniID: location?.eniId,
    nodeName: location?.nodeName,
  };
}

function isOurs(claim: VpcIpClaim): boolean {
  const metadata = claim.object['metadata'];
  const finalizers = recordOf(metadata)['finalizers'];
  return Array.isArray(finalizers) && finalizers.includes(CLOUD_FINALIZER);
}
