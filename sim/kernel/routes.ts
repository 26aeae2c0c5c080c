import { IFF_LOOPBACK, IFF_UP } from '../../netlink/uapi/if-link.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import {
  RT_SCOPE_HOST,
  RT_SCOPE_LINK,
  RT_SCOPE_NOWHERE,
  RT_SCOPE_UNIVERSE,
  RT_TABLE_LOCAL,
  RT_TABLE_MAIN,
  RTN_BLACKHOLE,
  RTN_BROADCAST,
  RTN_LOCAL,
  RTN_PROHIBIT,
  RTN_THROW,
  RTN_UNICAST,
  RTN_UNREACHABLE,
  RTNH_F_LINKDOWN,
  RTNH_F_ONLINK,
  RTPROT_KERNEL,
} from '../../netlink/uapi/rtnetlink.ts';
import { hasCarrier } from './carrier.ts';
import { lookUp, lookUpIn } from './look-up.ts';
import { emit, type Family, type Link, type Netns, type Route, type Table } from './netns.ts';
import { canonicalPrefix, lastOf, networkOf, parsePrefix } from './prefix.ts';
import { notModelled, Refusal } from './refusal.ts';

/** The metric that IPv6 gives a route without one, and a route of an address. */
const METRIC_USER = 1024;
const METRIC_ADDRCONF = 256;

/** Types whose packets are refused: they have no way out. */
const REFUSING: ReadonlySet<number> = new Set([RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT, RTN_THROW]);

/** What stands for the default route of an IPv6 table that has none. */
const NO_ROUTE: Route = {
  ...{ family: AF_INET6, tos: 0, protocol: RTPROT_KERNEL, scope: 0, type: RTN_UNREACHABLE, flags: 0 },
  ...{ table: 0, oif: 1, priority: 0xffff_ffff, unknown: [] },
};

/** `dst` of a route in the model: a default route has one too. */
function keyOf(route: Pick<Route, 'dst'>): string {
  return route.dst ?? '';
}

/**
 * Adds or replaces a route, as a request has it that the library completed. @throws Refusal
 * @param by port of who asks
 */
export function addRoute(netns: Netns, request: Partial<Route>, verb: 'add' | 'replace', by: number): void {
  const family = request.family === AF_INET6 ? 6 : 4;
  for (const name of ['multipath', 'nhId', 'encap', 'via'] as const)
    if (request[name] !== undefined) throw notModelled(`route with ${name}`);
  const { dst: asked, ...rest } = request;
  const dst = asked === undefined || asked.endsWith('/0') ? undefined : canonicalPrefix(asked);
  if (dst !== undefined && networkOf(dst.split('/')[0] ?? '', parsePrefix(dst).length) !== dst)
    throw new Refusal('EINVAL', 'Invalid prefix for given prefix length');
  const { type = RTN_UNICAST, table = RT_TABLE_MAIN } = request;
  const whole: Route = {
    ...rest,
    ...(dst !== undefined && { dst }),
    ...{ family: family === 4 ? AF_INET : AF_INET6, tos: request.tos ?? 0, type, table, unknown: [] },
    ...{ protocol: request.protocol ?? 0, scope: request.scope ?? 0, flags: request.flags ?? 0 },
    ...(family === 6 && { priority: request.priority || METRIC_USER, pref: request.pref ?? 0 }),
  };
  if (family === 4 && whole.priority === 0) delete whole.priority;
  // Whatever comes of the request, IPv6 has the table from now on.
  if (family === 6) tableOf(netns, 6, table);
  if (REFUSING.has(type)) {
    if (family === 4 && (whole.oif !== undefined || whole.gateway !== undefined))
      throw new Refusal('EINVAL', 'Gateway, device and multipath can not be specified for this route type');
    // The kernel leads refused IPv6 packets to lo.
    if (family === 6) whole.oif = 1;
    delete whole.gateway;
  } else checkHop(netns, family, whole);
  put(netns, family, whole, verb);
  emit(netns, { kind: 'route', op: 'new', message: shown(netns, whole), portid: by });
}

