import { hex, ip, line, type NameOf, named, PROTOCOLS, pair, SCOPES, TABLES, verbKeyword } from './render-arguments.ts';
import type { RouteQuery } from './request.ts';
import type { RouteSpec } from './route-message.ts';
import {
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
  const hops = (spec.multipath ?? []).flatMap((hop) => [
    'nexthop',
    ...pair('via', hop.gateway),
    ...pair('via inet6', hop.via),
    ...pair('dev', hop.oif === undefined || hop.oif === 0 ? undefined : nameOf(hop.oif)),
    ...pair('weight', (hop.hops ?? 0) + 1),
    ...(((hop.flags ?? 0) & RTNH_F_ONLINK) === 0 ? [] : ['onlink']),
  ]);
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
    pair('nhid', spec.nhId),
    ((spec.flags ?? 0) & RTNH_F_ONLINK) === 0 ? [] : ['onlink'],
    pair('expires', spec.expires),
    pair('mtu', spec.metrics?.mtu),
    pair('window', spec.metrics?.window),
    pair('advmss', spec.metrics?.advmss),
    pair('initcwnd', spec.metrics?.initcwnd),
    pair('initrwnd', spec.metrics?.initrwnd),
    pair('hoplimit', spec.metrics?.hoplimit),
    pair('quickack', spec.metrics?.quickack),
    hops,
  );
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
