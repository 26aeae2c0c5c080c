import type { LinkChange, LinkMessage, LinkProperties, LinkRef, LinkSpec } from '../../netlink/link-message.ts';
import {
  IFF_BROADCAST,
  IFF_LOOPBACK,
  IFF_LOWER_UP,
  IFF_MULTICAST,
  IFF_NOARP,
  IFF_PROMISC,
  IFF_RUNNING,
  IFF_UP,
} from '../../netlink/uapi/if-link.ts';
import {
  addLoopback4,
  begin6,
  end6,
  leaveDown4,
  removeAllAddresses,
  renameLabels,
  returnUp4,
  returnUp6,
} from './addresses.ts';
import { hasCarrier } from './carrier.ts';
import { dropNeighs } from './neighbours.ts';
import { type Conf, emit, type Link, linkNamed, linksOf, type Netns } from './netns.ts';
import { notModelled, Refusal } from './refusal.ts';
import { dropRoutes } from './routes.ts';

/** ARPHRD_ETHER and ARPHRD_LOOPBACK. @see uapi/linux/if_arp.h */
const ETHER = 1;
const LOOPBACK = 772;

/** What a bridge gives a new port. */
const NEW_PORT = {
  mode: 0,
  isolated: 0,
  unicastFlood: 1,
  bcastFlood: 1,
  learning: 1,
  proxyarp: 0,
  locked: 0,
};

const MIN_MTU = 68;
const DEFAULT_MTU = 1500;
const MAX_MTU = 65_535;

/** A link that is made: `hardware` is a device of the machine, as an ENI's is. */
type NewLink = LinkProperties & {
  readonly ifname: string;
  readonly ifindex?: number;
  readonly kind?: string;
  readonly isHardware?: boolean;
};

/** Makes the loopback of a new namespace. */
export function makeLoopback(netns: Netns): void {
  const link = makeLink(netns, { ifname: 'lo', mtu: 65_536, address: '00:00:00:00:00:00' }, true);
  for (const [name, value] of [['accept_dad', '-1'] as const]) link.conf[6].set(name, value);
}

/**
 * Makes a link, of a veth pair both ends: the other one first, as the kernel numbers them.
 * @throws Refusal EEXIST, EBUSY, EBADF
 */
export function addLink(
  netns: Netns,
  spec: LinkSpec,
  by: number,
): { readonly ifindex: number; readonly peerIfindex?: number } {
  if (spec.netns !== undefined) throw notModelled('link that is born in another namespace');
  if (spec.ifindex !== undefined && netns.links.has(spec.ifindex)) throw new Refusal('EEXIST');
  if (spec.kind !== 'veth') {
    if (linkNamed(netns, spec.ifname) !== undefined) throw new Refusal('EEXIST');
    const link = makeLink(netns, spec);
    finish(link, spec, by);
    return { ifindex: link.ifindex };
  }
  const there = spec.peer.netns === undefined ? netns : netns.machine.byFd(spec.peer.netns.fd);
  if (there === undefined) throw new Refusal('EBADF');
  // With a number the kernel looks for that alone, and finds a taken name when the other end is made.
  if (spec.ifindex === undefined && linkNamed(netns, spec.ifname) !== undefined) throw new Refusal('EEXIST');
  if (linkNamed(there, spec.peer.ifname) !== undefined) throw new Refusal('EEXIST');
  if (spec.peer.up === true) throw new Refusal('ENOTCONN');
  if (spec.peer.ifindex !== undefined && there.links.has(spec.peer.ifindex)) throw new Refusal('EBUSY');
  const peer = makeLink(there, { kind: 'veth', ...spec.peer });
  const isNameTaken = linkNamed(netns, spec.ifname) !== undefined;
  if (isNameTaken || (spec.ifindex !== undefined && netns.links.has(spec.ifindex))) {
    there.links.delete(peer.ifindex);
    throw new Refusal(isNameTaken ? 'EEXIST' : 'EBUSY');
  }
  const link = makeLink(netns, spec);
  link.peer = peer;
  peer.peer = link;
  tell(peer, by);
  finish(link, spec, by);
  return { ifindex: link.ifindex, peerIfindex: peer.ifindex };
}