/** Deletes the first route that has what the request names. @throws Refusal ESRCH */
export function deleteRoute(netns: Netns, request: Partial<Route>, by: number): void {
  const family = request.family === AF_INET6 ? 6 : 4;
  const { dst: asked } = request;
  const dst = asked === undefined || asked.endsWith('/0') ? '' : canonicalPrefix(asked);
  const table = netns.tables[family].get(request.table ?? RT_TABLE_MAIN);
  if (table === undefined) throw new Refusal('ESRCH', 'FIB table does not exist');
  const leaf = table.get(dst) ?? [];
  const at = leaf.findIndex((route) => (family === 4 ? matches4(route, request) : matches6(route, request)));
  const [route] = at < 0 ? [] : leaf.splice(at, 1);
  // A table of IPv6 without a default route has an entry of the kernel's there, which matches and cannot be deleted.
  if (route === undefined)
    throw new Refusal(
      family === 6 && dst === '' && leaf.length === 0 && matches6(NO_ROUTE, request) ? 'ENOENT' : 'ESRCH',
    );
  if (leaf.length === 0) table.delete(dst);
  emit(netns, { kind: 'route', op: 'del', message: shown(netns, route), portid: by });
}

/** Lists routes of one family, of one table or all, in the order of the kernel. */
export function routesOf(netns: Netns, family: Family, id?: number): readonly Route[] {
  const tables = netns.tables[family];
  if (id !== undefined) return inOrder(tables.get(id), family).map((route) => shown(netns, route));
  return [...tables.keys()]
    .reverse()
    .sort((a, b) => (a & 0xff) - (b & 0xff))
    .flatMap((key) => inOrder(tables.get(key), family))
    .map((route) => shown(netns, route));
}

/** What ends the way of a route. */
type Drop = { readonly isGone: (route: Route) => boolean; readonly isTold: boolean };

/** Removes routes that lost their way; IPv4 does not tell it. */
export function dropRoutes(netns: Netns, family: Family, { isGone, isTold }: Drop): void {
  for (const table of netns.tables[family].values()) {
    for (const [dst, leaf] of table) {
      const left = leaf.filter((route) => !isGone(route));
      if (left.length === leaf.length) continue;
      if (left.length === 0) table.delete(dst);
      else table.set(dst, left);
      if (!isTold) continue;
      for (const route of leaf)
        if (!left.includes(route)) emit(netns, { kind: 'route', op: 'del', message: shown(netns, route), portid: 0 });
    }
  }
}

/** Makes the routes that the kernel makes of an IPv4 address: to itself always, to its prefix while the link is up. */
export function addRoutesOf4(link: Link, address: Facts4): void {
  for (const route of routesOf4(link, address)) putOwn(link.netns, 4, route);
}

/** Removes the routes of an IPv4 address; these the kernel tells. @param isKept the link has the address once more */
export function removeRoutesOf4(link: Link, address: Facts4, isKept: boolean): void {
  const gone = routesOf4(link, address).filter(({ type, scope, dst }) =>
    isKept ? type !== RTN_LOCAL || scope !== RT_SCOPE_HOST || dst !== `${address.local}/32` : true,
  );
  const isGone = (route: Route): boolean =>
    gone.some(
      (one) =>
        one.table === route.table &&
        keyOf(one) === keyOf(route) &&
        one.type === route.type &&
        one.oif === route.oif &&
        one.prefsrc === route.prefsrc &&
        route.protocol === RTPROT_KERNEL,
    );
  dropRoutes(link.netns, 4, { isGone, isTold: true });
}

/** What of an address decides about its routes. */
export type Facts4 = {
  readonly local: string;
  readonly prefixlen: number;
  /** The first address of its prefix: packets leave with it. */
  readonly source: string;
  readonly isSecondary: boolean;
  readonly hasPrefixRoute: boolean;
  readonly broadcast?: string;
};

function routesOf4(
  { ifindex, flags }: Link,
  { local, prefixlen, source, isSecondary, hasPrefixRoute, broadcast }: Facts4,
): readonly Route[] {
  const base = { family: AF_INET, tos: 0, protocol: RTPROT_KERNEL, flags: 0, oif: ifindex, unknown: [] };
  const own = { ...base, table: RT_TABLE_LOCAL, prefsrc: source };
  const routes: Route[] = [{ ...own, type: RTN_LOCAL, scope: RT_SCOPE_HOST, dst: `${local}/32` }];
  if ((flags & IFF_UP) === 0) return routes;
  const ofBroadcast = { ...own, type: RTN_BROADCAST, scope: RT_SCOPE_LINK };
  if (broadcast !== undefined && broadcast !== '255.255.255.255')
    routes.push({ ...ofBroadcast, dst: `${broadcast}/32` });
  const network = networkOf(local, prefixlen);
  if (isSecondary || prefixlen === 32) return routes;
  if (hasPrefixRoute) {
    const isLoopback = (flags & IFF_LOOPBACK) !== 0;
    routes.push(
      isLoopback
        ? { ...own, type: RTN_LOCAL, scope: RT_SCOPE_HOST, dst: network }
        : { ...own, table: RT_TABLE_MAIN, type: RTN_UNICAST, scope: RT_SCOPE_LINK, dst: network },
    );
  }
  if (prefixlen < 31) routes.push({ ...ofBroadcast, dst: `${lastOf(local, prefixlen)}/32` });
  return routes;
}

