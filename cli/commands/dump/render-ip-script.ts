import { flowtableDeviceCommands, splitFlowtableListing } from '../../../dataplane/fast-path/flowtable.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import { type AddressMessage, ownAddress } from '../../../netlink/address-message.ts';
import type { NeighMessage } from '../../../netlink/neigh-message.ts';
import { line, pair } from '../../../netlink/render-arguments.ts';
import type { RouteMessage } from '../../../netlink/route-message.ts';
import type { TrafficFilterMessage } from '../../../netlink/traffic-filter-message.ts';
import {
  IFA_F_HOMEADDRESS,
  IFA_F_MANAGETEMPADDR,
  IFA_F_MCAUTOJOIN,
  IFA_F_NODAD,
  IFA_F_NOPREFIXROUTE,
} from '../../../netlink/uapi/if-addr.ts';
import {
  NTF_EXT_LEARNED,
  NTF_PROXY,
  NTF_ROUTER,
  NUD_NOARP,
  NUD_PERMANENT,
  NUD_REACHABLE,
} from '../../../netlink/uapi/neighbour.ts';
import { AF_INET, AF_INET6 } from '../../../netlink/uapi/netlink.ts';
import type { IpNames } from './ip-names.ts';
import { batchWord, isRepresentable, renderBatchLine } from './render-batch-line.ts';
import type { Topic } from './render-dump-json.ts';
import { renderFilterLines } from './render-filters.ts';
import { renderLinkLines } from './render-link-lines.ts';
import { renderDefaultRules, renderRouteLines, renderRuleLine } from './render-route-line.ts';
import { type ScriptFacts, type ScriptInput, withoutKernelMade } from './without-kernel-made.ts';

/** Options of a script. */
type ScriptOptions = {
  /**
   * What to create. The script has its own order, in which the kernel accepts them: links, addresses, routes,
   * neighbours, rules.
   */
  readonly topics: readonly Topic[];
  /** Also creates the interfaces, each as one end of a veth pair. */
  readonly hasStandIns: boolean;
  /**
   * False when filters selected the objects: a default rule that is missing among them may then still exist on the
   * node.
   */
  readonly isUnfiltered: boolean;
  /** Script for `nft -f`. */
  readonly nft?: string;
  /** Listing of the table with the flowtable of the fast path. */
  readonly flowtable?: string;
  /** Traffic filters of the namespace: named in comments, because a script cannot load their programs. */
  readonly filters?: Known<readonly TrafficFilterMessage[]>;
};

const ORDER: readonly Topic[] = ['links', 'addrs', 'routes', 'neigh', 'rules'];

/**
 * Renders a shell script that creates the same objects in an empty namespace: `ip -batch` lines, then `nft -f`. What
 * the kernel creates by itself is left out; what a line of `ip` cannot express becomes a comment.
 * @see ip(8) -batch, nft(8) -f
 */
export function renderIpScript(facts: ScriptInput, names: IpNames, options: ScriptOptions): string {
  const script = withoutKernelMade(facts);
  const topics = ORDER.filter((topic) => options.topics.includes(topic) || (topic === 'links' && options.hasStandIns));
  const spelled: IpNames = { ...names, link: (ifindex) => batchWord(names.link(ifindex)) };
  const lines = topics.map((topic) => RENDERERS[topic](script, spelled, options));
  const links = lines.flatMap((each) => each.links ?? []).map(renderBatchLine);
  const v4 = lines.flatMap((each) => each.v4 ?? []).map(renderBatchLine);
  const v6 = lines.flatMap((each) => each.v6 ?? []).map(renderBatchLine);
  return [
    '#!/bin/sh\n# Made by tke-eni: makes the same again in an empty network namespace.\nset -e\n',
    hereDocument('ip -batch -', links, 'LINKS'),
    hereDocument('ip -4 -batch -', v4, 'IPV4'),
    hereDocument('ip -6 -batch -', v6, 'IPV6'),
    filterComments(options.filters, names),
    options.nft === undefined ? '' : hereDocument('nft -f -', options.nft.trimEnd().split('\n'), 'NFT'),
    options.flowtable === undefined ? '' : flowtableDocument(options.flowtable),
  ].join('');
}

