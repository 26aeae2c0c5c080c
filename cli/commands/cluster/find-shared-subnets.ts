import { ifKnown } from '../../../inspection/node/known.ts';
import type { ClusterFacts } from './cluster-facts.ts';
import type { SubnetSupplies } from './read-subnet-supplies.ts';

/**
 * Names the subnets of the configuration with addresses that are not those of the cluster's ENIs, a text each, where
 * nodes have podCIDRs: ipamd's event SubnetShared tells the same. Numbers of one publication, so the last call may be
 * counted by one side alone.
 */
export function findSharedSubnets(
  { nodes }: Pick<ClusterFacts, 'nodes'>,
  supplies: SubnetSupplies | undefined,
): readonly string[] {
  if (supplies === undefined || !hasPodCidrs({ nodes })) return [];
  return [...supplies.bySubnet]
    .map(([subnetId, { common, total, free, held }]) => ({ subnetId, count: common ? total - free - held : 0 }))
    .filter(({ count }) => count > 0)
    .map(
      ({ subnetId, count }) =>
        `SubnetShared: ${subnetId} has ${count} addresses that are not those of this cluster's ENIs: machines, load balancers or other clusters take what Pods may need; give ENIs of Pods a subnet of their own`,
    );
}

/** Tells whether a Node has a podCIDR: elsewhere the subnets of nodes and Pods may be the same. */
export function hasPodCidrs({ nodes }: Pick<ClusterFacts, 'nodes'>): boolean {
  return (ifKnown(nodes) ?? []).some(({ podCidrs }) => podCidrs.length > 0);
}
