import type { RouteState, RuleState } from './desired.ts';
import { canonicalAddress, familyOf, hostPrefix } from './ip-prefix.ts';
import { POD_UNREACHABLE_METRIC, PRIORITY, TABLE_MAIN } from './numbers.ts';
import { unreachableRoute } from './unreachable-route.ts';

/**
 * Plans the two rules of each address of a Pod: packets to it find its link by the table main, packets from it leave by
 * the table of its ENI. The first is needed with the second: without it a packet between two Pods of the node leaves by
 * an ENI, comes back, matches the second again, and leaves again until its TTL ends.
 */
export function planPodRules(ips: readonly string[], eniTable: number): readonly RuleState[] {
  return ips.map(canonicalAddress).flatMap((ip): readonly RuleState[] => [
    { family: familyOf(ip), priority: PRIORITY.toPod, dst: hostPrefix(ip), table: TABLE_MAIN },
    { family: familyOf(ip), priority: PRIORITY.fromPod, src: hostPrefix(ip), table: eniTable },
  ]);
}

/**
 * Plans the routes that refuse packets which `to <pod> lookup main` catches and no route to the Pod's link leads: when the
 * link went with the Pod's namespace they would leave by main's default route, and come back. Only for Pods that have a
 * route of their own address: a wider one to them would be passed over.
 */
export function planLinklessRoutes(ips: readonly string[]): readonly RouteState[] {
  return ips.map(canonicalAddress).map((ip) => unreachableRoute(TABLE_MAIN, hostPrefix(ip), POD_UNREACHABLE_METRIC));
}
