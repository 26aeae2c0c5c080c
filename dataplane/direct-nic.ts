import type { LinkMessage, NetnsRef } from '../netlink/link-message.ts';
import { isNetlinkError } from '../netlink/netlink-error.ts';
import { openRtnetlinkIn, type Rtnetlink } from '../netlink/rtnetlink.ts';
import { nicAlias, parseHostVethAlias, parseNicAlias } from './host-veth-name.ts';
import type { DirectNic, PodNetwork } from './network.ts';
import { WireError } from './wire-error.ts';

/** Which interface, of which attachment. */
export type OwnedNic = { readonly key: PodNetwork['key']; readonly nic: DirectNic };

/** A link, as far as telling an ENI's interface from others needs it. */
export type NicLink = {
  readonly ifindex: number;
  readonly address?: string | undefined;
  readonly ifalias?: string | undefined;
  readonly kind?: string | undefined;
};

/**
 * Finds the interface of an ENI by its MAC: not a link of ours to a Pod, one that bears our alias first, hardware before
 * what was built on it (a bridge or VLAN takes over the MAC), then the one that was there first.
 */
export function findNic<T extends NicLink>(links: readonly T[], mac: string): T | undefined {
  const rank = ({ ifalias = '', kind }: NicLink): number =>
    (parseNicAlias(ifalias) === undefined ? 2 : 0) + (kind === undefined ? 0 : 1);
  return links
    .filter(({ address, ifalias }) => address === mac && parseHostVethAlias(ifalias ?? '') === undefined)
    .toSorted((a, b) => rank(a) - rank(b) || a.ifindex - b.ifindex)[0];
}

/**
 * Moves an ENI's interface from the host's namespace into a Pod's, under the attachment's name. It says whose it is before
 * it goes, and goes in one request. @throws WireError IFNAME_TAKEN, NIC_MISSING; NetlinkError
 * @returns its index in the Pod's namespace
 */
export function lendNic(host: Rtnetlink, inPod: Rtnetlink, podNetns: NetnsRef, { key, nic }: OwnedNic): number {
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
  // The index may be another: it was taken there.
  const moved = inPod.link.get({ ifname });
  if (moved?.address === nic.mac) return moved.ifindex;
  throw new WireError('LINK_GONE', `${ifname} vanished from sandbox ${key.containerId} as soon as it was there`);
}

/**
 * Brings an ENI's interface back into the host's namespace and to rest: down, without addresses, under its own name, nobody's.
 * Idempotent; a cut-short one goes on. `missing`: it is in neither namespace; one whose Pod's namespace is dying comes by itself.
 * @param podNetns absent: it is gone. @throws NetlinkError
 */
export function returnNic(
  host: Rtnetlink,
  hostNetns: NetnsRef,
  podNetns: NetnsRef | undefined,
  { nic }: Pick<OwnedNic, 'nic'>,
): 'back' | 'missing' {
  let link = findNic(host.link.list(), nic.mac);
  if (link === undefined && podNetns !== undefined) {
    moveBack(host, hostNetns, podNetns, nic);
    link = findNic(host.link.list(), nic.mac);
  }
  if (link === undefined) return 'missing';
  putToRest(host, link, nic);
  return 'back';
}

/**
 * Puts an interface to rest that lies in the host's namespace. The alias goes last: what is cut short is known by it.
 * @throws NetlinkError
 */
export function putToRest(
  host: Rtnetlink,
  link: LinkMessage,
  { mac, hostName, mtu }: Omit<DirectNic, 'addresses'>,
): void {
  const { ifindex } = link;
  flush(host, ifindex);
  const wanted = named(link, { mac, hostName });
  if (link.ifname !== wanted.hostName) host.link.set({ ifindex, ifname: freeName(host, wanted, ifindex) });
  if (link.mtu !== mtu && mtu > 0) host.link.set({ ifindex, mtu });
  if ((link.ifalias ?? '') !== '') host.link.set({ ifindex, ifalias: '' });
}

function flush(rtnetlink: Rtnetlink, ifindex: number): void {
  rtnetlink.link.set({ ifindex, up: false });
  for (const { local, address, prefixlen } of rtnetlink.address.list({ ifindex })) {
    try {
      rtnetlink.address.delete({ ifindex, address: local ?? address, prefixlen });
    } catch (error) {
      // It went with the link's going down, or with the address before it.
      if (!isNetlinkError(error, 'EADDRNOTAVAIL', 'ENOENT', 'ENODEV')) throw error;
    }
  }
}

function moveBack(host: Rtnetlink, hostNetns: NetnsRef, podNetns: NetnsRef, nic: DirectNic): void {
  using inPod = openRtnetlinkIn(podNetns);
  const link = findNic(inPod.link.list(), nic.mac);
  if (link === undefined) return;
  const { ifindex } = link;
  inPod.link.set({ ifindex, up: false });
  const ifname = freeName(host, named(link, nic), undefined);
  // Renamed where it is first: its name of here may be taken there, and then it would not go.
  if (link.ifname !== ifname) inPod.link.set({ ifindex, ifname: rested(nic.mac) });
  inPod.link.set({ ifindex, netns: hostNetns, ifname });
}

/** What it bears itself goes before what a lease says, which may be rebuilt from less. */
function named({ ifalias }: NicLink, { mac, hostName }: Pick<DirectNic, 'mac' | 'hostName'>) {
  return { mac, hostName: parseNicAlias(ifalias ?? '')?.hostName ?? hostName };
}

/** The name that it had; somebody else may have it by now, then one that is its own. */
function freeName(
  host: Rtnetlink,
  { mac, hostName }: Pick<DirectNic, 'mac' | 'hostName'>,
  own: number | undefined,
): string {
  const taken = host.link.get({ ifname: hostName });
  return hostName !== '' && (taken === undefined || taken.ifindex === own) ? hostName : rested(mac);
}

/** As systemd names by MAC: fifteen bytes, the most that a name may have. @see systemd.net-naming-scheme(7) */
function rested(mac: string): string {
  return `enx${mac.replaceAll(':', '')}`;
}
