import { countNodeAddresses, countNodesLeft } from '../../crd/new-node.ts';

/** A subnet in which new ENIs may be; one that the cloud reported as full is blocked. */
export type OpenSubnet = { readonly zone: string; readonly freeIps: number; readonly isBlocked: boolean };

/**
 * Counts the new nodes that subnets of each zone have addresses for, a node with one ENI and its warm addresses. A subnet
 * that the cloud reported as full has none. A zone of `zones` without a subnet has 0.
 */
export function countNodesByZone(
  open: readonly OpenSubnet[],
  zones: Iterable<string>,
  minWarmIps: number,
): ReadonlyMap<string, number> {
  // With one ENI: the types of new nodes are not known here.
  const { warm } = countNodeAddresses({ maxEnis: 1, ipsPerEni: Math.max(1, minWarmIps), warmIps: minWarmIps });
  const counts = new Map([...zones].map((zone) => [zone, 0]));
  for (const { zone, freeIps, isBlocked } of open)
    counts.set(zone, (counts.get(zone) ?? 0) + (isBlocked ? 0 : countNodesLeft([freeIps], warm)));
  return counts;
}
