import type { VpcIp } from '../../crd/vpc-ip.ts';
import type { ClaimPod, ClaimView } from './claim-view.ts';
import { isServed, type KnownAddress } from './decide-address.ts';
import type { VipWrite, WantedVip } from './decision.ts';

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
  const spare = view.vips.filter((vip) => vip.spec.ip !== address?.ip && !isPlaced(view, vip));
  const ends = spare.map((vip): VipWrite => ({ kind: 'end', vip }));
  if (address === undefined) return ends;
  const { place, vip } = address;
  // The mark on an ENI decides who owns an address; a reservation alone does not.
  if (place === undefined && view.holderOf(address.ip) !== undefined) {
    return vip === undefined ? ends : [...ends, { kind: 'end', vip }];
  }
  // The name of the VpcIP is the lock: an address of another claim is not overwritten.
  if (vip === undefined && view.holderOf(address.ip) !== undefined) return ends;
  return [...ends, { kind: 'put', wanted: wantedVip(view, address, pod, isEnding), vip }];
}

function isPlaced({ places }: ClaimView, { spec }: VpcIp): boolean {
  return places.some(({ ip }) => ip === spec.ip);
}

function wantedVip(
  view: ClaimView,
  { ip, subnetId, vip, place }: KnownAddress,
  pod: ClaimPod | undefined,
  isEnding: boolean,
): WantedVip {
  const taken = place === undefined ? view.taken : undefined;
  return {
    ip,
    podUid: pod?.uid,
    subnetId,
    nodeName: place?.nodeName,
    phase: isEnding ? 'Releasing' : phaseOf(view, { place, vip, isTaken: taken !== undefined }, pod),
    eniId: place?.eniId,
    assignmentId: place?.assignmentId,
    message: taken?.message,
    taken,
  };
}

const MOVING: readonly string[] = ['AssignPrivateIpAddresses', 'MigratePrivateIpAddress'];

function phaseOf(
  { calls, places }: ClaimView,
  { place, vip, isTaken }: Pick<KnownAddress, 'place' | 'vip'> & { readonly isTaken: boolean },
  pod: ClaimPod | undefined,
): WantedVip['phase'] {
  if (place !== undefined && !place.isReleasing) return 'Assigned';
  if (calls.some(({ action }) => MOVING.includes(action))) return 'Attaching';
  // Until the node of its former agent has removed it.
  if (place !== undefined) return pod !== undefined && !isServed({ places }, pod) ? 'Attaching' : 'Kept';
  if (isTaken) return 'Failed';
  const before = vip?.status?.phase ?? 'Pending';
  return before === 'Pending' || before === 'Failed' ? 'Pending' : 'Kept';
}
