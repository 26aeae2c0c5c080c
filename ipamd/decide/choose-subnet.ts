import type { NodeView, SubnetChoice } from './node-view.ts';

/** Minimum of free addresses for a new ENI: one for the ENI itself and one for a Pod. */
export const MIN_FREE_IPS = 2;

/** Selects the subnet of a new ENI: the one with the most free addresses; among equals the first. */
export function chooseSubnet({ subnets, blocked }: NodeView): SubnetChoice | undefined {
  return subnets
    .filter(({ subnetId, isBlocked }) => !isBlocked && !blocked.has(`subnet/${subnetId}`))
    .filter(({ freeIps }) => freeIps >= MIN_FREE_IPS)
    .reduce<SubnetChoice | undefined>(
      (best, one) => (best !== undefined && best.freeIps >= one.freeIps ? best : one),
      undefined,
    );
}