/** Plugs a device of the machine in: an ENI. @throws Refusal EEXIST */
export function plugIn(
  netns: Netns,
  device: { readonly ifname: string; readonly address: string; readonly mtu?: number },
): number {
  if (linkNamed(netns, device.ifname) !== undefined) throw new Refusal('EEXIST');
  const link = makeLink(netns, { ...device, isHardware: true });
  tell(link, 0);
  return link.ifindex;
}

/** Changes a link. What stands before a refusal is done, as in the kernel. @throws Refusal ENODEV, EEXIST, EBUSY, EINVAL */
export function setLink(netns: Netns, change: LinkChange): void {
  const link = netns.links.get(change.ifindex);
  if (link === undefined) throw new Refusal('ENODEV');
  if (change.netns !== undefined) move(link, change.netns.fd, change.ifname);
  const { address, broadcast, mtu, group, ifname, ifalias, txqlen } = change;
  let isTold = change.netns === undefined;
  // Also when it is the address of before.
  if (address !== undefined) {
    link.address = address;
    dropNeighs(link, [4, 6]);
    tell(link, 0);
  }
  if (mtu !== undefined) {
    if (mtu < MIN_MTU) throw new Refusal('EINVAL', 'mtu less than device minimum');
    if (mtu > MAX_MTU && link.type === ETHER) throw new Refusal('EINVAL', 'mtu greater than device maximum');
    if (mtu !== link.mtu) {
      link.mtu = mtu;
      link.hasOwnMtu = true;
      tell(link, 0);
      followMtu(link);
    }
  }
  if (group !== undefined) link.group = group;
  if (broadcast !== undefined) link.broadcast = broadcast;
  if (txqlen !== undefined) link.txqlen = txqlen;
  if (ifname !== undefined && ifname !== link.ifname) {
    if (linkNamed(link.netns, ifname) !== undefined) throw new Refusal('EEXIST');
    link.ifname = ifname;
    renameLabels(link);
    isTold = true;
  }
  if (ifalias !== undefined) {
    if (ifalias === '') delete link.ifalias;
    else link.ifalias = ifalias;
  }
  if (change.master !== undefined) enslave(link, change.master);
  const isChanged = setFlags(link, change);
  if (change.bridgePort !== undefined) {
    if (link.port === undefined) throw new Refusal('EOPNOTSUPP');
    link.port = { ...link.port, ...change.bridgePort };
  }
  if (isTold || isChanged) tell(link, 0);
}

/** Deletes a link, with the other end of its pair and all that is on it. @throws Refusal ENODEV */
export function deleteLink(netns: Netns, ref: LinkRef, by: number): void {
  const link = 'ifindex' in ref ? netns.links.get(ref.ifindex) : linkNamed(netns, ref.ifname);
  if (link === undefined) throw new Refusal('ENODEV');
  if (link.kind === undefined) throw new Refusal('EOPNOTSUPP');
  removeLink(link, by);
}

/** Removes a link whoever wants it: with its namespace also what no request deletes. */
export function removeLink(link: Link, by: number): void {
  const ends = link.peer === undefined ? [link] : [link, link.peer];
  for (const one of ends) close(one);
  for (const one of ends) {
    leave(one);
    one.netns.links.delete(one.ifindex);
    emit(one.netns, { kind: 'link', op: 'del', message: messageOf(one), portid: by });
  }
}

/** Finds a link. */
export function findLink(netns: Netns, ref: LinkRef): Link | undefined {
  return 'ifindex' in ref ? netns.links.get(ref.ifindex) : linkNamed(netns, ref.ifname);
}

/** Returns a link as a message has it. */
export function messageOf(link: Link): LinkMessage {
  const { peer, netns, port, kind, ifalias, permAddress } = link;
  const carrier = hasCarrier(link);
  return {
    ...{ family: 0, type: link.type, ifindex: link.ifindex, change: 0, unknown: [] },
    flags: link.flags | (carrier ? IFF_RUNNING | IFF_LOWER_UP : 0),
    ...{ ifname: link.ifname, mtu: link.mtu, address: link.address, broadcast: link.broadcast, group: link.group },
    ...{ txqlen: link.txqlen, carrier: carrier ? 1 : 0, promiscuity: 0 },
    ...(peer !== undefined && {
      link: peer.ifindex,
      ...(peer.netns !== netns && { linkNetnsid: idOf(netns, peer.netns) }),
    }),
    ...(link.master !== 0 && { master: link.master }),
    ...(kind !== undefined && { kind }),
    ...(port !== undefined && { slaveKind: 'bridge', bridgePort: { ...port } }),
    ...(ifalias !== undefined && { ifalias }),
    ...(permAddress !== undefined && { permAddress }),
  };
}

