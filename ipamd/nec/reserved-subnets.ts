import type { NodeView } from './node-view.ts';

/**
 * Tells whether a subnet is for those alone who name it: the pool takes no address there, nor does a Pod that names none,
 * though the node may have an ENI there for another. One that the node itself may use never is. Pure.
 */
export function isReservedSubnet(
  { subnets, reservedSubnets, claimSubnets = [] }: NodeView,
  subnetId: string | undefined,
): boolean {
  if (subnetId === undefined || subnets.some((one) => one.subnetId === subnetId)) return false;
  return reservedSubnets?.has(subnetId) === true || claimSubnets.some((one) => one.subnetId === subnetId);
}
