import type { LinkMessage } from '../../../netlink/link-message.ts';
import {
  IFF_ALLMULTI,
  IFF_AUTOMEDIA,
  IFF_BROADCAST,
  IFF_DEBUG,
  IFF_DORMANT,
  IFF_DYNAMIC,
  IFF_ECHO,
  IFF_LOOPBACK,
  IFF_LOWER_UP,
  IFF_MASTER,
  IFF_MULTICAST,
  IFF_NOARP,
  IFF_NOTRAILERS,
  IFF_POINTOPOINT,
  IFF_PORTSEL,
  IFF_PROMISC,
  IFF_RUNNING,
  IFF_SLAVE,
  IFF_UP,
} from '../../../netlink/uapi/if-link.ts';
import type { IpNames, IpObject } from './ip-names.ts';

/** How links are rendered. */
type LinkView = {
  /** Adds what `ip -d` adds. */
  readonly isDetailed: boolean;
  /** Returns the flags of a link of the same namespace: a link above a lower link that is down gets M-DOWN. */
  readonly flagsOf: (ifindex: number) => number;
};

/** Renders a link as `ip -j link` prints it. @see ip-link(8), iproute2 ip/ipaddress.c */
export function renderLinkJson(link: LinkMessage, names: IpNames, view: LinkView): IpObject {
  return {
    ...renderHead(link, names, view),
    ...(link.operstate === undefined ? {} : { operstate: OPERSTATES[link.operstate] ?? String(link.operstate) }),
    ...(link.linkmode === undefined ? {} : { linkmode: LINKMODES[link.linkmode] ?? String(link.linkmode) }),
    ...renderRest(link, names, view),
  };
}

/**
 * Renders a link as `ip -j address` prints it, without its addresses. It lacks a few members that only `ip link`
 * prints.
 */
export function renderAddressLinkJson(link: LinkMessage, names: IpNames, view: LinkView): IpObject {
  const ofLinksAlone = ['linkmode', 'inet6_addr_gen_mode', 'inet6_token', ...(view.isDetailed ? [] : ['ifalias'])];
  const members = Object.entries(renderLinkJson(link, names, view));
  return Object.fromEntries(members.filter(([name]) => !ofLinksAlone.includes(name)));
}

function renderHead(link: LinkMessage, names: IpNames, view: LinkView): IpObject {
  return {
    ifindex: link.ifindex,
    ...renderLower(link, names),
    ifname: link.ifname,
    flags: linkFlags(link, view),
    mtu: link.mtu,
    ...(link.qdisc === undefined ? {} : { qdisc: link.qdisc }),
    ...(link.master === undefined ? {} : { master: names.link(link.master) }),
  };
}

function renderLower({ link, linkNetnsid }: LinkMessage, names: IpNames): IpObject {
  if (link === undefined) return {};
  if (link === 0) return { link: null };
  return linkNetnsid === undefined ? { link: names.link(link) } : { link_index: link };
}

function renderRest(link: LinkMessage, names: IpNames, view: LinkView): IpObject {
  const isPointToPoint = (link.flags & IFF_POINTOPOINT) !== 0;
  return {
    group: names.group(link.group),
    ...(link.txqlen === undefined || link.txqlen === 0 ? {} : { txqlen: link.txqlen }),
    link_type: LINK_TYPES[link.type] ?? String(link.type),
    ...(link.address === undefined ? {} : { address: hardwareAddress(link.address, link.type) }),
    ...(link.broadcast !== undefined && isPointToPoint ? { link_pointtopoint: true } : {}),
    ...(link.broadcast === undefined ? {} : { broadcast: hardwareAddress(link.broadcast, link.type) }),
    ...(link.permAddress === undefined || link.permAddress === link.address ? {} : { permaddr: link.permAddress }),
    ...(link.linkNetnsid === undefined ? {} : { link_netnsid: link.linkNetnsid }),
    ...(link.protoDown === undefined || link.protoDown === 0 ? {} : { proto_down: true }),
    ...(view.isDetailed ? renderDetails(link) : {}),
    ...(link.ifalias === undefined ? {} : { ifalias: link.ifalias }),
    ...(view.isDetailed && link.parentDevBusName !== undefined ? { parentbus: link.parentDevBusName } : {}),
    ...(view.isDetailed && link.parentDevName !== undefined ? { parentdev: link.parentDevName } : {}),
    ...(link.altNames === undefined ? {} : { altnames: link.altNames }),
  };
}