/** Tells those who watch of a link as it is now. */
function tell(link: Link, by: number): void {
  emit(link.netns, { kind: 'link', op: 'new', message: messageOf(link), portid: by });
}

function makeLink(netns: Netns, spec: NewLink, isLoopback = false): Link {
  const { kind } = spec;
  const ifindex = spec.ifindex ?? freeIndex(netns);
  const isQuiet = kind === 'dummy' || kind === 'ifb';
  const link: Link = {
    ...{ netns, ifindex, ifname: spec.ifname, ...(kind !== undefined && { kind }) },
    type: isLoopback ? LOOPBACK : ETHER,
    address: spec.address ?? netns.machine.nextMac(),
    ...(spec.isHardware === true && spec.address !== undefined && { permAddress: spec.address }),
    broadcast: isLoopback ? '00:00:00:00:00:00' : 'ff:ff:ff:ff:ff:ff',
    ...{
      mtu: spec.mtu ?? DEFAULT_MTU,
      hasOwnMtu: false,
      group: spec.group ?? 0,
      txqlen: spec.txqlen ?? 1000,
      master: 0,
    },
    flags: isLoopback ? IFF_LOOPBACK : IFF_BROADCAST | (isQuiet ? IFF_NOARP : IFF_MULTICAST),
    ...{ isHardware: spec.isHardware ?? false, isReady6: false },
    ...{ addresses: { 4: [], 6: [] }, neighs: [], qdiscs: [], conf: copyOf(netns.default) },
  };
  netns.links.set(ifindex, link);
  return link;
}

/** Brings a new link to the state that its request wants, and tells it once. */
function finish(link: Link, spec: LinkSpec, by: number): void {
  if (spec.ifalias !== undefined) link.ifalias = spec.ifalias;
  setFlags(link, spec);
  tell(link, by);
  if (spec.master === undefined || spec.master === 0) return;
  enslave(link, spec.master);
  tell(link, 0);
}

/** The lowest that was never given, or was left free by a wish. */
function freeIndex(netns: Netns): number {
  while (netns.links.has(netns.nextIndex)) netns.nextIndex += 1;
  return netns.nextIndex++;
}

function copyOf(conf: Conf): Conf {
  return { 4: new Map(conf[4]), 6: new Map(conf[6]), written: new Set(conf.written) };
}

/** @returns whether anything changed */
function setFlags(link: Link, { up, arp, promisc }: LinkProperties): boolean {
  const before = link.flags;
  if (arp !== undefined) link.flags = arp ? link.flags & ~IFF_NOARP : link.flags | IFF_NOARP;
  if (promisc !== undefined) link.flags = promisc ? link.flags | IFF_PROMISC : link.flags & ~IFF_PROMISC;
  if (up === true && (link.flags & IFF_UP) === 0) goUp(link);
  if (up === false && (link.flags & IFF_UP) !== 0) goDown(link);
  if (((link.flags ^ before) & IFF_NOARP) !== 0 && (link.flags & IFF_UP) !== 0) dropNeighs(link, [4, 6]);
  return link.flags !== before;
}

function goUp(link: Link): void {
  link.flags |= IFF_UP;
  if ((link.flags & IFF_LOOPBACK) !== 0) addLoopback4(link);
  returnUp4(link);
  returnUp6(link);
  followCarrier(link);
}

function goDown(link: Link): void {
  link.flags &= ~IFF_UP;
  leaveDown4(link);
  end6(link);
  followCarrier(link);
}

/** Another end, and a bridge, see whether there is a carrier now. */
function followCarrier(link: Link): void {
  if (hasCarrier(link)) begin6(link);
  const { peer, netns, master } = link;
  if (peer !== undefined && (peer.flags & IFF_UP) !== 0) {
    if (hasCarrier(peer)) begin6(peer);
    tell(peer, 0);
    followBridge(peer);
  }
  const bridge = master === 0 ? undefined : netns.links.get(master);
  if (bridge !== undefined) followBridge(link);
}

function followBridge(port: Link): void {
  const bridge = port.master === 0 ? undefined : port.netns.links.get(port.master);
  if (bridge === undefined || (bridge.flags & IFF_UP) === 0) return;
  if (hasCarrier(bridge)) begin6(bridge);
}

