import type { NodeView, SubnetChoice } from './node-view.ts';

/** A new ENI takes an address for itself and at least one for Pods. */
export const LEAST_FREE_IPS = 2;

/** Chooses the subnet of a new ENI: the one with most free addresses; of equals the first. Pure. */
export function chooseSubnet({ subnets, blocked }: NodeView): SubnetChoice | undefined {
  return subnets
    .filter(({ subnetId, isBlocked }) => !isBlocked && !blocked.has(`subnet/${subnetId}`))
    .filter(({ freeIps }) => freeIps >= LEAST_FREE_IPS)
    .reduce<SubnetChoice | undefined>(
      (best, one) => (best !== undefined && best.freeIps >= one.freeIps ? best : one),
      undefined,
    );
}
