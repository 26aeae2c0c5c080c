import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { NodeView } from './node-view.ts';

/**
 * Reports whether a subnet is nominated-only: the pool gets no address there, nor does a Pod that does not name the
 * subnet, though the node may have an ENI there for another Pod. A subnet that the node itself may use never is.
 */
export function isReservedSubnet(view: NodeView, subnetId: string | undefined): boolean {
  if (isOwnSubnet(view, subnetId)) return false;
  const { reservedSubnets, claimSubnets = [] } = view;
  return reservedSubnets?.has(subnetId ?? '') === true || claimSubnets.some((one) => one.subnetId === subnetId);
}

/**
 * Reports whether an ENI serves only Pods that name its subnet: one of a nominated-only subnet, or one that a Pod of
 * before named. The latter has no address of the pool, where one of a subnet that was the node's own has some.
 */
export function isReservedEni(view: NodeView, { subnetID, addresses = [] }: NodeEniInfo): boolean {
  if (isOwnSubnet(view, subnetID)) return false;
  return isReservedSubnet(view, subnetID) || addresses.every(({ claim }) => claim !== undefined);
}

function isOwnSubnet({ subnets }: NodeView, subnetId: string | undefined): boolean {
  return subnetId === undefined || subnets.some((one) => one.subnetId === subnetId);
}
