import { ownAddress } from '../netlink/address-message.ts';
import type { LinkMessage, LinkProperties, NetnsRef } from '../netlink/link-message.ts';
import { isNetlinkError } from '../netlink/netlink-error.ts';
import type { Rtnetlink } from '../netlink/rtnetlink.ts';
import { IFF_NOARP, IFF_PROMISC } from '../netlink/uapi/if-link.ts';
import { isInterfaceName } from '../runtime/interface-name.ts';
import { findNic, permanentMac } from './find-nic.ts';
import { nicAlias } from './host-veth-name.ts';
import type { NodeKernel } from './kernel.ts';
import type { ExclusiveNic, PodNetwork } from './network.ts';
import { WireError } from './wire-error.ts';

/** The interface of an ENI, with the attachment that it belongs to. */
export type OwnedNic = { readonly key: PodNetwork['key']; readonly nic: ExclusiveNic };

/** What an Ethernet device begins with. @see linux/net/ethernet/eth.c ether_setup() */
const BROADCAST_MAC = 'ff:ff:ff:ff:ff:ff';
const DEFAULT_TXQLEN = 1000;

/**
 * Moves an ENI's interface from the host's namespace into a Pod's, under the attachment's name and without what the Pod before
 * it changed. The alias with the owner is set before the move, and the move is one request. @throws WireError IFNAME_TAKEN, NIC_MISSING; NetlinkError
 * @returns its index in the Pod's namespace
 */
export function moveNicToPod(host: Rtnetlink, inPod: Rtnetlink, podNetns: NetnsRef, { key, nic }: OwnedNic): number {
  const { ifName: ifname } = key;
  if (inPod.link.get({ ifname }) !== undefined) {
    throw new WireError(
      'IFNAME_TAKEN',
      `the sandbox ${key.containerId} already has an interface ${ifname} that is not ours; choose another CNI_IFNAME or delete it`,
    );
  }
  const link = findNic(host.link.list(), nic.mac);
  if (link === undefined) {
    throw new WireError(
      'NIC_MISSING',
      `no interface with MAC ${nic.mac} in the host's namespace; is its ENI attached?`,
    );
  }
  const { ifindex } = link;
  flush(host, ifindex);
  reset(host, link, plainProperties(link, nic.mac));
  host.link.set({ ifindex, ifalias: nicAlias(key, nic.hostName) });
  host.link.set({ ifindex, netns: podNetns, ifname });
  // The index may differ: the old one may be in use there.
  const moved = inPod.link.get({ ifname });
  if (moved !== undefined && permanentMac(moved) === nic.mac) return moved.ifindex;
  throw new WireError('LINK_GONE', `${ifname} vanished from sandbox ${key.containerId} as soon as it was there`);
}

/**
 * Returns an ENI's interface to the host's namespace and releases it: down, without addresses and alias, under its own
 * name. Idempotent; a second call completes an interrupted one. `missing`: it is in neither namespace. When the Pod's
 * namespace is being deleted, the kernel moves the interface back by itself.
 * @param podNetns absent: the namespace is deleted. @throws NetlinkError
 */
export function returnNic(
  kernel: Pick<NodeKernel, 'rtnetlink' | 'enter'>,
  hostNetns: NetnsRef,
  podNetns: NetnsRef | undefined,
  { nic }: Pick<OwnedNic, 'nic'>,
): 'back' | 'missing' {
  const { rtnetlink: host, enter } = kernel;
  let link = findNic(host.link.list(), nic.mac);
  if (link === undefined && podNetns !== undefined) {
    using there = enter(podNetns);
    moveNicToHost(host, hostNetns, there.rtnetlink, nic);
    link = findNic(host.link.list(), nic.mac);
  }
  if (link === undefined) return 'missing';
  releaseNic(host, link, nic);
  return 'back';
}

/**
 * Releases an interface in the host's namespace: it gets the name and MTU of the lease, its own MAC and the settings of a new
 * device back. Nothing is read from the alias, which the Pod can write. The alias is removed last: an interrupted release is
 * recognized by it. @throws NetlinkError
 */
