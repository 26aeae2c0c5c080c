import type { AddressSpec } from './address-message.ts';
import type { LinkChange, LinkProperties, LinkRef, LinkSpec } from './link-message.ts';
import type { NeighSpec } from './neigh-message.ts';
import type { Query, Request } from './request.ts';
import type { RouteSpec } from './route-message.ts';
import type { RuleSpec } from './rule-message.ts';
import {
  FIB_RULE_INVERT,
  FR_ACT_BLACKHOLE,
  FR_ACT_GOTO,
  FR_ACT_NOP,
  FR_ACT_PROHIBIT,
  FR_ACT_TO_TBL,
  FR_ACT_UNREACHABLE,
} from './uapi/fib-rules.ts';
import { IFA_F_NODAD, IFA_F_NOPREFIXROUTE } from './uapi/if-addr.ts';
import { NTF_PROXY, NTF_ROUTER, NUD_NOARP, NUD_PERMANENT, NUD_REACHABLE, NUD_STALE } from './uapi/neighbour.ts';
import { AF_INET6 } from './uapi/netlink.ts';
import {
  RT_SCOPE_HOST,
  RT_SCOPE_LINK,
  RT_SCOPE_NOWHERE,
  RT_SCOPE_UNIVERSE,
  RT_TABLE_DEFAULT,
  RT_TABLE_LOCAL,
  RT_TABLE_MAIN,
  RTN_ANYCAST,
  RTN_BLACKHOLE,
  RTN_BROADCAST,
  RTN_LOCAL,
  RTN_MULTICAST,
  RTN_PROHIBIT,
  RTN_THROW,
  RTN_UNREACHABLE,
  RTNH_F_ONLINK,
  RTPROT_BOOT,
  RTPROT_DHCP,
  RTPROT_KERNEL,
  RTPROT_RA,
  RTPROT_REDIRECT,
  RTPROT_STATIC,
} from './uapi/rtnetlink.ts';

/** Names the interface of an index. */
export type NameOf = (ifindex: number) => string;

/** iproute2 takes 'if7' for the interface with index 7 where no interface has that name. */
const byIndex: NameOf = (ifindex) => `if${ifindex}`;

/** Renders a request as the equivalent `ip` line, for errors, logs and dry runs. Pure. @see ip(8) */
export function renderRequest(request: Request | Query, nameOf: NameOf = byIndex): string {
  if (request.verb === 'list') {
    return renderList(request, nameOf);
  }
  switch (request.object) {
    case 'link':
      return renderLink(request, nameOf);
    case 'address':
      return renderAddress(request.verb, request.spec, nameOf);
    case 'route':
      return request.verb === 'get' ? renderLookup(request, nameOf) : renderRoute(request.verb, request.spec, nameOf);
    case 'rule':
      return renderRule(request.verb, request.spec);
    case 'neigh':
      return renderNeigh(request.verb, request.spec, nameOf);
  }
}

type Word = string | number | undefined;

function line(...words: readonly (Word | readonly Word[])[]): string {
  return words
    .flat()
    .filter((word) => word !== undefined && word !== '')
    .join(' ');
}

function pair(name: string, value: Word): readonly Word[] {
  return value === undefined ? [] : [name, value];
}

/** `ip` itself, told the family where no address shows it. */
function ip(family: number | undefined, ...addresses: readonly (string | undefined)[]): string {
  const isIpv6 = family === AF_INET6 || addresses.some((address) => address?.includes(':'));
  return isIpv6 ? 'ip -6' : 'ip';
}

function named(names: Readonly<Record<number, string>>, value: number | undefined): Word {
  return value === undefined ? undefined : (names[value] ?? value);
}

const TABLES = { [RT_TABLE_MAIN]: 'main', [RT_TABLE_LOCAL]: 'local', [RT_TABLE_DEFAULT]: 'default' };
const PROTOCOLS = {
  [RTPROT_REDIRECT]: 'redirect',
  [RTPROT_KERNEL]: 'kernel',
  [RTPROT_BOOT]: 'boot',
  [RTPROT_STATIC]: 'static',
  [RTPROT_RA]: 'ra',
  [RTPROT_DHCP]: 'dhcp',
};
const SCOPES = {
  [RT_SCOPE_UNIVERSE]: 'global',
  [RT_SCOPE_LINK]: 'link',
  [RT_SCOPE_HOST]: 'host',
  [RT_SCOPE_NOWHERE]: 'nowhere',
};
const ROUTE_TYPES = {
  [RTN_LOCAL]: 'local',
  [RTN_BROADCAST]: 'broadcast',
  [RTN_ANYCAST]: 'anycast',
  [RTN_MULTICAST]: 'multicast',
  [RTN_BLACKHOLE]: 'blackhole',
  [RTN_UNREACHABLE]: 'unreachable',
  [RTN_PROHIBIT]: 'prohibit',
  [RTN_THROW]: 'throw',
};
const NEIGH_STATES = {
  [NUD_PERMANENT]: 'permanent',
  [NUD_NOARP]: 'noarp',
  [NUD_REACHABLE]: 'reachable',
  [NUD_STALE]: 'stale',
};

