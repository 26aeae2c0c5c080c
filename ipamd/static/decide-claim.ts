import { CLOUD_FINALIZER } from '../../crd/names.ts';
import { vpcIpName } from '../../crd/vpc-ip.ts';
import type { VpcIpClaim } from '../../crd/vpc-ip-claim.ts';
import { isRecord } from '../../runtime/decode.ts';
import type { ClaimPod, ClaimView } from './claim-view.ts';
import {
  decideChoice,
  findAddress,
  findObstacle,
  isServed,
  type KnownAddress,
  type Obstacle,
} from './decide-address.ts';
import { decideExpiry } from './decide-expiry.ts';
import { decideVips } from './decide-vips.ts';
import { type ClaimAddress, decideFreeing, decideKeeping, decideServing } from './decide-wishes.ts';
import type { ClaimDecision, ClaimReason, ClaimWrite, WantedClaim } from './decision.ts';
import { renderDurationMs } from './find-rule.ts';

/**
 * A hand-over that waits for another node's agent is checked at this interval, because the wait may end by time alone.
 */
const HAND_OVER_MS = 5_000;

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
  const holds = pod !== undefined && isHolder(view, claim, pod);
  if (isGoing(claim) && !holds) return decideEnd(view, claim);
  if (vips.some(isGoing) && !holds) {
    return { ...decideEnd(view, claim), claim: { kind: 'delete', why: 'its VpcIP was deleted' } };
  }
  if (pod === undefined) return decideRetained(view, claim);
  return decideServed(view, claim, pod);
}

const NOTHING = { claim: undefined, vips: [], wishes: new Map(), news: [], againMs: undefined } as const;

function isGoing({ metadata }: Pick<VpcIpClaim, 'metadata'>): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/**
 * Tells whether the address was promised to the Pod: the Pod may be using it. It cannot where no node was given the uid, for
 * a reason that stays.
 */
function isHolder(view: ClaimView, { spec }: VpcIpClaim, pod: ClaimPod): boolean {
  if (view.places.some(({ podUid }) => podUid === pod.uid)) return true;
  if (spec.podUID !== pod.uid) return false;
  const { obstacle } = evaluateAddress(view, pod);
  return obstacle === undefined || !PERMANENT_REASONS.includes(obstacle.reason);
}

/** Reasons that stay until the claim is given up. No node was told to give the Pod the address. */
const PERMANENT_REASONS: readonly ClaimReason[] = [
  'PodUnscheduled',
  'AddressElsewhere',
  'AddressTaken',
  'AddressPoolExhausted',
];

/** Decides when there is no claim: it was not created yet, or it was deleted by force. */
function decideAbsent(view: ClaimView): ClaimDecision {
  const { pod, vips, places } = view;
  if (pod !== undefined) {
    const { spec, ...rest } = servedClaim(view, undefined, pod, { reason: 'AddressAwaited', message: 'it is new' });
    return { ...NOTHING, claim: { kind: 'create', wanted: { ...rest, spec } } };
  }
  const mode = places[0]?.mode ?? 'route-eni';
  if (vips.length === 0) return { ...NOTHING, wishes: decideFreeing(view, mode) };
  if (vips.some(isGoing)) return { ...NOTHING, ...freed(view), wishes: decideFreeing(view, mode) };
  // An address without its claim must not be given up silently: it is retained like every static address.
  const message = 'its claim was gone while its VpcIP was there; it is kept';
  const wanted: WantedClaim = {
    ...retainedClaim(view, undefined, message),
    reason: 'AddressRetained',
  };
  return { ...NOTHING, claim: { kind: 'create', wanted }, wishes: decideKeeping(view, mode) };
}

/** Decides the end of a claim that no Pod uses. */
function decideEnd(view: ClaimView, claim: VpcIpClaim): ClaimDecision {
  const { places, calls, vips, hasEni, pod } = view;
  const wishes = decideFreeing(view, claim.spec.mode);
  const isFree = places.length === 0 && calls.length === 0 && !hasEni;
  if (isFree && vips.length === 0) return { ...NOTHING, claim: { kind: 'finish' }, wishes };
  const nodes = [...new Set(places.map(({ nodeName }) => nodeName))];
  const waiting = nodes.length === 0 ? '' : `; node ${nodes.join(', ')} has to give the address back`;
  const after = pod === undefined ? '' : '; the Pod that is there now gets a new one';
  const wanted: WantedClaim = {
    ...retainedClaim(view, claim, `it ends${waiting}${after}`),
    reason: 'AddressReleasing',
  };
  const status = { ...wanted.status, phase: 'Releasing' as const };
  const againMs = nodes.length === 0 ? undefined : HAND_OVER_MS;
  return { ...NOTHING, ...freed(view), claim: { kind: 'put', wanted: { ...wanted, status } }, wishes, againMs };
}

