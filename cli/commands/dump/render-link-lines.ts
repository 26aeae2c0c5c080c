import type { LinkMessage } from '../../../netlink/link-message.ts';
import { line, pair } from '../../../netlink/render-arguments.ts';
import {
  IFF_LOOPBACK,
  IFF_LOWER_UP,
  IFF_MULTICAST,
  IFF_NOARP,
  IFF_PROMISC,
  IFF_UP,
} from '../../../netlink/uapi/if-link.ts';
import type { IpNames } from './ip-names.ts';
import { batchWord, isRepresentable } from './render-batch-line.ts';
import type { ScriptFacts } from './without-kernel-made.ts';

/** Prefix of the name of a stand-in's other end, an interface that nothing else uses; its index follows. */
const STAND_IN_PREFIX = 'tke-si-';
/** Longest name of an interface in bytes, without its final zero. @see uapi/linux/if.h IFNAMSIZ */
const MAX_NAME_BYTES = 15;
/** Matches a link-layer address of 6 bytes: a veth accepts no other. */
const MAC = /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/;

/**
 * Renders the `ip -batch` lines that create links as they are, or stand-ins for them: veth pairs, with the other end up
 * where the link has a carrier. Bridges are created as bridges.
 * @see ip-link(8)
 */
export function renderLinkLines(facts: ScriptFacts, names: IpNames, hasStandIns: boolean): readonly string[] {
  const links = facts.links.filter(({ flags }) => (flags & IFF_LOOPBACK) === 0);
  const loopbacks = facts.links.filter(({ flags }) => (flags & IFF_LOOPBACK) !== 0 && (flags & IFF_UP) !== 0);
  const bridges = links.filter(({ kind }) => kind === 'bridge');
  const others = links.filter(({ kind }) => kind !== 'bridge');
  const taken = new Set(facts.links.map(({ ifname }) => ifname));
  return [
    ...bridges.map(renderBridge),
    ...others.flatMap((link) => (hasStandIns ? renderStandIn(link, taken) : renderCreation(link))),
    ...links.flatMap((link) => renderSettings(link, names, facts.withLinkLocal.has(link.ifindex))),
    ...loopbacks.map(({ ifname }) => `link set dev ${batchWord(ifname)} up`),
  ];
}

function renderBridge({ ifname, address, bridge }: LinkMessage): string {
  return line(
    'link add name',
    batchWord(ifname),
    pair('address', address),
    'type bridge',
    pair('forward_delay', bridge?.forwardDelay),
    pair('hello_time', bridge?.helloTime),
    pair('max_age', bridge?.maxAge),
    pair('ageing_time', bridge?.ageingTime),
    pair('stp_state', bridge?.stpState),
    pair('priority', bridge?.bridgePriority),
    pair('vlan_filtering', bridge?.vlanFiltering === 0 ? undefined : bridge?.vlanFiltering),
  );
}

function renderStandIn({ ifname, ifindex, flags, address }: LinkMessage, taken: Set<string>): readonly string[] {
  const other = freeName(ifindex, taken);
  const mac = address !== undefined && MAC.test(address) ? address : undefined;
  const creation = line('link add name', batchWord(ifname), pair('address', mac), 'type veth peer name', other);
  // The line becomes a comment, so the rest of the stand-in is left out, too.
  if (!isRepresentable(creation)) return [creation];
  return [
    creation,
    `link set dev ${other} addrgenmode none`,
    ...((flags & IFF_LOWER_UP) === 0 ? [] : [`link set dev ${other} up`]),
  ];
}

/** Names the other end by the index of the link, or, where that name is taken or too long, by the next free number. */
function freeName(ifindex: number, taken: Set<string>): string {
  let name = `${STAND_IN_PREFIX}${ifindex}`;
  for (let number = 1; taken.has(name) || name.length > MAX_NAME_BYTES; number++) name = `${STAND_IN_PREFIX}${number}`;
  taken.add(name);
  return name;
}

/** Kinds of links that need only a name. */
const SIMPLE_KINDS: readonly (string | undefined)[] = ['dummy', 'ifb'];

function renderCreation({ ifname, kind, address }: LinkMessage): readonly string[] {
  if (SIMPLE_KINDS.includes(kind))
    return [line('link add name', batchWord(ifname), pair('address', address), 'type', kind)];
  const what = kind === undefined ? 'a network card' : kind === 'veth' ? 'one end of a veth pair' : `of kind ${kind}`;
  return [`# ${ifname} is ${what}: it must be there before (or use --stand-ins)`];
}

function renderSettings(link: LinkMessage, names: IpNames, hasLinkLocal: boolean): readonly string[] {
  const { flags, master, ifalias } = link;
  const isUp = (flags & IFF_UP) !== 0;
  const alias = ifalias === undefined ? undefined : quoted(ifalias);
  const isAliasShown = alias === undefined || isRepresentable(alias);
  const bridge = master === undefined || master === 0 ? undefined : names.link(master);
  const isBridgeShown = bridge === undefined || isRepresentable(bridge);
  const settings = line(
    'link set dev',
    batchWord(link.ifname),
    pair('mtu', link.mtu),
    pair('group', link.group),
    pair('txqueuelen', link.txqlen),
    pair('master', isBridgeShown ? bridge : undefined),
    pair('alias', isAliasShown ? alias : undefined),
    // A link that is up without a link-local address must not get one.
    isUp && !hasLinkLocal ? ['addrgenmode', 'none'] : [],
    (flags & IFF_NOARP) === 0 ? [] : ['arp', 'off'],
    (flags & IFF_MULTICAST) === 0 ? ['multicast', 'off'] : [],
    (flags & IFF_PROMISC) === 0 || master !== undefined ? [] : ['promisc', 'on'],
    isUp ? 'up' : 'down',
  );
  // The rest of the line is needed: a link that stays down has no routes.
  return [
    settings,
    ...(isAliasShown ? [] : [`# left out, ip -batch cannot express it: alias ${alias}`]),
    ...(isBridgeShown ? [] : [`# left out, ip -batch cannot express it: ${link.ifname} master ${bridge}`]),
  ];
}

/** Quotes an alias. Its double quotes become single ones where it has both: an alias is only read by people. */
function quoted(text: string): string {
  return batchWord(text.includes("'") ? text.replaceAll('"', "'") : text);
}
