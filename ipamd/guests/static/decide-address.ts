import type { VpcIp } from '../../../crd/vpc-ip.ts';
import type { ClaimReason } from './claim-decision.ts';
import type { ClaimLocation, ClaimPod, ClaimView, IpHolder } from './claim-view.ts';
import { findFreeAddress } from './find-free-address.ts';

/** The address of a claim. */
export type KnownAddress = {
  readonly ip: string;
  readonly subnetId: string | undefined;
  readonly vip: VpcIp | undefined;
  readonly location: ClaimLocation | undefined;
};

/** Why a claim cannot have an address now, for people. */
export type Obstacle = { readonly reason: ClaimReason; readonly message: string };

/**
 * Finds the address of a claim: the one that a node has for it, else the one that a VpcIP reserves, else the one that
 * the VPC reserves. Among several the
 * one on the Pod's node comes first.
 */
export function selectAddress(view: ClaimView): KnownAddress | undefined {
  const onEnis = view.locations.filter(({ mode }) => mode === 'route-eni');
  const onNode = onEnis.find((one) => one.nodeName === view.pod?.nodeName && !one.isReleasing);
  const location = onNode ?? onEnis[0];
  const vipOf = (ip: string) => view.vips.find((vip) => vip.spec.ip === ip);
  if (location?.ip !== undefined) {
    const subnetId = location.subnetId ?? view.subnetOf(location.ip);
    return { ip: location.ip, subnetId, vip: vipOf(location.ip), location };
  }
  const listed = view.claim?.status?.ips ?? [];
  const vip = listed.map(vipOf).find((one) => one !== undefined) ?? view.vips[0];
  if (vip === undefined) {
    const { state, ip, subnetID } = view.claim?.status?.reservation ?? {};
    if (state !== 'Reserved' || ip === undefined) return undefined;
    return { ip, subnetId: subnetID, vip: undefined, location: undefined };
  }
  return { ip: vip.spec.ip, subnetId: vip.spec.subnetID ?? view.subnetOf(vip.spec.ip), vip, location: undefined };
}

/** The address for a claim without one. */
type Choice =
  /** Any address that the cloud assigns. */
  | { readonly kind: 'any' }
  | { readonly kind: 'this'; readonly ip: string; readonly subnetId: string | undefined }
  | { readonly kind: 'none'; readonly obstacle: Obstacle };

/**
 * Decides the address of a claim that has none: the one that its Pod runs with, as after the loss of its former claim; else
 * the one that its Pod requests, else the first free one of its pool.
 */
export function decideChoice(view: ClaimView, { rule, ip }: ClaimPod): Choice {
  const { nominatedIp, pool } = rule;
  if (ip !== undefined) {
    const holder = view.holderOf(ip);
    if (holder === undefined) return { kind: 'this', ip, subnetId: view.subnetOf(ip) };
    return none('AddressTaken', `${ip}, which the Pod runs with, is of ${holderText(holder)}`);
  }
  if (nominatedIp !== undefined) {
    const holder = view.holderOf(nominatedIp);
    if (holder === undefined && view.isRegistered?.(nominatedIp) === true) {
      return none('AddressTaken', `${nominatedIp}, which the Pod asks for, is still a target of a load balancer`);
    }
    if (holder === undefined) return { kind: 'this', ip: nominatedIp, subnetId: view.subnetOf(nominatedIp) };
    return none('AddressTaken', `${nominatedIp}, which the Pod asks for, is of ${holderText(holder)}`);
  }
  if (pool === undefined) return { kind: 'any' };
  const zone = view.pod === undefined ? undefined : view.nodeOf(view.pod.nodeName).zone;
  const free = (view.findFree ?? findFreeAddress)(view, pool, zone);
  if (free !== undefined) return { kind: 'this', ...free };
  const where = zone === undefined ? '' : ` in zone ${zone}`;
  return none('AddressPoolExhausted', `none of the ${pool.length} addresses of its StaticIPConfig is free${where}`);
}

