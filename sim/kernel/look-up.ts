import type { RouteQuery } from '../../netlink/request.ts';
import {
  FIB_RULE_INVERT,
  FR_ACT_BLACKHOLE,
  FR_ACT_NOP,
  FR_ACT_PROHIBIT,
  FR_ACT_TO_TBL,
  FR_ACT_UNREACHABLE,
} from '../../netlink/uapi/fib-rules.ts';
import { RTN_THROW, RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import { type Family, linkNamed, type Netns, type Route, type Rule } from './netns.ts';
import { isWithin, parsePrefix } from './prefix.ts';
import { notModelled, Refusal } from './refusal.ts';

/** What a route is looked up for; `minScope`: a wider one does not count. */
type Query = RouteQuery & { readonly minScope?: number };

/**
 * Looks a destination up in one table: the longest prefix, of the same the first; undefined when the table has none.
 */
export function lookUpIn(netns: Netns, family: Family, id: number, query: Query): Route | undefined {
  const table = netns.tables[family].get(id);
  if (table === undefined) return undefined;
  let found: Route | undefined;
  let longest = -1;
  for (const [prefix, leaf] of table) {
    const length = prefix === '' ? 0 : parsePrefix(prefix).length;
    if (length <= longest || !isWithin(query.dst, prefix === '' ? undefined : prefix)) continue;
    const route = leaf.find((one) => fits(one, family, query));
    if (route === undefined) continue;
    found = route;
    longest = length;
  }
  return found;
}

/**
 * Looks a destination up by rules and tables, as for a packet; undefined when no table has a route.
 * @throws Refusal where a rule refuses
 */
export function lookUp(netns: Netns, family: Family, query: Query): Route | undefined {
  for (const rule of netns.rules[family]) {
    if (!applies(netns, rule, query)) continue;
    switch (rule.action) {
      case FR_ACT_TO_TBL: {
        const found = lookUpIn(netns, family, rule.table, query);
        if (found !== undefined && found.type !== RTN_THROW && !isSuppressed(rule, found)) return found;
        break;
      }
      case FR_ACT_NOP:
        break;
      case FR_ACT_BLACKHOLE:
        throw new Refusal('EINVAL');
      case FR_ACT_UNREACHABLE:
        throw new Refusal('ENETUNREACH');
      case FR_ACT_PROHIBIT:
        throw new Refusal('EACCES');
      default:
        throw notModelled(`rule with the action ${rule.action}`);
    }
  }
  return undefined;
}

function fits(route: Route, family: Family, { oif, minScope, tos = 0 }: Query): boolean {
  if (family === 4 && minScope !== undefined && route.scope < minScope) return false;
  if (route.tos !== 0 && route.tos !== tos) return false;
  return oif === undefined || route.oif === oif || (route.oif === undefined && route.type !== RTN_UNICAST);
}

function applies(netns: Netns, rule: Rule, query: Query): boolean {
  for (const name of ['ipProto', 'sportRange', 'dportRange', 'uidRange', 'l3mdev', 'tunId'] as const)
    if (rule[name] !== undefined && !(name === 'l3mdev' && rule[name] === 0)) throw notModelled(`rule with ${name}`);
  const { fwmark = 0, fwmask = 0 } = rule;
  const isMatch =
    isWithin(query.dst, rule.dst) &&
    (rule.src === undefined || (query.src !== undefined && isWithin(query.src, rule.src))) &&
    ((query.mark ?? 0) & fwmask) >>> 0 === (fwmark & fwmask) >>> 0 &&
    (rule.tos === 0 || rule.tos === (query.tos ?? 0)) &&
    // What the node itself sends comes in by lo.
    (rule.iifname === undefined || linkNamed(netns, rule.iifname)?.ifindex === (query.iif ?? 1)) &&
    (rule.oifname === undefined || linkNamed(netns, rule.oifname)?.ifindex === query.oif);
  return isMatch !== ((rule.flags & FIB_RULE_INVERT) !== 0);
}

function isSuppressed({ suppressPrefixlength }: Rule, { dst }: Route): boolean {
  if (suppressPrefixlength === undefined) return false;
  return (dst === undefined ? 0 : parsePrefix(dst).length) <= suppressPrefixlength;
}
