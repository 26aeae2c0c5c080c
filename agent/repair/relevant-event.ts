import { oddPort } from '../../dataplane/bridge-port.ts';
import { permanentMac } from '../../dataplane/find-nic.ts';
import { hostVethAlias } from '../../dataplane/host-veth-name.ts';
import { isHostPrefix } from '../../dataplane/ip-prefix.ts';
import { DEFAULT_LINK_GROUP } from '../../dataplane/link-group.ts';
import type { BridgeNetwork, NodeNetwork } from '../../dataplane/network.ts';
import {
  BRIDGE_IFINDEX,
  BRIDGE_MAC,
  DIRECT_LINK_GROUP,
  isOurTable,
  OUR_PRIORITIES,
  PRIORITY,
  RTPROT_TKE_ENI,
  TABLE_MAIN,
} from '../../dataplane/numbers.ts';
import { type AddressMessage, ownAddress } from '../../netlink/address-message.ts';
import { bridgePortOf, type LinkMessage } from '../../netlink/link-message.ts';
import type { MonitorEvent } from '../../netlink/monitor.ts';
import type { NetconfMessage } from '../../netlink/netconf-message.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import { IFF_NOARP, IFF_PROMISC, IFF_UP } from '../../netlink/uapi/if-link.ts';
import { NETCONFA_IFINDEX_ALL } from '../../netlink/uapi/netconf.ts';
import { AF_BRIDGE } from '../../netlink/uapi/netlink.ts';
import { RT_SCOPE_LINK, RTN_UNREACHABLE } from '../../netlink/uapi/rtnetlink.ts';
import { type Lease, leaseKey } from '../journal/lease.ts';
import { isConnected } from '../node/connected-networks.ts';
import type { PrimaryInterface } from '../node/node-network.ts';
import type { NodeState } from '../state/node-state.ts';

/** What a host veth must have; `master`: ifindex of the bridge that it is a port of, with hairpin. */
type WatchedVeth = {
  /** Its name as the lease has it: a link that was renamed is planned by its new one. */
  readonly name: string;
  readonly group: number;
  readonly mtu: number;
  readonly mac: string;
  readonly alias: string;
  readonly master?: number;
};

/** `mac` is absent where another program made the bridge. */
type WatchedBridge = { readonly ifindex: number; readonly name: string; readonly mtu: number; readonly mac?: string };

/** The kernel objects whose changes may call for a repair. */
export type WatchedObjects = {
  /** Links: ENIs, the primary interface, host veths of active Pods. */
  readonly ifindexes: ReadonlySet<number>;
  /** MACs of the supply's ENIs, lower case. */
  readonly macs: ReadonlySet<string>;
  /** What each of our host veths must have, by ifindex. */
  readonly veths: ReadonlyMap<number, WatchedVeth>;
  /** What the bridge of GlobalRoute Pods must have. A link that gets its name may be in its place. Absent: none is planned. */
  readonly bridge?: WatchedBridge;
  /** Addresses of active Pods, as host prefixes ('10.0.0.5/32'). */
  readonly podPrefixes: ReadonlySet<string>;
  /** Addresses of the primary interface: the link that gets one becomes it. */
  readonly primaryIps: ReadonlySet<string>;
  /** Links that lead to networks of the node alone: the routes of such a link go with it. */
  readonly connectedLinks: ReadonlySet<number>;
  /** Whether filters of the fast path are planned. Absent: no. */
  readonly hasFilters?: boolean;
};

/**
 * Reports whether a change by others may mean that the kernel no longer holds what is planned. What the kernel does itself
 * (sender 0), such as deleting the routes of a link that a DEL deletes, is checked against the Pods that are active then. What a
 * process does with our protocol number is always worth a pass.
 * @param linkNow Reads a link at this moment: asked about one that lost its link-local address, and about a host veth whose
 * notification shows another name, alias or bridge than planned. A veth is born without an alias, and a port without hairpin, and both are notified when the ADD is over.
 */
export function isRelevant(event: MonitorEvent, watched: WatchedObjects, linkNow: LinkReader): boolean {
  switch (event.kind) {
    case 'overrun':
    case 'nftables':
      return true;
    case 'link':
      return isRelevantLink(event, watched, linkNow);
    case 'address':
      return event.message.scope === RT_SCOPE_LINK
        ? isLostLinkLocal(event, watched, linkNow)
        : isRelevantAddress(event.message, watched);
    case 'route':
      return isRelevantRoute(event, watched);
    case 'rule':
      return isRelevantRule(event, watched);
    case 'netconf':
      return event.op === 'new' && isSuspectSetting(event.message, watched);
    case 'neigh':
      return false;
    case 'qdisc':
      // What queues packets has no part in the plan; where filters are has.
      return FILTER_PLACES.has(event.message.kind) && isWhereFiltersAre(event.message.ifindex, watched);
    case 'filter':
      return isWhereFiltersAre(event.message.ifindex, watched);
  }
}

