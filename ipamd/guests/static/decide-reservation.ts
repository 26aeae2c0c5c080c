import type { ClaimDecision, ClaimReason } from './claim-decision.ts';
import type { ClaimView } from './claim-view.ts';
import { selectAddress } from './decide-address.ts';

/** What is to be done with the reservation of a claim's address in the VPC. */
export type ReservationStep =
  | { readonly kind: 'none' }
  | { readonly kind: 'reserve'; readonly order: ReservationOrder }
  | { readonly kind: 'release' };

/** The address to reserve; without `ip` any of the subnet. */
export type ReservationOrder = {
  readonly vpcId: string;
  readonly subnetId: string;
  readonly ip: string | undefined;
};

const NONE: ReservationStep = { kind: 'none' };
const RELEASE: ReservationStep = { kind: 'release' };
/** States of a claim in which its Pod on a super node may have the address. */
const AWAITING: readonly ClaimReason[] = ['AddressAwaited', 'AddressBound', 'HandOver', 'ClaimInUse'];

/**
 * Decides the step for the reservation of a claim, beside the decision for the claim itself.
 *
 * An address is reserved once no ENI and no call has it: the cloud refuses the reservation of an address in use. A
 * reservation stays until the claim ends, also while an ENI has the address, so that the address can leave the ENI
 * again without being free. One that is for another address, or was not finished before the reason was gone, is
 * released.
 */
export function decideReservation(view: ClaimView, decision: Pick<ClaimDecision, 'claim' | 'vips'>): ReservationStep {
  const { claim, locations, calls } = view;
  const { claim: write } = decision;
  if (claim === undefined || write?.kind !== 'put') return NONE;
  const present = claim.status?.reservation;
  const isOnEni = locations.length > 0 || calls.length > 0;
  if (write.desired.status.phase === 'Releasing') return present === undefined || isOnEni ? NONE : RELEASE;
  const wanted = decision.vips.find((one) => one.kind === 'put')?.desired;
  const ip = wanted?.ip ?? selectAddress(view)?.ip;
  if (present !== undefined && present.state === 'Releasing') return isOnEni ? NONE : RELEASE;
  const isOther = present?.ip !== undefined && ip !== undefined && present.ip !== ip;
  if (isOther) return RELEASE;
  if (present?.state === 'Reserved') return NONE;
  // An address that left its ENI for a reservation is reserved to the end, also when the Pod is gone meanwhile.
  const isBegun = present?.ip !== undefined && view.pod === undefined && claim.spec.deletePolicy === 'Never';
  if (!isBegun && !isWanted(view, decision)) return present === undefined ? NONE : RELEASE;
  if (isOnEni) return NONE;
  // A recorded reservation is finished as it was recorded: the call may have been sent.
  if (present !== undefined) {
    return { kind: 'reserve', order: { vpcId: present.vpcID, subnetId: present.subnetID, ip: present.ip } };
  }
  const subnet = ip === undefined ? chooseSubnet(view) : subnetOf(view, wanted?.subnetId ?? view.subnetOf(ip), ip);
  return subnet === undefined ? NONE : { kind: 'reserve', order: { ...subnet, ip } };
}

/** Reports whether the address is to be reserved: for the Pod of a super node, or for the next Pod of a name. */
function isWanted(view: ClaimView, { claim: write }: Pick<ClaimDecision, 'claim'>): boolean {
  const { claim, pod } = view;
  if (claim === undefined || write?.kind !== 'put' || claim.spec.mode !== 'route-eni') return false;
  if (pod !== undefined) {
    const isSuper = view.nodeOf(pod.nodeName).isSuper === true && pod.rule.isStatic && pod.rule.mode === 'route-eni';
    return isSuper && claim.spec.podUID === pod.uid && AWAITING.includes(write.desired.reason);
  }
  return isReservedBetweenPods(view);
}

/** Reports whether the address of a claim without a Pod is reserved rather than kept on an ENI. */
export function isReservedBetweenPods({ claim, pod, reservesStatic: reservesKept, vips }: ClaimView): boolean {
  if (reservesKept !== true || claim === undefined || pod !== undefined || vips.length === 0) return false;
  const { deletePolicy, mode, podUID } = claim.spec;
  return deletePolicy === 'Never' && mode === 'route-eni' && podUID === undefined && claim.status?.phase === 'Retained';
}

type SubnetRef = { readonly vpcId: string; readonly subnetId: string };

/** Reports whether a Pod, or the rule that selects it, names an address of a subnet that is not for Pods. */
export function isRefused({ pod, isOffered }: ClaimView, subnetId: string | undefined, ip: string): boolean {
  const { nominatedIp, pool } = pod?.rule ?? {};
  const isNamed = nominatedIp === ip || (nominatedIp === undefined && pool !== undefined);
  return isNamed && subnetId !== undefined && !isOffered(subnetId, true);
}

/** Returns the subnet of an address; undefined: unknown, or the Pod names an address of a subnet that is not for Pods. */
function subnetOf(view: ClaimView, subnetId: string | undefined, ip: string): SubnetRef | undefined {
  const found = view.subnets?.find((one) => one.subnetId === subnetId);
  if (isRefused(view, subnetId, ip)) return undefined;
  return found === undefined ? undefined : { vpcId: found.vpcId, subnetId: found.subnetId };
}

/**
 * Chooses the subnet for a Pod of a super node that has no address yet: of the subnets for Pods, its own and its zone's, the one
 * with most free addresses.
 */
export function chooseSubnet(view: ClaimView): SubnetRef | undefined {
  const { subnets = [], pod, nodeOf } = view;
  if (pod === undefined) return undefined;
  const { zone } = nodeOf(pod.nodeName);
  const { subnetIds } = pod.rule;
  const suitable = subnets.filter(
    (one) =>
      (subnetIds === undefined || subnetIds.includes(one.subnetId)) &&
      view.isOffered(one.subnetId, subnetIds !== undefined) &&
      (zone === undefined || zone === one.zone) &&
      one.freeIps > 0 &&
      !one.isBlocked,
  );
  const [best] = suitable.toSorted((one, other) => other.freeIps - one.freeIps);
  return best === undefined ? undefined : { vpcId: best.vpcId, subnetId: best.subnetId };
}
