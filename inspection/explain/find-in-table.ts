import { addressFamily } from '../../dataplane/address-family.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import { AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { RTN_BLACKHOLE, RTN_PROHIBIT, RTN_THROW, RTN_UNREACHABLE, RTNH_F_DEAD } from '../../netlink/uapi/rtnetlink.ts';
import type { NetnsFacts } from '../node/node-facts.ts';
import { prefixBits, prefixContains } from '../node/prefix-contains.ts';
import type { Flow } from './flow.ts';
import { IPV4_TOS_MASK } from './match-rule.ts';

/** A next hop of a route. A multipath route has several; the kernel selects one by a hash of the flow. */
export type NextHop = { readonly oif: number; readonly gateway?: string };

/** Result of the lookup in one table. */
export type TableAnswer =
  | { readonly kind: 'route'; readonly route: RouteMessage; readonly nexthops: readonly NextHop[] }
  | { readonly kind: 'refused'; readonly route: RouteMessage; readonly code: RefusalCode }
  /** No route matches, or a throw route does: the next rule follows. */
  | { readonly kind: 'nothing'; readonly route?: RouteMessage };

/** Errors that the kernel returns instead of a route. EINVAL: it drops the packet silently. */
export type RefusalCode = 'ENETUNREACH' | 'EHOSTUNREACH' | 'EACCES' | 'EINVAL';

const REFUSALS: Readonly<Record<number, RefusalCode>> = {
  [RTN_BLACKHOLE]: 'EINVAL',
  [RTN_UNREACHABLE]: 'EHOSTUNREACH',
  [RTN_PROHIBIT]: 'EACCES',
};

/**
 * Score that IPv6 gives a route by the link of its next hop, and by its router preference.
 * @see net/ipv6/route.c rt6_score_route
 */
const DEVICE_SCORE = 2;
const PREFERENCE_SHIFT = 2;
/**
 * Score by router preference. The codes are 0 for medium, 1 for high, 3 (that is -1) for low; the kernel compares them
 * shifted by one.
 */
const PREFERENCES: Readonly<Record<number, number>> = { 0: 2, 1: 3, 3: 1 };

/**
 * Looks up a packet in a table: the longest prefix wins, then for IPv4 the TOS, then the metric; dead next hops are
 * skipped. The kernel also reports next hops without carrier as dead where ignore_routes_with_linkdown is set. The
 * state of neighbours is ignored, although an IPv6 host (not a router) prefers reachable routers.
 * @see net/ipv4/fib_trie.c fib_table_lookup, net/ipv6/route.c fib6_table_lookup, net/ipv4/fib_semantics.c
 * fib_nexthop_info
 */
export function findInTable(facts: Pick<NetnsFacts, 'routes'>, table: number, flow: Flow): TableAnswer {
  for (const route of candidates(facts.routes, table, flow)) {
    if (route.type === RTN_THROW) return { kind: 'nothing', route };
    const code = REFUSALS[route.type];
    if (code !== undefined) return { kind: 'refused', route, code };
    const nexthops = usableHops(route, flow);
    if (nexthops.length > 0) return { kind: 'route', route, nexthops };
  }
  return { kind: 'nothing' };
}

/** Returns the routes that contain the destination, in the order in which they are tried. */
function candidates(routes: readonly RouteMessage[], table: number, flow: Flow): readonly RouteMessage[] {
  const family = addressFamily(flow.family);
  const found = routesOf(routes, family, table).filter(
    (route) =>
      prefixContains(route.dst, flow.dst) &&
      (prefixBits(route.src) === 0 || (flow.src !== undefined && prefixContains(route.src, flow.src))) &&
      (family === AF_INET6 || route.tos === 0 || route.tos === ((flow.tos ?? 0) & IPV4_TOS_MASK)),
  );
  // The sort is stable: equal routes stay in the order of the kernel's dump.
  return [...found].sort(family === AF_INET6 ? byIpv6Order(flow) : byIpv4Order);
}

/** Routes by family and table, grouped once for each dump of a namespace: many packets are looked up. */
const grouped = new WeakMap<readonly RouteMessage[], ReadonlyMap<string, readonly RouteMessage[]>>();

function routesOf(routes: readonly RouteMessage[], family: number, table: number): readonly RouteMessage[] {
  const groups = grouped.get(routes) ?? Map.groupBy(routes, (route) => `${route.family} ${route.table}`);
  grouped.set(routes, groups);
  return groups.get(`${family} ${table}`) ?? [];
}

function byIpv4Order(a: RouteMessage, b: RouteMessage): number {
  return prefixBits(b.dst) - prefixBits(a.dst) || b.tos - a.tos || (a.priority ?? 0) - (b.priority ?? 0);
}

function byIpv6Order(flow: Flow): (a: RouteMessage, b: RouteMessage) => number {
  return (a, b) =>
    prefixBits(b.dst) - prefixBits(a.dst) ||
    prefixBits(b.src) - prefixBits(a.src) ||
    (a.priority ?? 0) - (b.priority ?? 0) ||
    scoreOf(b, flow) - scoreOf(a, flow);
}

/** Scores an IPv6 route. Among routes of one metric, forwarded packets prefer the link on which they arrived. */
function scoreOf(route: RouteMessage, flow: Flow): number {
  const preferredOif = flow.oif ?? flow.iif;
  const isDevice = preferredOif === undefined || hopsOf(route).some(({ oif }) => oif === preferredOif);
  return (isDevice ? DEVICE_SCORE : 0) | ((PREFERENCES[route.pref ?? 0] ?? DEVICE_SCORE) << PREFERENCE_SHIFT);
}

type FlaggedHop = NextHop & { readonly flags: number };

/** Lists the next hops of a route in their order, dead ones too. */
export function hopsOf(route: RouteMessage): readonly FlaggedHop[] {
  const { multipath } = route;
  if (multipath === undefined) return [hopOf(route.oif ?? 0, route.gateway ?? route.via, route.flags)];
  return multipath.map((hop) => hopOf(hop.oif ?? 0, hop.gateway ?? hop.via, hop.flags ?? 0));
}

function hopOf(oif: number, gateway: string | undefined, flags: number): FlaggedHop {
  return { oif, flags, ...(gateway === undefined ? {} : { gateway }) };
}

function usableHops(route: RouteMessage, flow: Flow): readonly NextHop[] {
  return hopsOf(route)
    .filter(({ flags }) => (flags & RTNH_F_DEAD) === 0)
    .filter(({ oif }) => isBound(route, oif, flow))
    .map(({ flags: _flags, ...hop }) => hop);
}

/**
 * Reports whether a sender may use a route by a link. IPv4 senders bound to a link get only routes by it; IPv6 only
 * prefers them.
 */
function isBound(route: RouteMessage, oif: number, flow: Flow): boolean {
  return flow.oif === undefined || route.family === AF_INET6 || oif === flow.oif;
}