/** Makes a route of the kernel's own for IPv6, unless it is there. */
export function addKernelRoute6(link: Link, route: Pick<Route, 'table' | 'type' | 'dst'>): void {
  const isPrefix = route.table === RT_TABLE_MAIN;
  const whole: Route = {
    ...{ family: AF_INET6, tos: 0, protocol: RTPROT_KERNEL, scope: RT_SCOPE_UNIVERSE, flags: 0, pref: 0 },
    ...{ oif: link.ifindex, unknown: [], ...route },
    priority: route.type === RTN_LOCAL && !isPrefix ? 0 : METRIC_ADDRCONF,
  };
  const leaf = link.netns.tables[6].get(route.table)?.get(keyOf(whole)) ?? [];
  if (leaf.some((one) => one.oif === whole.oif && one.priority === whole.priority)) return;
  putOwn(link.netns, 6, whole);
}

/** Removes a route of the kernel's own. */
export function removeKernelRoute6(link: Link, { table, type, dst }: Pick<Route, 'table' | 'type' | 'dst'>): void {
  const isGone = (route: Route): boolean =>
    route.table === table &&
    route.type === type &&
    route.dst === dst &&
    route.oif === link.ifindex &&
    route.protocol === RTPROT_KERNEL;
  dropRoutes(link.netns, 6, { isGone, isTold: true });
}

function checkHop(netns: Netns, family: Family, route: Route): void {
  const link = netns.links.get(route.oif ?? 0);
  if (route.type === RTN_LOCAL || route.type === RTN_BROADCAST) {
    if (link === undefined) throw new Refusal('ENODEV');
  } else if (family === 4) checkHop4(netns, route, link);
  else checkHop6(netns, route, link);
  if (route.prefsrc !== undefined && !isOwn(netns, family, route.prefsrc))
    throw new Refusal('EINVAL', family === 4 ? 'Invalid prefsrc address' : 'Invalid source address');
}

function checkHop4(netns: Netns, route: Route, link: Link | undefined): void {
  const { gateway, oif, scope } = route;
  if (gateway === undefined) {
    if ((route.flags & RTNH_F_ONLINK) !== 0)
      throw new Refusal('EINVAL', 'Invalid flags for nexthop - PERVASIVE and ONLINK can not be set');
    if (link === undefined) throw new Refusal('ENODEV');
    if ((link.flags & IFF_UP) === 0) throw new Refusal('ENETDOWN', 'Device for nexthop is not up');
    return;
  }
  if (scope >= RT_SCOPE_LINK) throw new Refusal('EINVAL', 'Nexthop has invalid scope');
  if ((route.flags & RTNH_F_ONLINK) !== 0) {
    if (link === undefined) throw new Refusal('ENODEV', 'Nexthop device required for onlink');
    if ((link.flags & IFF_UP) === 0) throw new Refusal('ENETDOWN', 'Nexthop device is not up');
    if (typeOf4(netns, gateway) !== RTN_UNICAST) throw new Refusal('EINVAL', 'Nexthop has invalid gateway');
    return;
  }
  const query = { dst: gateway, minScope: RT_SCOPE_LINK, ...(oif !== undefined && { oif }) };
  const inTable = lookUpIn(netns, 4, route.table, query);
  const found = inTable?.type === RTN_UNICAST || inTable?.type === RTN_LOCAL ? inTable : lookUp(netns, 4, query);
  if (found === undefined) throw new Refusal('ENETUNREACH', 'Nexthop has invalid gateway');
  if (found.type === RTN_UNREACHABLE) throw new Refusal('EHOSTUNREACH', 'Nexthop has invalid gateway');
  if (found.type !== RTN_UNICAST && found.type !== RTN_LOCAL)
    throw new Refusal('EINVAL', 'Nexthop has invalid gateway');
  route.oif = found.oif ?? 0;
  if (((netns.links.get(route.oif)?.flags ?? 0) & IFF_UP) === 0)
    throw new Refusal('ENETDOWN', 'Nexthop device is not up');
}

