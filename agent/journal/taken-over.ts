import type { PodNetwork } from '../../dataplane/network.ts';
import type { LeaseKey } from './lease.ts';
import type { Supply } from './supply.ts';

/**
 * Removes from a Pod the addresses that the next Pod of its name has taken over on another node. Undefined when none is
 * left.
 */
export function withoutTakenOver(supply: Supply | undefined, key: LeaseKey, pod: PodNetwork): PodNetwork | undefined {
  const taken = new Set((supply?.takenOver ?? []).filter(({ leaseKey }) => leaseKey === key).map(({ ip }) => ip));
  if (taken.size === 0) return pod;
  const ips = pod.ips.filter((ip) => !taken.has(ip));
  return ips.length === 0 ? undefined : { ...pod, ips };
}
