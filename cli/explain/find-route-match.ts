import type { RouteMessage } from '../../netlink/route-message.ts';
import { AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { RTN_BLACKHOLE, RTN_PROHIBIT, RTN_THROW, RTN_UNREACHABLE, RTNH_F_DEAD } from '../../netlink/uapi/rtnetlink.ts';
import type { NetnsFacts } from '../node/node-facts.ts';
import { bitsOf, holds } from './find-prefix.ts';
import { IPV4_TOS_MASK } from './find-rule-match.ts';
import { addressFamily, type Flow } from './flow.ts';

/** Where a route leads; several for a multipath route, of which the kernel takes one by a hash of the flow. */
export type NextHop = { readonly oif: number; readonly gateway?: string };

/** What a table says. */
export type TableAnswer =
  | { readonly kind: 'route'; readonly route: RouteMessage; readonly nexthops: readonly NextHop[] }
  | { readonly kind: 'refused'; readonly route: RouteMessage; readonly code: RefusalCode }
  /** Nothing in it, or a throw route: the next rule is asked. */
  | { readonly kind: 'nothing'; readonly route?: RouteMessage };

/** What the kernel answers instead of a route. EINVAL: silently dropped. */
export type RefusalCode = 'ENETUNREACH' | 'EHOSTUNREACH' | 'EACCES' | 'EINVAL';

const REFUSALS: Readonly<Record<number, RefusalCode>> = {
  [RTN_BLACKHOLE]: 'EINVAL',
  [RTN_UNREACHABLE]: 'EHOSTUNREACH',
  [RTN_PROHIBIT]: 'EACCES',
};

/** How IPv6 weighs a route by the link that it leads to, and by its router preference. @see net/ipv6/route.c rt6_score_route */
const DEVICE_SCORE = 2;
const PREFERENCE_SHIFT = 2;
/** Routers of medium preference are coded 0, of high 1, of low 3 (as -1); the kernel compares them shifted by one. */
const PREFERENCES: Readonly<Record<number, number>> = { 0: 2, 1: 3, 3: 1 };

/**
 * Finds what a table answers for a packet: the longest prefix, then for IPv4 the TOS, then the metric; next hops that
 * are dead do not count. The kernel tells those without carrier as dead too where ignore_routes_with_linkdown is set.
 * Neighbours do not count, although an IPv6 host (not a router) prefers routers that answer.
 * @see net/ipv4/fib_trie.c fib_table_lookup, net/ipv6/route.c fib6_table_lookup, net/ipv4/fib_semantics.c fib_nexthop_info
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

/** Routes that hold the destination, the first to be tried first. */
function candidates(routes: readonly RouteMessage[], table: number, flow: Flow): readonly RouteMessage[] {
  const family = addressFamily(flow.family);
  const found = routesOf(routes, family, table).filter(
    (route) =>
      holds(route.dst, flow.dst) &&
      (bitsOf(route.src) === 0 || (flow.src !== undefined && holds(route.src, flow.src))) &&
      (family === AF_INET6 || route.tos === 0 || route.tos === ((flow.tos ?? 0) & IPV4_TOS_MASK)),
  );
  // A stable sort: among equals the kernel's own order, in which it told them, stays.
  return [...found].sort(family === AF_INET6 ? byIpv6Order(flow) : byIpv4Order);
}

/** Grouped once for each reading of a namespace: many packets are asked about. */
const grouped = new WeakMap<readonly RouteMessage[], ReadonlyMap<string, readonly RouteMessage[]>>();

function routesOf(routes: readonly RouteMessage[], family: number, table: number): readonly RouteMessage[] {
  const groups = grouped.get(routes) ?? Map.groupBy(routes, (route) => `${route.family} ${route.table}`);
  grouped.set(routes, groups);
  return groups.get(`${family} ${table}`) ?? [];
}

function byIpv4Order(a: RouteMessage, b: RouteMessage): number {
  return bitsOf(b.dst) - bitsOf(a.dst) || b.tos - a.tos || (a.priority ?? 0) - (b.priority ?? 0);
}

function byIpv6Order(flow: Flow): (a: RouteMessage, b: RouteMessage) => number {
  return (a, b) =>
    bitsOf(b.dst) - bitsOf(a.dst) ||
    bitsOf(b.src) - bitsOf(a.src) ||
    (a.priority ?? 0) - (b.priority ?? 0) ||
    scoreOf(b, flow) - scoreOf(a, flow);
}

/** Forwarded packets prefer, among routes of one metric, the link they came by. */
function scoreOf(route: RouteMessage, flow: Flow): number {
  const wanted = flow.oif ?? flow.iif;
  const isDevice = wanted === undefined || hopsOf(route).some(({ oif }) => oif === wanted);
  return (isDevice ? DEVICE_SCORE : 0) | ((PREFERENCES[route.pref ?? 0] ?? DEVICE_SCORE) << PREFERENCE_SHIFT);
}

type FlaggedHop = NextHop & { readonly flags: number };

function hopsOf(route: RouteMessage): readonly FlaggedHop[] {
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

/** A sender bound to a link gets only routes by it; for IPv6 such routes are merely preferred. */
function isBound(route: RouteMessage, oif: number, flow: Flow): boolean {
  return flow.oif === undefined || route.family === AF_INET6 || oif === flow.oif;
}