/** Deletes the VpcIPs once no node and no call has their addresses; the cloud is not asked. */
function freed(view: ClaimView): Pick<ClaimDecision, 'vips'> {
  if (view.places.length > 0 || view.calls.length > 0) {
    return { vips: decideVips(view, findAddress(view), undefined, true) };
  }
  return { vips: view.vips.map((vip) => ({ kind: 'end', vip })) };
}

/** Decides for a claim without a Pod. */
function decideRetained(view: ClaimView, claim: VpcIpClaim): ClaimDecision {
  const { places, calls, vips, hasEni, nowMs } = view;
  const address = findAddress(view);
  const wishes = decideKeeping(view, claim.spec.mode);
  const isEmpty = places.length === 0 && calls.length === 0 && vips.length === 0 && !hasEni;
  // The claim was written by a person before its Pod exists: it waits.
  if (!isOurs(claim) && isEmpty) return NOTHING;
  const wanted: WantedClaim = {
    ...retainedClaim(view, claim, 'the Pod is gone, the address waits for the next of its name'),
    reason: 'AddressRetained',
  };
  const isWritten = claim.status?.phase === 'Retained' && claim.spec.podUID === undefined;
  const put: ClaimWrite = { kind: 'put', wanted };
  const decision = { ...NOTHING, claim: put, vips: decideVips(view, address, undefined, false), wishes };
  // The Pod's uid is removed from the claim first, so that its status shows since when it is retained.
  if (!isWritten) return decision;
  const why = endOf(view, claim, isEmpty);
  if (why !== undefined) return { ...NOTHING, claim: { kind: 'delete', why }, wishes };
  const expiry = decideExpiry(view);
  const untilMs = expiry.kind === 'never' ? undefined : Math.max(0, expiry.atMs - nowMs);
  return { ...decision, againMs: places.some((one) => one.isReleasing) ? HAND_OVER_MS : untilMs };
}

/** Returns why a claim without a Pod ends; undefined while it does not. */
function endOf(view: ClaimView, { spec }: VpcIpClaim, isEmpty: boolean): string | undefined {
  if (isEmpty) return 'its Pod is gone, and it never had an address';
  if (spec.deletePolicy === 'Immediate') return 'its Pod is gone, and its policy is Immediate';
  const expiry = decideExpiry(view);
  return expiry.kind === 'at' && expiry.atMs <= view.nowMs ? 'its time to wait for a Pod is over' : undefined;
}

/** Returns the address that a claim has or is to get, and what keeps its Pod from it. */
function evaluateAddress(view: ClaimView, pod: ClaimPod) {
  const known = findAddress(view);
  const choice = known === undefined && pod.rule.mode === 'route-eni' ? decideChoice(view, pod) : undefined;
  const ip = known?.ip ?? (choice?.kind === 'this' ? choice.ip : undefined);
  const subnetId = known?.subnetId ?? (choice?.kind === 'this' ? choice.subnetId : undefined);
  const lacks = choice?.kind === 'none' ? choice.obstacle : undefined;
  return { known, ip, subnetId, obstacle: lacks ?? findObstacle(view, pod, { ip, subnetId }) };
}

/** Decides for a claim whose Pod is alive. */
function decideServed(view: ClaimView, claim: VpcIpClaim, pod: ClaimPod): ClaimDecision {
  const { known, ip, subnetId, obstacle } = evaluateAddress(view, pod);
  const chosen: KnownAddress | undefined =
    ip === undefined ? undefined : { vip: undefined, place: undefined, ...known, ip, subnetId };
  const subnetIds = subnetId === undefined ? pod.rule.subnetIds : [subnetId];
  const address: ClaimAddress = { ip, subnetIds };
  const wishes = obstacle === undefined ? decideServing(view, pod, address) : decideKeeping(view, pod.rule.mode);
  const state = obstacle ?? progressOf(view, pod);
  const wanted = servedClaim(view, claim, pod, state, chosen);
  const told = isGoing(claim) || view.vips.some(isGoing);
  const inUse = 'it is to go, and does when its Pod is gone: the Pod still has the address';
  return {
    claim: { kind: 'put', wanted: told ? withReason(wanted, 'ClaimInUse', inUse) : wanted },
    vips: decideVips(view, chosen, pod, false),
    wishes,
    news: [
      ...pod.rule.faults.map((message) => ({ reason: 'AnnotationInvalid', message }) as const),
      ...(known === undefined ? [] : passedOver(pod, known)),
    ],
    againMs: againOf(view, state),
  };
}

