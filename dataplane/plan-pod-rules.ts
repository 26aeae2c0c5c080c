import type { RuleState } from './desired.ts';
import { canonicalAddress, familyOf, hostPrefix } from './ip-prefix.ts';
import { PRIORITY, TABLE_MAIN } from './numbers.ts';

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
