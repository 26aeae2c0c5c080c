import type { SubnetSupply } from './subnet-supply.ts';

/** What bounds the addresses that a new node takes of its subnets. */
export type NewNode = {
  /** Shared ENIs; 1 or more. */
  readonly maxEnis: number;
  /** Pod addresses on one shared ENI; 1 or more. */
  readonly ipsPerEni: number;
  /** Spare addresses that the node asks for before any Pod runs on it. */
  readonly warmIps: number;
};

/** Default of ipamd's --ip-min-warm-target. */
export const DEFAULT_MIN_WARM_IPS = 5;

/**
 * Counts the addresses that a new node takes: `warm` when it joins, `full` when it has as many Pods as it may have. An
 * ENI takes one itself, and is created with an address for a Pod or not at all.
 */
export function countNodeAddresses({ maxEnis, ipsPerEni, warmIps }: NewNode): {
  readonly warm: number;
  readonly full: number;
} {
  const full = maxEnis * ipsPerEni;
  const warm = Math.max(1, Math.min(warmIps, full));
  return { warm: warm + Math.ceil(warm / ipsPerEni), full: full + maxEnis };
}

/**
 * Counts the new nodes that subnets have addresses for. A node that takes its addresses from two subnets has one ENI
 * more, so each subnet counts alone: the number is never too high.
 */
export function countNodesLeft(freeBySubnet: readonly number[], addressesPerNode: number): number {
  return freeBySubnet.reduce((sum, free) => sum + Math.floor(Math.max(0, free) / addressesPerNode), 0);
}

/** Reports whether a subnet has addresses for new nodes that name no subnets. */
export function isOpenToNewNodes(supply: Pick<SubnetSupply, 'common' | 'onlyNominated' | 'blocked'>): boolean {
  return supply.common === true && supply.onlyNominated !== true && supply.blocked !== true;
}