/** Kinds of disciplines that have filters for what comes in by a link, and leaves by it. */
const FILTER_PLACES: ReadonlySet<string> = new Set(['clsact', 'ingress']);

function isWhereFiltersAre(ifindex: number, { hasFilters, ifindexes }: WatchedObjects): boolean {
  return hasFilters === true && ifindexes.has(ifindex);
}

/**
 * Reports whether a link that is there lost its link-local address. The kernel gives each new link one, also the links of our Pods,
 * takes it with the link, and names no sender.
 */
function isLostLinkLocal(
  { op, message: { ifindex } }: MonitorEvent & { readonly kind: 'address' },
  { ifindexes }: WatchedObjects,
  linkNow: LinkReader,
): boolean {
  return op === 'del' && ifindexes.has(ifindex) && linkNow(ifindex) !== undefined;
}

function isRelevantAddress(message: AddressMessage, { ifindexes, primaryIps }: WatchedObjects): boolean {
  return ifindexes.has(message.ifindex) || primaryIps.has(ownAddress(message));
}

function isRelevantLink(
  { op, message }: MonitorEvent & { readonly kind: 'link' },
  watched: WatchedObjects,
  linkNow: LinkReader,
): boolean {
  if (watched.connectedLinks.has(message.ifindex) && (op === 'del' || (message.flags & IFF_UP) === 0)) return true;
  if (op === 'del') return watched.ifindexes.has(message.ifindex);
  const veth = watched.veths.get(message.ifindex);
  if (veth !== undefined) {
    const { group, mtu, address, flags } = message;
    const isChanged = group !== veth.group || mtu !== veth.mtu || (address !== undefined && address !== veth.mac);
    if (isChanged || (flags & (IFF_UP | IFF_NOARP)) !== IFF_UP) return true;
    if (veth.master === undefined && !isInPlace(message, veth)) return true;
    if (isMarked(message, veth) && isInPlace(message, veth)) return false;
    // Marks and the place of a port leave no trace elsewhere, as routes do: what the link is now decides.
    const now = linkNow(message.ifindex);
    return now !== undefined && !(isMarked(now, veth) && isInPlace(now, veth));
  }
  const { bridge } = watched;
  if (bridge !== undefined && message.ifindex === bridge.ifindex) return !isAsPlanned(message, bridge);
  if (bridge !== undefined && message.ifname === bridge.name) return true;
  return watched.ifindexes.has(message.ifindex) || watched.macs.has(permanentMac(message) ?? '');
}

/** Reads a link of the host's namespace; undefined when it is gone. */
type LinkReader = (ifindex: number) => LinkMessage | undefined;

/** Reports whether a link has what names it. A notification of a bridge about its port has no alias. */
function isMarked({ family, ifname, ifalias = '' }: LinkMessage, { name, alias }: WatchedVeth): boolean {
  return ifname === name && (ifalias === alias || family === AF_BRIDGE);
}

/** Reports whether a link is in its bridge, with the properties of a port of ours, or in no bridge, bond or VRF where it should be in none. */
function isInPlace(message: LinkMessage, veth: WatchedVeth): boolean {
  if ((message.master ?? 0) !== (veth.master ?? 0)) return false;
  if (veth.master === undefined) return true;
  const port = bridgePortOf(message);
  return port !== undefined && Object.keys(oddPort(port)).length === 0;
}

/** The kernel notifies of the bridge whenever a Pod comes or goes. */
function isAsPlanned({ ifname, mtu, group, master, address, flags }: LinkMessage, bridge: WatchedBridge): boolean {
  const isSame = ifname === bridge.name && mtu === bridge.mtu && group === 0 && (master ?? 0) === 0;
  const hasMac = bridge.mac === undefined || address === undefined || address === bridge.mac;
  return isSame && hasMac && (flags & (IFF_UP | IFF_NOARP | IFF_PROMISC)) === IFF_UP;
}

function isRelevantRoute(
  { op, message, portid }: MonitorEvent & { readonly kind: 'route' },
  watched: WatchedObjects,
): boolean {
  const isPods = watched.podPrefixes.has(message.dst ?? '');
  const isInOurs = isOurTable(message.table);
  // The default route determines the primary interface; a node may start before it has one.
  if (message.dst === undefined && message.table === TABLE_MAIN) return true;
  if (isToConnected(message, watched)) return true;
  if (portid !== 0 && message.protocol === RTPROT_TKE_ENI) return isInOurs || message.table === TABLE_MAIN;
  if (op === 'new')
    return message.protocol !== RTPROT_TKE_ENI && (isInOurs || (message.table === TABLE_MAIN && isPods));
  if (!isInOurs) return isPods;
  // The kernel deletes a route that refuses packets with no Pod: only with `lo`, which such routes of IPv6 are on.
  const isRefusing = message.type === RTN_UNREACHABLE;
  return isPods || isRefusing || !isHostPrefix(message.dst) || isOnKnownLink(message.oif, watched);
}

