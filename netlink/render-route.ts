import {
  type Argument,
  hex,
  ip,
  line,
  type NameOf,
  named,
  PROTOCOLS,
  pair,
  SCOPES,
  TABLES,
  verbKeyword,
} from './render-arguments.ts';
import type { RouteQuery } from './request.ts';
import type { RouteMetrics, RouteSpec } from './route-message.ts';
import {
  RTAX_ADVMSS,
  RTAX_CC_ALGO,
  RTAX_CWND,
  RTAX_FASTOPEN_NO_COOKIE,
  RTAX_FEATURES,
  RTAX_HOPLIMIT,
  RTAX_INITCWND,
  RTAX_INITRWND,
  RTAX_MTU,
  RTAX_QUICKACK,
  RTAX_REORDERING,
  RTAX_RTO_MIN,
  RTAX_RTT,
  RTAX_RTTVAR,
  RTAX_SSTHRESH,
  RTAX_WINDOW,
  RTN_ANYCAST,
  RTN_BLACKHOLE,
  RTN_BROADCAST,
  RTN_LOCAL,
  RTN_MULTICAST,
  RTN_PROHIBIT,
  RTN_THROW,
  RTN_UNREACHABLE,
  RTNH_F_ONLINK,
} from './uapi/rtnetlink.ts';

/** Names of the types of a route that is not unicast. */
export const ROUTE_TYPES = {
  [RTN_LOCAL]: 'local',
  [RTN_BROADCAST]: 'broadcast',
  [RTN_ANYCAST]: 'anycast',
  [RTN_MULTICAST]: 'multicast',
  [RTN_BLACKHOLE]: 'blackhole',
  [RTN_UNREACHABLE]: 'unreachable',
  [RTN_PROHIBIT]: 'prohibit',
  [RTN_THROW]: 'throw',
};
/** Renders a change of a route. @see ip-route(8) */
export function renderRoute(verb: 'add' | 'replace' | 'delete', spec: RouteSpec, nameOf: NameOf): string {
  return line(
    ip(spec.family, spec.dst, spec.gateway, spec.src, spec.prefsrc),
    'route',
    verbKeyword(verb),
    spec.type === undefined ? undefined : ROUTE_TYPES[spec.type as keyof typeof ROUTE_TYPES],
    spec.dst ?? 'default',
    pair('from', spec.src),
    pair('tos', spec.tos === 0 ? undefined : spec.tos),
    pair('via', spec.gateway),
    pair('via inet6', spec.via),
    pair('dev', spec.oif === undefined ? undefined : nameOf(spec.oif)),
    pair('table', named(TABLES, spec.table)),
    pair('proto', named(PROTOCOLS, spec.protocol)),
    pair('scope', named(SCOPES, spec.scope)),
    pair('src', spec.prefsrc),
    pair('metric', spec.priority),
    routeDetails(spec, nameOf),
  );
}

/** Renders what of a route comes behind its metric. */
export function routeDetails(spec: RouteSpec, nameOf: NameOf): readonly Argument[] {
  const { nhId, flags = 0, expires, flow, pref, encapType, metrics = {}, multipath = [] } = spec;
  return [
    ...pair('nhid', nhId),
    ...((flags & RTNH_F_ONLINK) === 0 ? [] : ['onlink']),
    ...pair('expires', expires),
    ...pair('realms', flow === undefined ? undefined : realms(flow)),
    ...pair('pref', pref === undefined ? undefined : named(PREFERENCES, pref)),
    ...pair('encap', encapType),
    ...renderMetrics(metrics),
    ...multipath.flatMap((hop) => [
      'nexthop',
      ...pair('via', hop.gateway),
      ...pair('via inet6', hop.via),
      ...pair('dev', hop.oif === undefined || hop.oif === 0 ? undefined : nameOf(hop.oif)),
      ...pair('weight', (hop.hops ?? 0) + 1),
      ...(((hop.flags ?? 0) & RTNH_F_ONLINK) === 0 ? [] : ['onlink']),
    ]),
  ];
}

const PREFERENCES = { 0: 'medium', 1: 'high', 3: 'low' };

function realms(flow: number): string {
  const [from, to] = [flow >>> 16, flow & 0xffff];
  return from === 0 ? String(to) : `${from}/${to}`;
}

/** The numbers of the metrics in RTAX_LOCK, by the words of ip(8). */
const METRICS = {
  mtu: ['mtu', RTAX_MTU],
  window: ['window', RTAX_WINDOW],
  rtt: ['rtt', RTAX_RTT],
  rttvar: ['rttvar', RTAX_RTTVAR],
  ssthresh: ['ssthresh', RTAX_SSTHRESH],
  cwnd: ['cwnd', RTAX_CWND],
  advmss: ['advmss', RTAX_ADVMSS],
  reordering: ['reordering', RTAX_REORDERING],
  initcwnd: ['initcwnd', RTAX_INITCWND],
  initrwnd: ['initrwnd', RTAX_INITRWND],
  hoplimit: ['hoplimit', RTAX_HOPLIMIT],
  quickack: ['quickack', RTAX_QUICKACK],
  features: ['features', RTAX_FEATURES],
  rtoMin: ['rto_min', RTAX_RTO_MIN],
  ccAlgo: ['congctl', RTAX_CC_ALGO],
  fastopenNoCookie: ['fastopen_no_cookie', RTAX_FASTOPEN_NO_COOKIE],
} as const satisfies Partial<Record<keyof RouteMetrics, readonly [string, number]>>;

function renderMetrics(metrics: RouteMetrics): readonly Argument[] {
  return Object.entries(METRICS).flatMap(([name, [word, number]]) => {
    const value = metrics[name as keyof typeof METRICS];
    const isLocked = ((metrics.lock ?? 0) & (1 << number)) !== 0;
    return value === undefined ? [] : [word, ...(isLocked ? ['lock'] : []), value];
  });
}

/** Renders the lookup of a route. @see ip-route(8) */
export function renderLookup(spec: RouteQuery, nameOf: NameOf): string {
  return line(
    ip(undefined, spec.dst),
    'route get',
    spec.fibmatch === true ? 'fibmatch' : undefined,
    spec.dst,
    pair('from', spec.src),
    pair('iif', spec.iif === undefined ? undefined : nameOf(spec.iif)),
    pair('oif', spec.oif === undefined ? undefined : nameOf(spec.oif)),
    pair('mark', spec.mark === undefined ? undefined : hex(spec.mark)),
    pair('tos', spec.tos),
    pair('uid', spec.uid),
    pair('ipproto', spec.ipProto),
    pair('sport', spec.sport),
    pair('dport', spec.dport),
  );
}
