import { EMPTY_STATE, type HostState } from './desired.ts';
import { canonicalAddress, familyOf, hostPrefix } from './ip-prefix.ts';
import type { NodeNetwork } from './network.ts';
import { PRIORITY, TABLE_PODLESS } from './numbers.ts';
import { unreachableRoute } from './unreachable-route.ts';

/**
 * Plans what becomes of packets to addresses of this node that no Pod has: they are refused. The VPC leads such an address
 * here, so one that left the node again, by an ENI or by the primary interface, would come back until its TTL ends.
 *
 * The routes do not depend on Pods: those to Pods are looked up before, by rule 512 or 1024. So an ADD or DEL changes
 * nothing here, and leaves no moment without the one or the other.
 */
export function planPodless({ families, assignedIps = [] }: NodeNetwork): HostState {
  return {
    ...EMPTY_STATE,
    routes: assignedIps
      .map(canonicalAddress)
      .filter((ip) => families.includes(familyOf(ip)))
      .map((ip) => unreachableRoute(TABLE_PODLESS, hostPrefix(ip))),
    rules: families.map((family) => ({ family, priority: PRIORITY.podless, table: TABLE_PODLESS })),
  };
}