type Lines = { readonly links?: readonly string[]; readonly v4?: readonly string[]; readonly v6?: readonly string[] };
type Renderer = (facts: ScriptFacts, names: IpNames, options: ScriptOptions) => Lines;

const RENDERERS: Readonly<Record<Topic, Renderer>> = {
  links: (facts, names, { hasStandIns }) => ({ links: renderLinkLines(facts, names, hasStandIns) }),
  addrs: ({ addresses }, names) => {
    const { v4 = [], v6 = [] } = byFamily(addresses, (address) => [renderAddressLine(address, names)]);
    // The kernel puts a new IPv6 address before the older ones of its scope, and prefers it as a source.
    return { v4, v6: v6.toReversed() };
  },
  routes: ({ routes, addresses }, names, { topics }) => {
    const lost = topics.includes('addrs') ? lostAddresses(addresses, names) : new Set<string>();
    const isLost = ({ prefsrc }: RouteMessage) => prefsrc !== undefined && lost.has(prefsrc);
    const ofFamily = (isV4: boolean) =>
      renderRouteLines(
        routes.filter((route) => (route.family === AF_INET) === isV4 && !isLost(route)),
        names,
      );
    const comments = routes
      .filter(isLost)
      .map(({ dst, prefsrc }) => `# left out, its source is an address that is left out: route ${dst} src ${prefsrc}`);
    return { v4: [...ofFamily(true), ...comments], v6: ofFamily(false) };
  },
  neigh: ({ neighs }, names) => byFamily(neighs, (neigh) => [renderNeighLine(neigh, names)]),
  rules: ({ rules, allRules, allAddresses }, _names, { isUnfiltered }) => {
    const { v4 = [], v6 = [] } = byFamily(rules, (rule) => [renderRuleLine(rule)]);
    if (!isUnfiltered) return { v4, v6 };
    // A node without IPv6 has no IPv6 default rules: that is no reason to delete them elsewhere.
    const hasIpv6 = [...allRules, ...allAddresses].some(({ family }) => family === AF_INET6);
    return {
      v4: [...v4, ...renderDefaultRules(allRules, 4)],
      v6: [...v6, ...(hasIpv6 ? renderDefaultRules(allRules, 6) : [])],
    };
  },
};

/**
 * The table of the flowtable comes last and may fail: a kernel may have none, and a link may be missing. Its links are
 * added in messages that the kernel accepts.
 */
function flowtableDocument(listing: string): string {
  const { text, devices } = splitFlowtableListing(listing);
  const lines = `${text}${flowtableDeviceCommands(devices)}`.trimEnd().split('\n');
  return hereDocument('nft -f -', lines, 'FLOWTABLE', " || echo 'the flowtable is left out' >&2");
}

