import { familyOfMessage } from '../../../dataplane/address-family.ts';
import { type Argument, hex, line, pair } from '../../../netlink/render-arguments.ts';
import { range, ruleAction } from '../../../netlink/render-rule.ts';
import type { RouteMessage, RouteMetrics, RouteNexthop } from '../../../netlink/route-message.ts';
import type { RuleMessage } from '../../../netlink/rule-message.ts';
import { FIB_RULE_INVERT } from '../../../netlink/uapi/fib-rules.ts';
import { AF_INET6 } from '../../../netlink/uapi/netlink.ts';
import { RTN_UNICAST, RTNH_F_ONLINK, RTPROT_UNSPEC } from '../../../netlink/uapi/rtnetlink.ts';
import type { IpNames } from './ip-names.ts';
import { batchWord } from './render-batch-line.ts';
import { typeName } from './render-route-json.ts';
import { DEFAULT_PRIORITIES } from './without-kernel-made.ts';

/** USER_HZ of all supported platforms. */
const USER_HZ = 100;

/**
 * Renders the `ip -batch` lines that create routes of one family: routes on a link first, since the kernel checks the
 * gateways of the others against them.
 * @see ip-route(8)
 */
export function renderRouteLines(routes: readonly RouteMessage[], names: IpNames): readonly string[] {
  const isByGateway = ({ gateway, via, multipath }: RouteMessage): boolean =>
    gateway !== undefined || via !== undefined || multipath !== undefined;
  const ordered = [...routes.filter((route) => !isByGateway(route)), ...routes.filter(isByGateway)];
  const seen = new Set<string>();
  return ordered.map((route) => {
    if (route.encap !== undefined || route.multipath?.some(({ encap }) => encap !== undefined)) {
      return `# left out, ip -batch cannot express its encapsulation: ${renderRouteLine('add', route, names)}`;
    }
    const key = `${route.table} ${route.dst ?? ''} ${route.tos} ${route.priority ?? 0} ${route.src ?? ''}`;
    const verb = seen.has(key) ? 'append' : 'add';
    seen.add(key);
    return renderRouteLine(verb, route, names);
  });
}

function renderRouteLine(verb: 'add' | 'append', route: RouteMessage, names: IpNames): string {
  const isIpv6 = route.family === AF_INET6;
  const expires = Math.trunc(((route.cacheinfo?.expires ?? 0) | 0) / USER_HZ);
  return line(
    'route',
    verb,
    route.type === RTN_UNICAST ? undefined : typeName(route.type),
    route.dst ?? 'default',
    pair('from', route.src),
    pair('tos', route.tos === 0 ? undefined : `0x${route.tos.toString(16)}`),
    gateway(route),
    pair('dev', route.oif === undefined ? undefined : names.link(route.oif)),
    pair('table', route.table),
    pair('proto', route.protocol === RTPROT_UNSPEC ? 0 : route.protocol),
    pair('scope', isIpv6 ? undefined : route.scope),
    pair('src', route.prefsrc),
    pair('metric', route.priority),
    (route.flags & RTNH_F_ONLINK) === 0 ? [] : ['onlink'],
    pair('realm', route.flow === undefined ? undefined : realms(route.flow)),
    pair('expires', expires > 0 ? expires : undefined),
    pair('pref', PREFERENCES[route.pref ?? 0]),
    route.metrics === undefined ? [] : metrics(route.metrics),
    (route.multipath ?? []).flatMap((hop) => nexthop(hop, names)),
  );
}

/** Router preferences other than medium. @see RFC 4191 */
const PREFERENCES: Readonly<Record<number, string>> = { 1: 'high', 3: 'low' };

function gateway({ gateway: own, via }: Pick<RouteMessage, 'gateway' | 'via'>): readonly Argument[] {
  if (via !== undefined) return ['via', via.includes(':') ? 'inet6' : 'inet', via];
  return pair('via', own);
}

function realms(flow: number): string {
  return flow >>> 16 === 0 ? String(flow & 0xffff) : `${flow >>> 16}/${flow & 0xffff}`;
}