function checkHop6(netns: Netns, route: Route, link: Link | undefined): void {
  const { gateway, oif } = route;
  if (oif !== undefined && link === undefined) throw new Refusal('ENODEV');
  const isOnLink = (route.flags & RTNH_F_ONLINK) !== 0;
  if (isOnLink && link !== undefined && (link.flags & IFF_UP) === 0)
    throw new Refusal('ENETDOWN', 'Nexthop device is not up');
  if (gateway !== undefined) {
    if (isOwn(netns, 6, gateway)) throw new Refusal('EINVAL', 'Gateway can not be a local address');
    const isLinkLocal = gateway.startsWith('fe80:');
    if (!isLinkLocal && !isOnLink) {
      const query = { dst: gateway, ...(oif !== undefined && { oif }) };
      const leads = (found: Route | undefined): boolean =>
        found !== undefined && !REFUSING.has(found.type) && found.gateway === undefined;
      const inTable = lookUpIn(netns, 6, route.table, query);
      const found = leads(inTable) ? inTable : lookUp(netns, 6, query);
      if (found === undefined || !leads(found)) throw new Refusal('EHOSTUNREACH', 'Nexthop has invalid gateway');
      route.oif = oif ?? found.oif ?? 0;
    }
  }
  const out = netns.links.get(route.oif ?? 0);
  if (out === undefined) throw new Refusal('ENODEV');
  if (gateway !== undefined && (out.flags & IFF_LOOPBACK) !== 0)
    throw new Refusal('EINVAL', 'Egress device can not be loopback device for this route');
  if (out.conf[6].get('disable_ipv6') === '1') throw new Refusal('EACCES', 'IPv6 is disabled on nexthop device');
  if ((out.flags & IFF_UP) === 0) throw new Refusal('ENETDOWN', 'Nexthop device is not up');
}

/** What an address is to the node. Before it has its first one, the kernel takes all for broadcast addresses. */
function typeOf4(netns: Netns, address: string): number {
  if (!netns.tables[4].has(RT_TABLE_LOCAL)) return RTN_BROADCAST;
  return lookUpIn(netns, 4, RT_TABLE_LOCAL, { dst: address })?.type ?? RTN_UNICAST;
}

/** Reports whether any link of the namespace has an address. */
export function isOwn(netns: Netns, family: Family, address: string): boolean {
  for (const link of netns.links.values())
    if (link.addresses[family].some((one) => (one.local ?? one.address) === address)) return true;
  return false;
}

function put(netns: Netns, family: Family, route: Route, verb: 'add' | 'replace'): void {
  const leaf = leafOf(netns, family, route);
  const first = leaf.findIndex((one) => isTwin(family, one, route));
  if (first >= 0 && verb === 'add') throw new Refusal('EEXIST');
  if (first < 0) insert(leaf, route);
  else if (family === 4) replace4(leaf, first, route);
  else replace6(leaf, first, route);
}

/** The first twin goes; a route that is there behind it may not be there twice. */
function replace4(leaf: Route[], first: number, route: Route): void {
  const same = leaf.findIndex((one) => isTwin(4, one, route) && isSame4(one, route));
  if (same > first) throw new Refusal('EEXIST');
  leaf[first] = route;
}

/** Of IPv6 a route with a gateway takes the place of one with a gateway, if there is one. */
function replace6(leaf: Route[], first: number, route: Route): void {
  const alike = leaf.findIndex(
    (one) => isTwin(6, one, route) && (one.gateway === undefined) === (route.gateway === undefined),
  );
  leaf[alike < 0 ? first : alike] = route;
}

/** Puts a route of the kernel's own in its place, and tells it, unless it is there. */
function putOwn(netns: Netns, family: Family, route: Route): void {
  const leaf = leafOf(netns, family, route);
  if (family === 4 && leaf.some((one) => isTwin(4, one, route) && isSame4(one, route))) return;
  insert(leaf, route);
  emit(netns, { kind: 'route', op: 'new', message: shown(netns, route), portid: 0 });
}

