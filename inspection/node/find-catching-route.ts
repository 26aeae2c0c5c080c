import type { RouteMessage } from '../../netlink/route-message.ts';
import type { RuleMessage } from '../../netlink/rule-message.ts';
import { RT_TABLE_LOCAL, RTM_F_CLONED, RTN_THROW } from '../../netlink/uapi/rtnetlink.ts';
import { prefixBits, prefixContains } from './prefix-contains.ts';

/**
 * Finds a route in a rule's table that matches packets of Pods: a default route, or a route to a Pod. Undefined when
 * the packets go on to the next rule. The local table only matches the node's own addresses, wherever its rule is
 * (Cilium moves it), and a throw route matches no packet.
 */
export function findCatchingRoute(
  routes: readonly RouteMessage[],
  rule: Pick<RuleMessage, 'table' | 'family' | 'suppressPrefixlength'>,
  podIps: readonly string[],
): RouteMessage | undefined {
  if (rule.table === RT_TABLE_LOCAL) return undefined;
  const minLength = rule.suppressPrefixlength ?? -1;
  return routes.find(
    ({ table, family, flags, type, dst }) =>
      table === rule.table &&
      family === rule.family &&
      (flags & RTM_F_CLONED) === 0 &&
      type !== RTN_THROW &&
      prefixBits(dst) > minLength &&
      (prefixBits(dst) === 0 || podIps.some((ip) => prefixContains(dst, ip))),
  );
}