function nexthop(hop: RouteNexthop, names: IpNames): readonly Argument[] {
  return [
    'nexthop',
    ...gateway(hop),
    ...pair('dev', hop.oif === undefined || hop.oif === 0 ? undefined : names.link(hop.oif)),
    'weight',
    (hop.hops ?? 0) + 1,
    ...(((hop.flags ?? 0) & RTNH_F_ONLINK) === 0 ? [] : ['onlink']),
    ...pair('realm', hop.flow === undefined ? undefined : realms(hop.flow)),
  ];
}

const FEATURE_ECN = 1;

/**
 * Renders metrics. Each entry has the name that `ip` uses, the value, and the number of the metric, which selects its
 * lock bit. Times have no unit: `ip` then takes them as the kernel stores them.
 * @see uapi RTAX_*
 */
function metrics(found: RouteMetrics): readonly Argument[] {
  const { lock = 0 } = found;
  const values: readonly (readonly [string, Argument, number])[] = [
    ['mtu', found.mtu, 2],
    ['window', found.window, 3],
    ['rtt', found.rtt, 4],
    ['rttvar', found.rttvar, 5],
    ['ssthresh', found.ssthresh, 6],
    ['cwnd', found.cwnd, 7],
    ['advmss', found.advmss, 8],
    ['reordering', found.reordering, 9],
    ['hoplimit', found.hoplimit, 10],
    ['initcwnd', found.initcwnd, 11],
    ['features', ((found.features ?? 0) & FEATURE_ECN) === 0 ? undefined : 'ecn', 12],
    // `ip` always locks this one and does not accept the word `lock` before it.
    ['rto_min', found.rtoMin, 32],
    ['initrwnd', found.initrwnd, 14],
    ['quickack', found.quickack, 15],
    ['congctl', found.ccAlgo, 16],
    ['fastopen_no_cookie', found.fastopenNoCookie, 17],
  ];
  return values.flatMap(([name, value, number]) =>
    value === undefined ? [] : [name, ...(Math.floor(lock / 2 ** number) % 2 === 0 ? [] : ['lock']), value],
  );
}

/** Renders the `ip -batch` line that creates a rule. @see ip-rule(8) */
export function renderRuleLine(rule: RuleMessage): string {
  const mark = rule.fwmark === undefined && rule.fwmask === undefined ? undefined : hex(rule.fwmark ?? 0);
  return line(
    'rule add',
    (rule.flags & FIB_RULE_INVERT) === 0 ? undefined : 'not',
    'from',
    rule.src ?? 'all',
    pair('to', rule.dst),
    pair('tos', rule.tos === 0 ? undefined : hex(rule.tos)),
    pair('fwmark', mark === undefined || rule.fwmask === undefined ? mark : `${mark}/${hex(rule.fwmask)}`),
    pair('iif', nameWord(rule.iifname)),
    pair('oif', nameWord(rule.oifname)),
    pair('pref', rule.priority),
    pair('protocol', rule.protocol === 0 ? undefined : rule.protocol),
    pair('uidrange', range(rule.uidRange)),
    pair('ipproto', rule.ipProto),
    pair('sport', range(rule.sportRange)),
    pair('dport', range(rule.dportRange)),
    pair(
      'tun_id',
      rule.tunId?.reduce((value, byte) => value * 256 + byte, 0),
    ),
    rule.l3mdev === 1 ? 'l3mdev' : ruleAction(rule, rule.table),
    pair('suppress_prefixlength', rule.suppressPrefixlength),
    pair('suppress_ifgroup', rule.suppressIfgroup),
    pair('realms', rule.flow === undefined ? undefined : `${rule.flow >>> 16}/${rule.flow & 0xffff}`),
  );
}

/** Renders lines that delete the default rules that are not among `rules`: a new namespace has all of them. */
export function renderDefaultRules(rules: readonly RuleMessage[], family: 4 | 6): readonly string[] {
  const priorities = new Set(rules.filter((rule) => familyOfMessage(rule) === family).map(({ priority }) => priority));
  return DEFAULT_PRIORITIES[family]
    .filter((priority) => !priorities.has(priority))
    .map((priority) => `rule del pref ${priority}`);
}

/**
 * Quotes the name of an interface if needed: the kernel accepts any text as the name of an interface that does not
 * exist yet.
 */
function nameWord(ifname: string | undefined): Argument {
  return ifname === undefined ? undefined : batchWord(ifname);
}
