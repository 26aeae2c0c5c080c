import { ON_LINK_ENI_ID } from '../journal/supply.ts';
import type { PoolAddress } from '../pool/pool-state.ts';
import type { NodeState } from '../state/node-state.ts';

/**
 * Lists the addresses that surely are this node's, whether a Pod has one or not: ipamd takes none from here that the agent
 * has not offered. Left out are those whose rules a main plugin keeps, for its route to the Pod may come after ours, and
 * those that another program has on this node.
 */
export function assignedIps({ pool, leases, role }: Pick<NodeState, 'pool' | 'leases' | 'role'>): readonly string[] {
  // With the role uplinks the offers are ipamd's, and each address has rules of its own.
  if (role === 'uplinks') return [];
  const ofOthers = new Set(
    [...leases.values()].flatMap(({ uplink, addresses }) => (uplink === true ? addresses.map(({ ip }) => ip) : [])),
  );
  return [...pool.state.addresses.values()]
    .filter(isHere)
    .flatMap(({ ip }) => (ofOthers.has(ip) || pool.state.strangers?.has(ip) === true ? [] : [ip]));
}

function isHere({ next, ...address }: PoolAddress): boolean {
  const { eniId, supplyState } = next ?? address;
  return supplyState === 'assigned' && !address.offered && eniId !== ON_LINK_ENI_ID;
}
