import { withoutHostLength } from '../../../dataplane/ip-prefix.ts';
import type { RouteMessage, RouteMetrics, RouteNexthop } from '../../../netlink/route-message.ts';
import { AF_INET6 } from '../../../netlink/uapi/netlink.ts';
import {
  RT_SCOPE_UNIVERSE,
  RT_TABLE_MAIN,
  RTM_F_OFFLOAD,
  RTM_F_OFFLOAD_FAILED,
  RTM_F_TRAP,
  RTN_UNICAST,
  RTNH_F_DEAD,
  RTNH_F_LINKDOWN,
  RTNH_F_OFFLOAD,
  RTNH_F_ONLINK,
  RTNH_F_PERVASIVE,
  RTNH_F_TRAP,
  RTNH_F_UNRESOLVED,
  RTPROT_BOOT,
} from '../../../netlink/uapi/rtnetlink.ts';
import type { IpNames, IpObject } from './ip-names.ts';

/** Options of `ip route` that change its output. */
type RouteView = {
  /** Adds what `ip -d` adds. */
  readonly isDetailed: boolean;
  /** True when one table was requested: routes then do not repeat it. */
  readonly isOneTable: boolean;
};

/** USER_HZ of all supported platforms. */
const USER_HZ = 100;

/** Renders a route as `ip -j route` prints it. @see ip-route(8), iproute2 ip/iproute.c */
export function renderRouteJson(route: RouteMessage, names: IpNames, view: RouteView): IpObject {
  const { isDetailed, isOneTable } = view;
  const expires = ((route.cacheinfo?.expires ?? 0) | 0) / USER_HZ;
  const error = (route.cacheinfo?.error ?? 0) | 0;
  return {
    ...(route.type !== RTN_UNICAST || isDetailed ? { type: typeName(route.type) } : {}),
    dst: route.dst === undefined ? 'default' : withoutHostLength(route.dst),
    ...(route.src === undefined ? {} : { from: withoutHostLength(route.src) }),
    ...(route.tos === 0 ? {} : { tos: names.dsfield(route.tos) }),
    ...(route.nhId === undefined ? {} : { nhid: route.nhId }),
    ...gateway(route),
    ...(route.oif === undefined ? {} : { dev: names.link(route.oif) }),
    ...(isOneTable || (route.table === RT_TABLE_MAIN && !isDetailed) ? {} : { table: names.table(route.table) }),
    ...(route.protocol === RTPROT_BOOT && !isDetailed ? {} : { protocol: names.protocol(route.protocol) }),
    ...(route.scope === RT_SCOPE_UNIVERSE && !isDetailed ? {} : { scope: names.scope(route.scope) }),
    ...(route.prefsrc === undefined ? {} : { prefsrc: route.prefsrc }),
    ...(route.priority === undefined ? {} : { metric: route.priority }),
    flags: routeFlags(route.flags),
    ...(route.mark === undefined || route.mark === 0 ? {} : { mark: `0x${route.mark.toString(16)}` }),
    ...(route.uid === undefined ? {} : { uid: route.uid }),
    ...(route.flow === undefined ? {} : { flow: realms(route.flow, names) }),
    ...(route.metrics === undefined ? {} : { metrics: [renderMetrics(route.metrics)] }),
    ...(Math.trunc(expires) === 0 ? {} : { expires: Math.trunc(expires) }),
    ...(error === 0 ? {} : { error }),
    ...(route.iif === undefined ? {} : { iif: names.link(route.iif) }),
    ...(route.pref === undefined ? {} : { pref: PREFERENCES[route.pref] ?? String(route.pref) }),
    ...(route.multipath === undefined ? {} : { nexthops: route.multipath.map((hop) => renderHop(hop, names)) }),
  };
}

/** Names a route type: 'blackhole'. */
export function typeName(type: number): string {
  return TYPES[type] ?? String(type);
}

