import type { NodeView } from './node-view.ts';

/**
 * Reports whether a subnet is nominated-only: the pool gets no address there, nor does a Pod that does not name the
 * subnet, though the node may have an ENI there for another Pod. A subnet that the node itself may use never is.
 */
export function isReservedSubnet(
  { subnets, reservedSubnets, claimSubnets = [] }: NodeView,
  subnetId: string | undefined,
): boolean {
  if (subnetId === undefined || subnets.some((one) => one.subnetId === subnetId)) return false;
  return reservedSubnets?.has(subnetId) === true || claimSubnets.some((one) => one.subnetId === subnetId);
}