function renderList(request: Query & { verb: 'list' }, nameOf: NameOf): string {
  const { spec } = request;
  const family = typeof spec['family'] === 'number' ? spec['family'] : undefined;
  const text = (key: string, word: string, names: Readonly<Record<number, string>> = {}): readonly Word[] => {
    const value = spec[key];
    return typeof value === 'number' ? [word, names[value] ?? value] : typeof value === 'string' ? [word, value] : [];
  };
  const device = typeof spec['oif'] === 'number' ? spec['oif'] : spec['ifindex'];
  return line(
    ip(family),
    request.object,
    'show',
    text('table', 'table', TABLES),
    pair('dev', typeof device === 'number' ? nameOf(device) : undefined),
    text('protocol', 'proto', PROTOCOLS),
    text('type', 'type', ROUTE_TYPES),
    text('master', 'master'),
    text('kind', 'type'),
    text('group', 'group'),
  );
}

function renderLink(
  request: (Request & { object: 'link' }) | (Query & { object: 'link'; verb: 'get' }),
  nameOf: NameOf,
): string {
  if (request.verb === 'add') {
    return renderNewLink(request.spec, nameOf);
  }
  if (request.verb === 'set') {
    return renderLinkChange(request.spec, nameOf);
  }
  return line('ip link', request.verb === 'delete' ? 'del' : 'show', 'dev', linkName(request.spec, nameOf));
}

function linkName(ref: LinkRef, nameOf: NameOf): string {
  return 'ifindex' in ref ? nameOf(ref.ifindex) : ref.ifname;
}

function renderNewLink(spec: LinkSpec, nameOf: NameOf): string {
  return line(
    'ip link add',
    pair('name', spec.ifname),
    pair('index', spec.ifindex),
    properties(spec, nameOf),
    queues(spec),
    'type',
    spec.kind,
    spec.kind === 'veth'
      ? [
          'peer',
          'name',
          spec.peer.ifname,
          ...pair('index', spec.peer.ifindex),
          ...properties(spec.peer, nameOf),
          ...queues(spec.peer),
        ]
      : [],
    spec.kind === 'bridge' && spec.bridge !== undefined
      ? [
          ...pair('forward_delay', spec.bridge.forwardDelay),
          ...pair('hello_time', spec.bridge.helloTime),
          ...pair('max_age', spec.bridge.maxAge),
          ...pair('ageing_time', spec.bridge.ageingTime),
          ...pair('stp_state', spec.bridge.stpState),
          ...pair('priority', spec.bridge.bridgePriority),
          ...pair('vlan_filtering', spec.bridge.vlanFiltering),
          ...pair('vlan_default_pvid', spec.bridge.vlanDefaultPvid),
        ]
      : [],
  );
}

function queues(spec: { readonly numTxQueues?: number; readonly numRxQueues?: number }): readonly Word[] {
  return [...pair('numtxqueues', spec.numTxQueues), ...pair('numrxqueues', spec.numRxQueues)];
}

function renderLinkChange(change: LinkChange, nameOf: NameOf): string {
  return line('ip link set dev', nameOf(change.ifindex), pair('name', change.ifname), properties(change, nameOf));
}

function properties(spec: LinkProperties, nameOf: NameOf): readonly Word[] {
  return [
    ...pair('address', spec.address),
    ...pair('broadcast', spec.broadcast),
    ...pair('mtu', spec.mtu),
    ...pair('group', spec.group),
    ...pair('txqueuelen', spec.txqlen),
    ...pair('alias', spec.ifalias),
    ...(spec.master === 0 ? ['nomaster'] : pair('master', spec.master === undefined ? undefined : nameOf(spec.master))),
    ...pair('netns', spec.netns === undefined ? undefined : `/proc/self/fd/${spec.netns.fd}`),
    ...(spec.up === undefined ? [] : [spec.up ? 'up' : 'down']),
  ];
}

function verbWord(verb: 'add' | 'replace' | 'delete'): string {
  return verb === 'delete' ? 'del' : verb;
}