/** Reports whether a route of another program to a network without a gateway came or went. Those to single hosts wait. */
function isToConnected(message: RouteMessage, { ifindexes, veths }: WatchedObjects): boolean {
  const { dst, oif = 0, table } = message;
  const isOfOthers = !ifindexes.has(oif) && !veths.has(oif);
  return table === TABLE_MAIN && dst !== undefined && !isHostPrefix(dst) && isOfOthers && isConnected(message);
}

function isRelevantRule(
  { op, message, portid }: MonitorEvent & { readonly kind: 'rule' },
  watched: WatchedObjects,
): boolean {
  if (message.protocol !== RTPROT_TKE_ENI) {
    // A foreign rule that appears may be a conflict; one that disappears may end it. One with a mark may use bits of
    // ours.
    const isMarked = message.fwmark !== undefined;
    return isMarked || OUR_PRIORITIES.includes(message.priority) || isOurTable(message.table);
  }
  if (portid !== 0) return true;
  if (op === 'new') return false;
  // The rules of one Pod are deleted with the Pod; all others stay as long as the agent runs.
  const podPrefix =
    message.priority === PRIORITY.toPod ? message.dst : message.priority === PRIORITY.fromPod ? message.src : undefined;
  return podPrefix === undefined || watched.podPrefixes.has(podPrefix);
}

/**
 * Reports whether a setting may differ from the plan, which only the plan can tell for certain. Of all links and the node
 * `forwarding` is planned as 1, of Pods' links rp_filter too.
 */
function isSuspectSetting(
  { ifindex, forwarding, rpFilter }: NetconfMessage,
  { ifindexes, veths }: WatchedObjects,
): boolean {
  if (ifindex !== NETCONFA_IFINDEX_ALL && !ifindexes.has(ifindex)) return false;
  return forwarding === 0 || (rpFilter !== undefined && !(rpFilter === 1 && veths.has(ifindex)));
}

/** Reports whether a route's link is a known one: the route to a gateway is a host route too, on an ENI. */
function isOnKnownLink(oif: number | undefined, watched: WatchedObjects): boolean {
  return oif !== undefined && watched.ifindexes.has(oif);
}

const BITS = { 4: 32, 6: 128 } as const;

/** Lists the kernel objects whose changes may call for a repair now. */
export function watchedObjects(
  state: NodeState,
  primary: PrimaryInterface | undefined,
  node?: Pick<NodeNetwork, 'bridge' | 'connected' | 'fastPath'>,
): WatchedObjects {
  const { bridge, connected = [], fastPath } = node ?? {};
  const active = [...state.leases.values()].filter(
    (lease) => lease.state === 'active' || state.wired.has(leaseKey(lease)),
  );
  const veths = new Map(
    active.flatMap((lease) => {
      const table = groupOf(state, lease);
      if (lease.hostVeth?.ifindex === undefined || table === undefined) return [];
      const { ifindex, mac, name } = lease.hostVeth;
      const port = lease.block?.wiring === 'bridge' && bridge !== undefined ? { master: bridge.ifindex } : {};
      return [[ifindex, { name, group: table, mtu: lease.mtu, mac, alias: hostVethAlias(lease), ...port }] as const];
    }),
  );
  return {
    ...(bridge === undefined ? {} : { bridge: watchedBridge(bridge) }),
    veths,
    ifindexes: new Set([
      ...veths.keys(),
      ...[...state.enis.values(), ...state.exclusiveNics.values()].map(({ ifindex }) => ifindex),
      ...(primary === undefined ? [] : [primary.ifindex]),
      ...(bridge === undefined ? [] : [bridge.ifindex]),
    ]),
    macs: new Set([...(state.supply?.enis ?? []), ...(state.supply?.direct?.enis ?? [])].map(({ mac }) => mac)),
    primaryIps: new Set([...(primary?.addresses ?? []), ...state.nodeIps]),
    connectedLinks: new Set(connected.map(({ ifindex }) => ifindex)),
    hasFilters: fastPath === 'bpf',
    podPrefixes: new Set(active.flatMap(({ addresses }) => addresses.map(({ ip, family }) => `${ip}/${BITS[family]}`))),
  };
}

function watchedBridge({ ifindex, name, mtu }: BridgeNetwork): NonNullable<WatchedObjects['bridge']> {
  return { ifindex, name, mtu, ...(ifindex === BRIDGE_IFINDEX ? { mac: BRIDGE_MAC } : {}) };
}

function groupOf({ eniRecords }: NodeState, { plugin, eniId }: Lease): number | undefined {
  if (plugin === 'bridge') return DEFAULT_LINK_GROUP;
  return plugin === 'direct-eni' ? DIRECT_LINK_GROUP : eniRecords.get(eniId)?.table;
}
