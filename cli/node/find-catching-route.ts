import type { RouteMessage } from '../../netlink/route-message.ts';
import type { RuleMessage } from '../../netlink/rule-message.ts';
import { RT_TABLE_LOCAL, RTM_F_CLONED, RTN_THROW } from '../../netlink/uapi/rtnetlink.ts';
import { bitsOf, holds } from '../explain/find-prefix.ts';

/**
 * Finds a route by which the table of a rule takes packets of Pods: one for everything, or one to a Pod; undefined when
 * the rule lets them go on to the next. The local table takes what is the node's own, wherever its rule stands (Cilium
 * moves it), and a throw route takes nothing.
 */
export function findCatchingRoute(
  routes: readonly RouteMessage[],
  rule: Pick<RuleMessage, 'table' | 'family' | 'suppressPrefixlength'>,
  podIps: readonly string[],
): RouteMessage | undefined {
  if (rule.table === RT_TABLE_LOCAL) return undefined;
  const shortest = rule.suppressPrefixlength ?? -1;
  return routes.find(
    ({ table, family, flags, type, dst }) =>
      table === rule.table &&
      family === rule.family &&
      (flags & RTM_F_CLONED) === 0 &&
      type !== RTN_THROW &&
      bitsOf(dst) > shortest &&
      (bitsOf(dst) === 0 || podIps.some((ip) => holds(dst, ip))),
  );
}