function renderAddress(verb: 'add' | 'replace' | 'delete', spec: AddressSpec, nameOf: NameOf): string {
  const isPeer = spec.local !== undefined && spec.local !== spec.address;
  const whole = `${spec.address}/${spec.prefixlen}`;
  const flags = spec.flags ?? 0;
  return line(
    ip(spec.family, spec.address),
    'address',
    verbWord(verb),
    isPeer ? [spec.local, 'peer', whole] : whole,
    pair('broadcast', spec.broadcast),
    'dev',
    nameOf(spec.ifindex),
    pair('label', spec.label),
    pair('scope', named(SCOPES, spec.scope)),
    pair('metric', spec.priority),
    pair('proto', spec.protocol),
    (flags & IFA_F_NODAD) === 0 ? [] : ['nodad'],
    (flags & IFA_F_NOPREFIXROUTE) === 0 ? [] : ['noprefixroute'],
  );
}

function renderRoute(verb: 'add' | 'replace' | 'delete', spec: RouteSpec, nameOf: NameOf): string {
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
    verbWord(verb),
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

function renderLookup(query: Query & { object: 'route'; verb: 'get' }, nameOf: NameOf): string {
  const { spec } = query;
  return line(
    ip(undefined, spec.dst),
    'route get',
    spec.fibmatch === true ? 'fibmatch' : undefined,
    spec.dst,
    pair('from', spec.src),
    pair('iif', spec.iif === undefined ? undefined : nameOf(spec.iif)),
    pair('oif', spec.oif === undefined ? undefined : nameOf(spec.oif)),
    pair('mark', spec.mark === undefined ? undefined : hex(spec.mark)),
  );
}

function renderRule(verb: 'add' | 'delete', spec: RuleSpec): string {
  const isInverted = ((spec.flags ?? 0) & FIB_RULE_INVERT) !== 0;
  const mark = spec.fwmark === undefined ? undefined : hex(spec.fwmark);
  return line(
    ip(spec.family, spec.src, spec.dst),
    'rule',
    verbWord(verb),
    isInverted ? 'not' : undefined,
    pair('from', spec.src ?? (verb === 'add' && spec.dst === undefined ? 'all' : undefined)),
    pair('to', spec.dst),
    pair('tos', spec.tos === 0 ? undefined : spec.tos),
    pair('fwmark', mark !== undefined && spec.fwmask !== undefined ? `${mark}/${hex(spec.fwmask)}` : mark),
    pair('iif', spec.iifname),
    pair('oif', spec.oifname),
    pair('pref', spec.priority),
    pair('protocol', named(PROTOCOLS, spec.protocol)),
    pair('uidrange', range(spec.uidRange)),
    pair('ipproto', spec.ipProto),
    pair('sport', range(spec.sportRange)),
    pair('dport', range(spec.dportRange)),
    ruleAction(spec),
    pair('suppress_prefixlength', spec.suppressPrefixlength),
    pair('suppress_ifgroup', spec.suppressIfgroup),
  );
}

function ruleAction(spec: RuleSpec): readonly Word[] {
  switch (spec.action ?? FR_ACT_TO_TBL) {
    case FR_ACT_TO_TBL:
      return spec.table === undefined ? [] : ['lookup', named(TABLES, spec.table)];
    case FR_ACT_GOTO:
      return ['goto', spec.goto];
    case FR_ACT_NOP:
      return ['nop'];
    case FR_ACT_BLACKHOLE:
      return ['blackhole'];
    case FR_ACT_UNREACHABLE:
      return ['unreachable'];
    case FR_ACT_PROHIBIT:
      return ['prohibit'];
    default:
      return ['type', spec.action];
  }
}

function range(value: { readonly start: number; readonly end: number } | undefined): Word {
  return value === undefined ? undefined : `${value.start}-${value.end}`;
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}

function renderNeigh(verb: 'add' | 'replace' | 'delete', spec: NeighSpec, nameOf: NameOf): string {
  const flags = spec.flags ?? 0;
  const isProxy = (flags & NTF_PROXY) !== 0;
  return line(
    ip(spec.family, spec.dst),
    'neigh',
    verbWord(verb),
    isProxy ? 'proxy' : undefined,
    spec.dst,
    pair('lladdr', spec.lladdr),
    'dev',
    nameOf(spec.ifindex),
    verb === 'delete' ? [] : pair('nud', named(NEIGH_STATES, spec.state)),
    (flags & NTF_ROUTER) === 0 ? [] : ['router'],
    pair('protocol', named(PROTOCOLS, spec.protocol)),
  );
}