export function releaseNic(host: Rtnetlink, link: LinkMessage, nic: Omit<ExclusiveNic, 'addresses'>): void {
  const { ifindex } = link;
  flush(host, ifindex);
  const ifname = freeName(host, nic, ifindex);
  if (link.ifname !== ifname) host.link.set({ ifindex, ifname });
  const mtu = link.mtu !== nic.mtu && nic.mtu > 0 ? { mtu: nic.mtu } : {};
  reset(host, link, { ...plainProperties(link, nic.mac), ...mtu });
  if ((link.ifalias ?? '') !== '') host.link.set({ ifindex, ifalias: '' });
}

function reset(host: Rtnetlink, { ifindex }: LinkMessage, change: LinkProperties): void {
  if (Object.keys(change).length > 0) host.link.set({ ifindex, ...change });
}

/**
 * Returns what a Pod may have changed of its interface and the kernel keeps when the interface changes namespace. Addresses,
 * routes, sysctls and queueing disciplines go with the move. A longer queue stays: the node's owner may have set it.
 */
function plainProperties({ address, broadcast, flags, group, txqlen }: LinkMessage, mac: string): LinkProperties {
  return {
    ...(address !== mac && { address: mac }),
    ...(broadcast !== BROADCAST_MAC && { broadcast: BROADCAST_MAC }),
    ...((flags & IFF_NOARP) !== 0 && { arp: true }),
    ...((flags & IFF_PROMISC) !== 0 && { promisc: false }),
    ...(group !== 0 && { group: 0 }),
    ...(txqlen !== undefined && txqlen < DEFAULT_TXQLEN && { txqlen: DEFAULT_TXQLEN }),
  };
}

function flush(rtnetlink: Rtnetlink, ifindex: number): void {
  rtnetlink.link.set({ ifindex, up: false });
  for (const message of rtnetlink.address.list({ ifindex })) {
    try {
      rtnetlink.address.delete({ ifindex, address: ownAddress(message), prefixlen: message.prefixlen });
    } catch (error) {
      // It was removed when the link went down, or with the previous address.
      if (!isNetlinkError(error, 'EADDRNOTAVAIL', 'ENOENT', 'ENODEV')) throw error;
    }
  }
}

function moveNicToHost(host: Rtnetlink, hostNetns: NetnsRef, inPod: Rtnetlink, nic: ExclusiveNic): void {
  const link = findNic(inPod.link.list(), nic.mac);
  if (link === undefined) return;
  const { ifindex } = link;
  inPod.link.set({ ifindex, up: false });
  const ifname = freeName(host, nic, undefined);
  // Rename before the move: if the present name is in use in the target namespace, the move would fail.
  if (link.ifname !== ifname) inPod.link.set({ ifindex, ifname: unusedName(inPod, nic.mac) });
  inPod.link.set({ ifindex, netns: hostNetns, ifname });
}

/**
 * Returns the former name of the interface; a name that is derived from the MAC when that is not known, or another interface
 * has it by now.
 */
function freeName(
  host: Rtnetlink,
  { mac, hostName }: Pick<ExclusiveNic, 'mac' | 'hostName'>,
  ownIfindex: number | undefined,
): string {
  if (!isInterfaceName(hostName)) return macBasedName(mac);
  const taken = host.link.get({ ifname: hostName });
  return taken === undefined || taken.ifindex === ownIfindex ? hostName : macBasedName(mac);
}

/** The Pod may have a link of that name too. */
function unusedName(inPod: Rtnetlink, mac: string): string {
  const taken = new Set(inPod.link.list().map(({ ifname }) => ifname));
  let name = macBasedName(mac);
  for (let serial = 0; taken.has(name); serial++) name = `enx${serial}`;
  return name;
}

/**
 * Names an interface by its MAC as systemd does: fifteen bytes, the longest possible name. @see
 * systemd.net-naming-scheme(7)
 */
function macBasedName(mac: string): string {
  return `enx${mac.replaceAll(':', '')}`;
}
