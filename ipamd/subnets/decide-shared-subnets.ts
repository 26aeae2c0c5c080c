import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { countSubnetUsage } from '../../crd/subnet-supply.ts';
import type { SubnetState } from './subnet-cache.ts';

/** A subnet with addresses that are in use and are not those of the cluster's ENIs. */
export type SharedSubnet = { readonly subnetId: string; readonly foreignIps: number };

/** What decides. */
export type SharedFacts = {
  readonly subnets: readonly Pick<SubnetState, 'subnetId' | 'freeIps' | 'totalIps'>[];
  /** Subnets of the cluster's configuration; only these are looked at. */
  readonly configured: readonly string[];
  /** Of all NodeENIConfigs. */
  readonly statuses: Iterable<NodeEniConfigStatus>;
};

/**
 * Finds the subnets of the configuration that others use too: machines, among them the cluster's own nodes, load balancers,
 * other clusters. What NodeENIConfigs have, or have on record to request, is the cluster's. For a moment the numbers may
 * disagree, as they were read at different times.
 */
export function decideSharedSubnets({ subnets, configured, statuses }: SharedFacts): readonly SharedSubnet[] {
  const own = new Map<string, number>();
  for (const status of statuses)
    for (const { subnetId, count } of countSubnetUsage(status)) own.set(subnetId, (own.get(subnetId) ?? 0) + count);
  return subnets
    .filter(({ subnetId }) => configured.includes(subnetId))
    .map(({ subnetId, totalIps, freeIps }) => ({
      subnetId,
      foreignIps: totalIps - freeIps - (own.get(subnetId) ?? 0),
    }))
    .filter(({ foreignIps }) => foreignIps > 0);
}