/** Returns a table, which is made where there is none. */
export function tableOf(netns: Netns, family: Family, id: number): Table {
  const tables = netns.tables[family];
  const table: Table = tables.get(id) ?? new Map();
  tables.set(id, table);
  return table;
}

function leafOf(netns: Netns, family: Family, route: Route): Route[] {
  const table = tableOf(netns, family, route.table);
  const leaf = table.get(keyOf(route)) ?? [];
  table.set(keyOf(route), leaf);
  return leaf;
}

function isTwin(family: Family, one: Route, other: Route): boolean {
  if ((one.priority ?? 0) !== (other.priority ?? 0)) return false;
  return family === 4 ? one.tos === other.tos : (one.src ?? '') === (other.src ?? '');
}

function isSame4(one: Route, other: Route): boolean {
  return (
    one.type === other.type &&
    one.protocol === other.protocol &&
    one.scope === other.scope &&
    one.prefsrc === other.prefsrc &&
    one.oif === other.oif &&
    one.gateway === other.gateway &&
    ((one.flags ^ other.flags) & RTNH_F_ONLINK) === 0 &&
    JSON.stringify(one.metrics ?? {}) === JSON.stringify(other.metrics ?? {})
  );
}

/** Behind those of a higher type of service, and those of a lower metric. */
function insert(leaf: Route[], route: Route): void {
  const at = leaf.findIndex(
    (one) => one.tos < route.tos || (one.tos === route.tos && (one.priority ?? 0) > (route.priority ?? 0)),
  );
  leaf.splice(at < 0 ? leaf.length : at, 0, route);
}

function matches4(route: Route, request: Partial<Route>): boolean {
  const { type = 0, scope = RT_SCOPE_NOWHERE, protocol = 0, priority = 0, tos = 0 } = request;
  const hasHop = request.oif !== undefined || request.gateway !== undefined;
  return (
    route.tos === tos &&
    (type === 0 || route.type === type) &&
    (scope === RT_SCOPE_NOWHERE || route.scope === scope) &&
    (request.prefsrc === undefined || route.prefsrc === request.prefsrc) &&
    (protocol === 0 || route.protocol === protocol) &&
    (priority === 0 || (route.priority ?? 0) === priority) &&
    (!hasHop ||
      ((request.oif === undefined || route.oif === request.oif) &&
        (request.gateway === undefined || route.gateway === request.gateway)))
  );
}

function matches6(route: Route, request: Partial<Route>): boolean {
  const { protocol = 0, priority = 0 } = request;
  return (
    (route.src ?? '') === (request.src ?? '') &&
    (request.oif === undefined || route.oif === request.oif) &&
    (request.gateway === undefined || route.gateway === request.gateway) &&
    (priority === 0 || route.priority === priority) &&
    (protocol === 0 || route.protocol === protocol)
  );
}

function inOrder(table: ReadonlyMap<string, readonly Route[]> | undefined, family: Family): readonly Route[] {
  if (table === undefined) return [];
  return [...table.keys()].sort(family === 4 ? byAddress : bySubtree).flatMap((dst) => table.get(dst) ?? []);
}

function byAddress(a: string, b: string): number {
  const [one, other] = [prefixOf(a, 4), prefixOf(b, 4)];
  if (one.value !== other.value) return one.value < other.value ? -1 : 1;
  return other.length - one.length;
}

/** What is inside of a prefix comes before it. */
function bySubtree(a: string, b: string): number {
  const [one, other] = [prefixOf(a, 6), prefixOf(b, 6)];
  const shorter = BigInt(128 - Math.min(one.length, other.length));
  const [left, right] = [one.value >> shorter, other.value >> shorter];
  if (left === right) return other.length - one.length;
  return left < right ? -1 : 1;
}

function prefixOf(dst: string, family: Family): { readonly value: bigint; readonly length: number } {
  return dst === '' ? { value: 0n, length: 0 } : parsePrefix(dst.includes(family === 4 ? '.' : ':') ? dst : '::');
}

/** Returns a route as a message has it: whether its link has a carrier is said with it. */
export function shown(netns: Netns, route: Route): Route {
  const out = REFUSING.has(route.type) || route.type === RTN_LOCAL ? undefined : netns.links.get(route.oif ?? 0);
  const isDown = out !== undefined && (out.flags & IFF_UP) !== 0 && !hasCarrier(out);
  return isDown ? { ...route, flags: route.flags | RTNH_F_LINKDOWN } : { ...route };
}