/** Names of route types, RTN_*, by number. */
const TYPES: readonly (string | undefined)[] = [
  'none',
  'unicast',
  'local',
  'broadcast',
  'anycast',
  'multicast',
  'blackhole',
  'unreachable',
  'prohibit',
  'throw',
  'nat',
  'xresolve',
];

/** Names of router preferences, ICMPV6_ROUTER_PREF_*: two bits, signed. @see RFC 4191 */
const PREFERENCES: readonly (string | undefined)[] = ['medium', 'high', undefined, 'low'];

/** Flags in the order of iproute2. */
const FLAGS: readonly (readonly [number, string])[] = [
  [RTNH_F_DEAD, 'dead'],
  [RTNH_F_ONLINK, 'onlink'],
  [RTNH_F_PERVASIVE, 'pervasive'],
  [RTNH_F_OFFLOAD, 'offload'],
  [RTNH_F_TRAP, 'trap'],
  [0x100, 'notify'],
  [RTNH_F_LINKDOWN, 'linkdown'],
  [RTNH_F_UNRESOLVED, 'unresolved'],
  [RTM_F_OFFLOAD, 'rt_offload'],
  [RTM_F_TRAP, 'rt_trap'],
  [RTM_F_OFFLOAD_FAILED, 'rt_offload_failed'],
];

function routeFlags(flags: number): readonly string[] {
  return flags === 0 ? [] : FLAGS.flatMap(([bit, name]) => ((flags & bit) === 0 ? [] : [name]));
}

function gateway({ gateway, via }: Pick<RouteMessage, 'gateway' | 'via'>): IpObject {
  if (gateway !== undefined) return { gateway };
  return via === undefined ? {} : { via: { family: via.includes(':') ? 'inet6' : 'inet', host: via } };
}

function realms(flow: number, names: IpNames): IpObject {
  const from = flow >>> 16;
  return { ...(from === 0 ? {} : { from: names.realm(from) }), to: names.realm(flow & 0xffff) };
}

function renderHop(hop: RouteNexthop, names: IpNames): IpObject {
  return {
    ...gateway(hop),
    ...(hop.oif === undefined || hop.oif === 0 ? {} : { dev: names.link(hop.oif) }),
    ...(hop.flow === undefined ? {} : { flow: realms(hop.flow, names) }),
    weight: (hop.hops ?? 0) + 1,
    flags: routeFlags(hop.flags ?? 0),
  };
}

const FEATURE_ECN = 1;
/** Units of a millisecond: the kernel stores rtt in eighths and rttvar in quarters of milliseconds. */
const RTT_SHARE = 8;
const RTTVAR_SHARE = 4;

function renderMetrics(metrics: RouteMetrics): IpObject {
  const { mtu, window, rtt, rttvar, ssthresh, cwnd, advmss, reordering, hoplimit, initcwnd, features } = metrics;
  const { rtoMin, initrwnd, quickack, ccAlgo, fastopenNoCookie } = metrics;
  const named: IpObject = {
    mtu,
    window,
    rtt: rtt === undefined ? undefined : Math.floor(rtt / RTT_SHARE),
    rttvar: rttvar === undefined ? undefined : Math.floor(rttvar / RTTVAR_SHARE),
    ssthresh,
    cwnd,
    advmss,
    reordering,
    hoplimit,
    initcwnd,
    ...(features === undefined ? {} : renderFeatures(features)),
    rto_min: rtoMin,
    initrwnd,
    quickack,
    congestion: ccAlgo,
    fastopen_no_cookie: fastopenNoCookie,
  };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
}

function renderFeatures(features: number): IpObject {
  const others = features & ~FEATURE_ECN;
  return {
    ...((features & FEATURE_ECN) === 0 ? {} : { ecn: null }),
    ...(others === 0 ? {} : { features: `0x${others.toString(16)}` }),
  };
}

/** Names an address family as `ip` does. */
export function familyName(family: number): string {
  return family === AF_INET6 ? 'inet6' : 'inet';
}