/** Reports a nominated address that is ignored: the address of a claim stays, whatever its Pod requests later. */
function passedOver({ rule }: ClaimPod, { ip }: KnownAddress): ClaimDecision['news'] {
  const { nominatedIp, mode } = rule;
  if (nominatedIp === undefined || nominatedIp === ip || mode !== 'route-eni') return [];
  const message = `the Pod asks for ${nominatedIp}, and its claim keeps ${ip}: delete the VpcIPClaim and the Pod to change it`;
  return [{ reason: 'NominationIgnored', message }];
}

function againOf({ taken, nowMs }: ClaimView, { reason }: Obstacle): number | undefined {
  if (reason === 'AddressTaken' && taken !== undefined) return Math.max(1, taken.untilMs - nowMs);
  const isWaiting = reason === 'HandOver' || reason === 'AddressTaken' || reason === 'AddressPoolExhausted';
  return isWaiting ? HAND_OVER_MS : undefined;
}

function progressOf(view: ClaimView, pod: ClaimPod): Obstacle {
  if (isServed(view, pod)) return { reason: 'AddressBound', message: '' };
  const other = view.places.find(({ nodeName }) => nodeName !== pod.nodeName);
  if (other === undefined) {
    const rest = view.wait === undefined ? '' : `: ${view.wait}`;
    return { reason: 'AddressAwaited', message: `node ${pod.nodeName} is being given an address${rest}` };
  }
  const what = `${other.ip ?? other.eniId} is on node ${other.nodeName}`;
  const rest = other.isReleasing ? ', and on its way to' : ', whose agent has to let go of it for';
  return { reason: 'HandOver', message: `${what}${rest} node ${pod.nodeName}` };
}

function withReason(wanted: WantedClaim, reason: ClaimReason, message: string): WantedClaim {
  return { ...wanted, reason, status: { ...wanted.status, message } };
}

const FAILED: readonly ClaimReason[] = ['AddressTaken', 'AddressPoolExhausted', 'StaticIPDisabled'];

function servedClaim(
  view: ClaimView,
  claim: VpcIpClaim | undefined,
  pod: ClaimPod,
  { reason, message }: Obstacle,
  address?: KnownAddress,
): WantedClaim {
  const { rule } = pod;
  const phase = reason === 'AddressBound' ? 'Bound' : FAILED.includes(reason) ? 'Failed' : 'Pending';
  return {
    spec: {
      podUID: pod.uid,
      mode: rule.mode,
      workload: rule.workload === undefined ? claim?.spec.workload : workloadOf(rule.workload),
      deletePolicy: rule.isKept ? 'Never' : 'Immediate',
      claimExpiredDuration: rule.expiredMs === undefined ? undefined : renderDurationMs(rule.expiredMs),
      nominatedIP: rule.nominatedIp,
      nominatedSubnetIDs: rule.subnetIds,
    },
    status: {
      phase,
      ...whereabouts(view, address),
      lastPod: claim?.status?.lastPod,
      retainedSince: undefined,
      message: message === '' ? undefined : message,
    },
    reason,
    taken: view.taken,
  };
}

function workloadOf({ kind, name, uid }: { readonly kind: string; readonly name: string; readonly uid: string }) {
  return { kind, name, uid };
}

function retainedClaim(view: ClaimView, claim: VpcIpClaim | undefined, message: string): Omit<WantedClaim, 'reason'> {
  const [namespace = '', name = ''] = view.key.split('/');
  const { spec, status } = claim ?? {};
  const lastUid = spec?.podUID;
  return {
    spec: {
      podUID: undefined,
      mode: spec?.mode ?? view.places[0]?.mode ?? 'route-eni',
      workload: spec?.workload,
      deletePolicy: spec === undefined ? 'Never' : spec.deletePolicy,
      claimExpiredDuration: spec?.claimExpiredDuration,
      nominatedIP: spec?.nominatedIP,
      nominatedSubnetIDs: spec?.nominatedSubnetIDs,
    },
    status: {
      phase: 'Retained',
      ...whereabouts(view, findAddress(view)),
      lastPod: lastUid === undefined ? status?.lastPod : { namespace, name, uid: lastUid },
      retainedSince: status?.retainedSince ?? view.nowText,
      message,
    },
    taken: view.taken,
  };
}

function whereabouts({ places }: ClaimView, address: KnownAddress | undefined) {
  const place = address?.place ?? places[0];
  const ip = address?.ip ?? place?.ip;
  return {
    vpcIPs: address === undefined ? undefined : [vpcIpName(address.ip)],
    ips: ip === undefined ? undefined : [ip],
    eniID: place?.eniId,
    nodeName: place?.nodeName,
  };
}

function isOurs(claim: VpcIpClaim): boolean {
  const metadata = claim.object['metadata'];
  const finalizers = isRecord(metadata) ? metadata['finalizers'] : undefined;
  return Array.isArray(finalizers) && finalizers.includes(CLOUD_FINALIZER);
}
