import type { VpcIp } from '../../../crd/vpc-ip.ts';
import type { DesiredVip, VipWrite } from './claim-decision.ts';
import type { ClaimPod, ClaimView } from './claim-view.ts';
import { isServed, type KnownAddress } from './decide-address.ts';

/**
 * Decides the VpcIPs of a claim: one for its address, written as a reservation before the cloud is asked for it. Other
 * VpcIPs without a node are deleted, and so is a reservation of an address that another claim has.
 */
export function decideVips(
  view: ClaimView,
  address: KnownAddress | undefined,
  pod: ClaimPod | undefined,
  isEnding: boolean,
): readonly VipWrite[] {
  const unused = view.vips.filter((vip) => vip.spec.ip !== address?.ip && !isOnEni(view, vip));
  const ends = unused.map((vip): VipWrite => ({ kind: 'end', vip }));
  if (address === undefined) return ends;
  const { location, vip } = address;
  // The mark on an ENI decides who owns an address; a reservation alone does not.
  if (location === undefined && view.holderOf(address.ip) !== undefined) {
    return vip === undefined ? ends : [...ends, { kind: 'end', vip }];
  }
  // The name of the VpcIP is the lock: an address of another claim is not overwritten.
  if (vip === undefined && view.holderOf(address.ip) !== undefined) return ends;
  return [...ends, { kind: 'put', desired: desiredVip(view, address, pod, isEnding), vip }];
}

function isOnEni({ locations }: ClaimView, { spec }: VpcIp): boolean {
  return locations.some(({ ip }) => ip === spec.ip);
}

function desiredVip(
  view: ClaimView,
  { ip, subnetId, vip, location }: KnownAddress,
  pod: ClaimPod | undefined,
  isEnding: boolean,
): DesiredVip {
  const conflict = location === undefined ? view.conflict : undefined;
  const { state, ip: reservedIp } = view.claim?.status?.reservation ?? {};
  const isOfSuper = pod === undefined || view.nodeOf(pod.nodeName).isSuper === true;
  const isReserved = state === 'Reserved' && reservedIp === ip && isOfSuper;
  return {
    ip,
    podUid: pod?.uid,
    subnetId,
    nodeName: location?.nodeName,
    phase: isEnding
      ? 'Releasing'
      : phaseOf(view, { location, vip, hasConflict: conflict !== undefined, isReserved }, pod),
    eniId: location?.eniId,
    assignmentId: location?.assignmentId,
    message: conflict?.message,
    conflict,
  };
}

const MOVING: readonly string[] = ['AssignPrivateIpAddresses', 'MigratePrivateIpAddress'];

function phaseOf(
  { calls, locations }: ClaimView,
  {
    location,
    vip,
    hasConflict,
    isReserved,
  }: Pick<KnownAddress, 'location' | 'vip'> & {
    readonly hasConflict: boolean;
    readonly isReserved: boolean;
  },
  pod: ClaimPod | undefined,
): DesiredVip['phase'] {
  if (location !== undefined && !location.isReleasing) return 'Assigned';
  if (calls.some(({ action }) => MOVING.includes(action))) return 'Attaching';
  // Until the node of its former agent has removed it.
  if (location !== undefined) return pod !== undefined && !isServed({ locations }, pod) ? 'Attaching' : 'Kept';
  if (hasConflict) return 'Failed';
  if (isReserved) return pod === undefined ? 'Kept' : 'Assigned';
  const before = vip?.status?.phase ?? 'Pending';
  return before === 'Pending' || before === 'Failed' ? 'Pending' : 'Kept';
}
