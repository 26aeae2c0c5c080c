import { ownAddress } from '../netlink/address-message.ts';
import type { LinkMessage, NetnsRef } from '../netlink/link-message.ts';
import { isNetlinkError } from '../netlink/netlink-error.ts';
import type { Rtnetlink } from '../netlink/rtnetlink.ts';
import { nicAlias, parseHostVethAlias, parseNicAlias } from './host-veth-name.ts';
import type { NodeKernel } from './kernel.ts';
import type { ExclusiveNic, PodNetwork } from './network.ts';
import { WireError } from './wire-error.ts';

/** The interface of an ENI, with the attachment that it belongs to. */
export type OwnedNic = { readonly key: PodNetwork['key']; readonly nic: ExclusiveNic };

/** A link, with the fields that identify an ENI's interface. */
type NicLink = {
  readonly ifindex: number;
  readonly address?: string | undefined;
  readonly ifalias?: string | undefined;
  readonly kind?: string | undefined;
};

/**
 * Finds the interface of an ENI by its MAC. Links to Pods are excluded. Preferred is one with our alias, then hardware
 * before links on top of it (a bridge or VLAN inherits the MAC), then the lowest index.
 */
export function findNic<T extends NicLink>(links: readonly T[], mac: string): T | undefined {
  const rank = ({ ifalias = '', kind }: NicLink): number =>
    (parseNicAlias(ifalias) === undefined ? 2 : 0) + (kind === undefined ? 0 : 1);
  return links
    .filter(({ address, ifalias }) => address === mac && parseHostVethAlias(ifalias ?? '') === undefined)
    .toSorted((a, b) => rank(a) - rank(b) || a.ifindex - b.ifindex)[0];
}

/**
 * Moves an ENI's interface from the host's namespace into a Pod's, under the attachment's name. The alias with the
 * owner is set before the move, and the move is one request. @throws WireError IFNAME_TAKEN, NIC_MISSING; NetlinkError
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
  host.link.set({ ifindex, ifalias: nicAlias(key, nic.hostName) });
  host.link.set({ ifindex, netns: podNetns, ifname });
  // The index may differ: the old one may be in use there.
  const moved = inPod.link.get({ ifname });
  if (moved?.address === nic.mac) return moved.ifindex;
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
 * Releases an interface in the host's namespace. The alias is removed last: an interrupted release is recognized by it.
 * @throws NetlinkError
 */
export function releaseNic(
  host: Rtnetlink,
  link: LinkMessage,
  { mac, hostName, mtu }: Omit<ExclusiveNic, 'addresses'>,
): void {
  const { ifindex } = link;
  flush(host, ifindex);
  const target = formerName(link, { mac, hostName });
  if (link.ifname !== target.hostName) host.link.set({ ifindex, ifname: freeName(host, target, ifindex) });
  if (link.mtu !== mtu && mtu > 0) host.link.set({ ifindex, mtu });
  if ((link.ifalias ?? '') !== '') host.link.set({ ifindex, ifalias: '' });
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
  const ifname = freeName(host, formerName(link, nic), undefined);
  // Rename before the move: if the present name is in use in the target namespace, the move would fail.
  if (link.ifname !== ifname) inPod.link.set({ ifindex, ifname: macBasedName(nic.mac) });
  inPod.link.set({ ifindex, netns: hostNetns, ifname });
}

/** Prefers the name in the interface's own alias to that of the lease, which may be rebuilt from less. */
function formerName({ ifalias }: NicLink, { mac, hostName }: Pick<ExclusiveNic, 'mac' | 'hostName'>) {
  return { mac, hostName: parseNicAlias(ifalias ?? '')?.hostName ?? hostName };
}

/**
 * Returns the former name of the interface; when another interface has it by now, a name that is derived from the MAC.
 */
function freeName(
  host: Rtnetlink,
  { mac, hostName }: Pick<ExclusiveNic, 'mac' | 'hostName'>,
  ownIfindex: number | undefined,
): string {
  const taken = host.link.get({ ifname: hostName });
  return hostName !== '' && (taken === undefined || taken.ifindex === ownIfindex) ? hostName : macBasedName(mac);
}

/**
 * Names an interface by its MAC as systemd does: fifteen bytes, the longest possible name. @see
 * systemd.net-naming-scheme(7)
 */
function macBasedName(mac: string): string {
  return `enx${mac.replaceAll(':', '')}`;
}