function enslave(link: Link, master: number): void {
  if (link.master === master) return;
  leaveBridge(link);
  if (master === 0) return;
  const bridge = link.netns.links.get(master);
  if (bridge === undefined) throw new Refusal('EINVAL');
  if (bridge.kind !== 'bridge') throw new Refusal('EOPNOTSUPP', 'Device does not allow enslaving');
  if (link.kind === 'bridge' || (link.flags & IFF_LOOPBACK) !== 0)
    throw new Refusal(link.kind === 'bridge' ? 'ELOOP' : 'EINVAL');
  link.master = master;
  link.port = { ...NEW_PORT };
  followBridge(link);
  followMtu(link);
}

function leaveBridge(port: Link): void {
  const { master, netns } = port;
  port.master = 0;
  delete port.port;
  followMtu({ master, netns });
}

/** A bridge has the smallest MTU of its ports, unless somebody set one. */
function followMtu({ master, netns }: Pick<Link, 'master' | 'netns'>): void {
  const bridge = master === 0 ? undefined : netns.links.get(master);
  if (bridge === undefined || bridge.hasOwnMtu) return;
  const ports = [...netns.links.values()].filter((one) => one.master === master);
  const mtu = ports.length === 0 ? DEFAULT_MTU : Math.min(...ports.map((one) => one.mtu));
  if (mtu === bridge.mtu) return;
  bridge.mtu = mtu;
  tell(bridge, 0);
}

function close(link: Link): void {
  if ((link.flags & IFF_UP) === 0) return;
  goDown(link);
  tell(link, 0);
}

/** Everything of a namespace that a link has there goes. */
function leave(link: Link): void {
  close(link);
  removeAllAddresses(link);
  dropRoutes(link.netns, 4, { isGone: ({ oif }) => oif === link.ifindex, isTold: false });
  dropRoutes(link.netns, 6, { isGone: ({ oif }) => oif === link.ifindex, isTold: true });
  dropNeighs(link, [4, 6]);
  link.qdiscs.length = 0;
  if (link.kind === 'bridge') for (const port of linksOf(link.netns)) if (port.master === link.ifindex) release(port);
  leaveBridge(link);
}

function release(port: Link): void {
  port.master = 0;
  delete port.port;
  tell(port, 0);
}

/** Moves a link; its name there is the wanted one only where its own is taken. @throws Refusal EEXIST, EINVAL, EBADF */
function move(link: Link, fd: number, wanted: string | undefined): void {
  const from = link.netns;
  const to = from.machine.byFd(fd);
  if (to === undefined) throw new Refusal('EBADF');
  if (to === from) return;
  if (link.kind === 'bridge' || (link.flags & IFF_LOOPBACK) !== 0)
    throw new Refusal('EINVAL', 'The interface netns is immutable');
  const isTaken = linkNamed(to, link.ifname) !== undefined;
  if (isTaken && (wanted === undefined || linkNamed(to, wanted) !== undefined))
    throw new Refusal('EEXIST', 'An interface with the same name exists in the target netns');
  leave(link);
  from.links.delete(link.ifindex);
  emit(from, { kind: 'link', op: 'del', message: messageOf(link), portid: 0 });
  if (isTaken && wanted !== undefined) link.ifname = wanted;
  if (to.links.has(link.ifindex)) link.ifindex = freeIndex(to);
  link.netns = to;
  link.conf = copyOf(to.default);
  to.links.set(link.ifindex, link);
  tell(link, 0);
}

/** Takes a device back to the host when its namespace ends; under another name where its own is taken. */
export function returnToHost(link: Link): void {
  const host = link.netns.machine.host();
  const name = linkNamed(host, link.ifname) === undefined ? link.ifname : `dev${link.ifindex}`;
  leave(link);
  link.netns.links.delete(link.ifindex);
  link.ifname = name;
  if (host.links.has(link.ifindex)) link.ifindex = freeIndex(host);
  link.netns = host;
  link.conf = copyOf(host.default);
  host.links.set(link.ifindex, link);
  tell(link, 0);
}

function idOf(netns: Netns, other: Netns): number {
  const known = netns.ids.get(other);
  if (known !== undefined) return known;
  const id = netns.ids.size;
  netns.ids.set(other, id);
  return id;
}