function holderText({ kind, key }: IpHolder): string {
  return `${kind === 'claim' ? 'VpcIPClaim' : 'Pod'} ${key}`;
}

function none(reason: ClaimReason, message: string): Choice {
  return { kind: 'none', obstacle: { reason, message } };
}

/** Actions that bring an address to an ENI of the node that requested them. */
const ASSIGNING: readonly string[] = ['AssignPrivateIpAddresses', 'MigratePrivateIpAddress'];
const ATTACHING: readonly string[] = ['CreateNetworkInterface', 'AttachNetworkInterface'];

/** Finds why a Pod's node cannot be given the address. */
export function evaluateObstacle(
  view: ClaimView,
  pod: ClaimPod,
  address: { readonly ip: string | undefined; readonly subnetId: string | undefined },
): Obstacle | undefined {
  if (pod.nodeName === '') return { reason: 'PodUnscheduled', message: 'the Pod has no node yet' };
  // A Pod keeps the address that it has: later changes apply to later Pods.
  if (isServed(view, pod)) return undefined;
  if (pod.ip !== undefined && pod.rule.mode === 'route-eni' && address.ip !== undefined && address.ip !== pod.ip) {
    const message = `the Pod runs with ${pod.ip}, and its claim is of ${address.ip}: delete the VpcIPClaim, and the next one is of ${pod.ip}`;
    return { reason: 'AddressElsewhere', message };
  }
  const node = view.nodeOf(pod.nodeName);
  if (!node.enableStaticIp && pod.rule.isStatic) {
    const message = `node ${pod.nodeName} gives no static addresses: spec.enableStaticIP is not set in its NodeENIConfig`;
    return { reason: 'StaticIPDisabled', message };
  }
  if (view.conflict !== undefined && view.conflict.waitMs > 0) {
    return { reason: 'AddressTaken', message: view.conflict.message };
  }
  return compareZones(view, pod, address) ?? findCallElsewhere(view, pod);
}

/** Reports whether a Pod's node has the address for it. */
export function isServed({ locations }: Pick<ClaimView, 'locations'>, pod: ClaimPod): boolean {
  return locations.some(
    (one) => one.nodeName === pod.nodeName && one.podUid === pod.uid && one.isAttached && !one.isReleasing,
  );
}

/** Finds a mismatch of zones: a subnet belongs to one zone, and an ENI is in the zone of its instance. */
function compareZones(
  { nodeOf, zoneOf }: ClaimView,
  { nodeName, rule }: ClaimPod,
  { ip, subnetId }: { readonly ip: string | undefined; readonly subnetId: string | undefined },
): Obstacle | undefined {
  const { zone } = nodeOf(nodeName);
  if (ip !== undefined && subnetId === undefined) {
    return { reason: 'AddressElsewhere', message: `${ip} is of no subnet that ipamd knows` };
  }
  const ids = subnetId === undefined ? rule.subnetIds : [subnetId];
  if (zone === undefined || ids === undefined || ids.some((id) => [zone, undefined].includes(zoneOf(id)))) {
    return undefined;
  }
  const zones = ids.map((id) => `${id} in zone ${zoneOf(id)}`).join(', ');
  const what = ip === undefined ? 'the subnets that the Pod accepts are' : `${ip} is of`;
  return { reason: 'AddressElsewhere', message: `${what} ${zones}, node ${nodeName} in zone ${zone}` };
}

function findCallElsewhere({ calls }: ClaimView, { nodeName, rule }: ClaimPod): Obstacle | undefined {
  const conflicting = rule.mode === 'direct-eni' ? [...ASSIGNING, ...ATTACHING] : ASSIGNING;
  const call = calls.find((one) => one.nodeName !== nodeName && conflicting.includes(one.action));
  if (call === undefined) return undefined;
  const message = `${call.action} for node ${call.nodeName} is under way and has to end first`;
  return { reason: 'HandOver', message };
}