function renderDetails(link: LinkMessage): IpObject {
  const mode = link.afSpec?.inet6?.addrGenMode;
  const token = link.afSpec?.inet6?.token;
  const found: IpObject = {
    promiscuity: link.promiscuity,
    allmulti: link.allmulti,
    min_mtu: link.minMtu,
    max_mtu: link.maxMtu,
    linkinfo: renderLinkInfo(link),
    inet6_addr_gen_mode: mode === undefined ? undefined : (ADDR_GEN_MODES[mode] ?? `0x${mode.toString(16)}`),
    inet6_token: token === '::' ? undefined : token,
    num_tx_queues: link.numTxQueues,
    num_rx_queues: link.numRxQueues,
    gso_max_size: link.gsoMaxSize,
    gso_max_segs: link.gsoMaxSegs,
    tso_max_size: link.tsoMaxSize,
    tso_max_segs: link.tsoMaxSegs,
    gro_max_size: link.groMaxSize,
    gso_ipv4_max_size: link.gsoIpv4MaxSize,
    gro_ipv4_max_size: link.groIpv4MaxSize,
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}

/** Renders the kinds of a link; of a bridge and its port also what an agent sets, or a script of `-o ip` does. */
function renderLinkInfo({ kind, slaveKind, bridge, bridgePort }: LinkMessage): IpObject | undefined {
  if (kind === undefined && slaveKind === undefined) return undefined;
  return {
    ...(kind === undefined ? {} : { info_kind: kind }),
    ...(bridge === undefined ? {} : { info_data: renderBridge(bridge) }),
    ...(slaveKind === undefined ? {} : { info_slave_kind: slaveKind }),
    ...(bridgePort === undefined ? {} : { info_slave_data: renderPort(bridgePort) }),
  };
}

function renderBridge(bridge: NonNullable<LinkMessage['bridge']>): IpObject {
  return {
    forward_delay: bridge.forwardDelay,
    hello_time: bridge.helloTime,
    max_age: bridge.maxAge,
    ageing_time: bridge.ageingTime,
    stp_state: bridge.stpState,
    priority: bridge.bridgePriority,
    vlan_filtering: bridge.vlanFiltering,
    vlan_default_pvid: bridge.vlanDefaultPvid,
  };
}

function renderPort({ state, ...port }: NonNullable<LinkMessage['bridgePort']>): IpObject {
  return {
    state: state === undefined ? undefined : (PORT_STATES[state] ?? String(state)),
    priority: port.priority,
    cost: port.cost,
    hairpin: isSet(port.mode),
    learning: isSet(port.learning),
    flood: isSet(port.unicastFlood),
    proxy_arp: isSet(port.proxyarp),
    bcast_flood: isSet(port.bcastFlood),
    isolated: isSet(port.isolated),
    locked: isSet(port.locked),
  };
}

function isSet(value: number | undefined): boolean | undefined {
  return value === undefined ? undefined : value !== 0;
}

/** Names of BR_STATE_*, by number. */
const PORT_STATES: readonly string[] = ['disabled', 'listening', 'learning', 'forwarding', 'blocking'];

/** Names of IF_OPER_*, by number. @see RFC 2863 */
const OPERSTATES: readonly string[] = ['UNKNOWN', 'NOTPRESENT', 'DOWN', 'LOWERLAYERDOWN', 'TESTING', 'DORMANT', 'UP'];
const LINKMODES: readonly string[] = ['DEFAULT', 'DORMANT'];
const ADDR_GEN_MODES: readonly string[] = ['eui64', 'none', 'stable_secret', 'random'];

/** Names of ARPHRD_*, by number. @see uapi/linux/if_arp.h */
const LINK_TYPES: Readonly<Record<number, string>> = {
  1: 'ether',
  32: 'infiniband',
  280: 'can',
  512: 'ppp',
  768: 'ipip',
  769: 'tunnel6',
  772: 'loopback',
  776: 'sit',
  778: 'gre',
  823: 'gre6',
  65534: 'none',
};
/** Types of tunnels whose link-layer addresses are IPv4 addresses. */
const IPV4_TUNNELS: readonly number[] = [768, 776, 778];

function hardwareAddress(address: string, type: number): string {
  const bytes = address.split(':');
  const isIpv4 = IPV4_TUNNELS.includes(type) && bytes.length === 4;
  return isIpv4 ? bytes.map((byte) => Number.parseInt(byte, 16)).join('.') : address;
}

/** Flags in the order of iproute2. */
const FLAGS: readonly (readonly [number, string])[] = [
  [IFF_LOOPBACK, 'LOOPBACK'],
  [IFF_BROADCAST, 'BROADCAST'],
  [IFF_POINTOPOINT, 'POINTOPOINT'],
  [IFF_MULTICAST, 'MULTICAST'],
  [IFF_NOARP, 'NOARP'],
  [IFF_ALLMULTI, 'ALLMULTI'],
  [IFF_PROMISC, 'PROMISC'],
  [IFF_MASTER, 'MASTER'],
  [IFF_SLAVE, 'SLAVE'],
  [IFF_DEBUG, 'DEBUG'],
  [IFF_DYNAMIC, 'DYNAMIC'],
  [IFF_AUTOMEDIA, 'AUTOMEDIA'],
  [IFF_PORTSEL, 'PORTSEL'],
  [IFF_NOTRAILERS, 'NOTRAILERS'],
  [IFF_UP, 'UP'],
  [IFF_LOWER_UP, 'LOWER_UP'],
  [IFF_DORMANT, 'DORMANT'],
  [IFF_ECHO, 'ECHO'],
];

/** Names the flags of a link as `ip` does, NO-CARRIER and M-DOWN included. */
function linkFlags({ flags, link, linkNetnsid }: LinkMessage, { flagsOf }: LinkView): readonly string[] {
  const hasNoCarrier = (flags & IFF_UP) !== 0 && (flags & IFF_RUNNING) === 0;
  const isLowerDown = link !== undefined && link !== 0 && linkNetnsid === undefined && (flagsOf(link) & IFF_UP) === 0;
  return [
    ...(hasNoCarrier ? ['NO-CARRIER'] : []),
    ...FLAGS.flatMap(([bit, name]) => ((flags & bit) === 0 ? [] : [name])),
    ...(isLowerDown ? ['M-DOWN'] : []),
  ];
}