function filterComments(filters: ScriptOptions['filters'], names: IpNames): string {
  if (filters === undefined) return '';
  const lines =
    filters.kind === 'known'
      ? renderFilterLines(filters.value, names)
      : [`traffic filters are left out: ${filters.why}`];
  return lines.map((line) => `${renderBatchLine(`# ${line}`)}\n`).join('');
}

/** Returns the addresses that no line creates: the kernel refuses a route with such a source. */
function lostAddresses(addresses: readonly AddressMessage[], names: IpNames): ReadonlySet<string> {
  const isCreated = (address: AddressMessage) => isRepresentable(renderAddressLine(address, names));
  const [created, lost] = [true, false].map((is) =>
    addresses.filter((address) => isCreated(address) === is).map(ownAddress),
  );
  const others = new Set(created);
  return new Set(lost?.filter((address) => !others.has(address)));
}

function byFamily<M extends { readonly family: number }>(
  messages: readonly M[],
  render: (message: M) => readonly string[],
): Lines {
  return {
    v4: messages.filter(({ family }) => family === AF_INET).flatMap(render),
    v6: messages.filter(({ family }) => family !== AF_INET).flatMap(render),
  };
}

/**
 * Renders a here-document. Its end mark is a line that is not among `lines`: a comment of nftables may span several
 * lines. `after` ends the line of the command.
 */
function hereDocument(command: string, lines: readonly string[], name: string, after = ''): string {
  let end = `END_OF_${name}`;
  while (lines.includes(end)) end += '_';
  return lines.length === 0 ? '' : `${command} <<'${end}'${after}\n${lines.join('\n')}\n${end}\n`;
}

const FOREVER = 0xffffffff;

/**
 * Renders the `ip -batch` line that creates an address. The line does not set the protocol: iproute2 before 6.3 cannot.
 * @see ip-address(8)
 */
function renderAddressLine(address: AddressMessage, names: IpNames): string {
  const { flags, cacheinfo } = address;
  const local = ownAddress(address);
  const dev = names.link(address.ifindex);
  const label = address.label === undefined ? undefined : batchWord(address.label);
  const isPeer = address.address !== local && address.address !== '';
  // An address without a time limit may still be deprecated: its preferred lifetime is then 0.
  const isLimited = cacheinfo !== undefined && (cacheinfo.valid !== FOREVER || cacheinfo.preferred !== FOREVER);
  return line(
    'address add',
    isPeer ? [local, 'peer', `${address.address}/${address.prefixlen}`] : `${local}/${address.prefixlen}`,
    pair('broadcast', address.broadcast),
    'dev',
    dev,
    pair('label', label === dev ? undefined : label),
    pair('scope', names.scope(address.scope)),
    pair('metric', address.priority),
    isLimited ? ['valid_lft', lifetime(cacheinfo.valid), 'preferred_lft', lifetime(cacheinfo.preferred)] : [],
    FLAGS.flatMap(([bit, word]) => ((flags & bit) === 0 ? [] : [word])),
  );
}

const FLAGS: readonly (readonly [number, string])[] = [
  [IFA_F_HOMEADDRESS, 'home'],
  [IFA_F_MANAGETEMPADDR, 'mngtmpaddr'],
  [IFA_F_NODAD, 'nodad'],
  [IFA_F_NOPREFIXROUTE, 'noprefixroute'],
  [IFA_F_MCAUTOJOIN, 'autojoin'],
];

function lifetime(seconds: number): string {
  return seconds === FOREVER ? 'forever' : String(seconds);
}

/**
 * Renders the `ip -batch` line that creates a neighbour. One that the kernel is resolving again (DELAY, PROBE) becomes
 * stale.
 * @see ip-neighbour(8)
 */
function renderNeighLine(neigh: NeighMessage, names: IpNames): string {
  const { flags } = neigh;
  if ((flags & NTF_PROXY) !== 0) return line('neigh add proxy', neigh.dst, 'dev', names.link(neigh.ifindex));
  return line(
    // The kernel may have learned this neighbour before the line runs: `add` would then fail.
    'neigh replace',
    neigh.dst,
    pair('lladdr', neigh.lladdr),
    'dev',
    names.link(neigh.ifindex),
    'nud',
    STATES[neigh.state] ?? 'stale',
    (flags & NTF_ROUTER) === 0 ? [] : ['router'],
    (flags & NTF_EXT_LEARNED) === 0 ? [] : ['extern_learn'],
    pair('protocol', neigh.protocol),
  );
}

const STATES: Readonly<Record<number, string>> = {
  [NUD_PERMANENT]: 'permanent',
  [NUD_NOARP]: 'noarp',
  [NUD_REACHABLE]: 'reachable',
};
