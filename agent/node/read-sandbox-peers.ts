import { bridgePodMac } from '../../dataplane/bridge-pod-mac.ts';
import { permanentMac } from '../../dataplane/find-nic.ts';
import { parseNicAlias, sideName } from '../../dataplane/host-veth-name.ts';
import { DEFAULT_LINK_GROUP } from '../../dataplane/link-group.ts';
import { DIRECT_LINK_GROUP } from '../../dataplane/numbers.ts';
import { ownAddress } from '../../netlink/address-message.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import { RT_SCOPE_UNIVERSE } from '../../netlink/uapi/rtnetlink.ts';
import { type LeaseKey, leaseKey } from '../journal/lease.ts';
import type { PeerEvidence, VethEvidence } from './kernel-evidence.ts';
import type { Namespaces } from './namespaces.ts';

/**
 * Reads the Pod ends of host veths inside network namespaces: in the one that the runtime named for a container, and
 * for the others in all of `/run/netns`. Changes nothing.
 * @param named Namespace paths by container id.
 */
export function readSandboxPeers(
  namespaces: Namespaces,
  veths: readonly VethEvidence[],
  named: ReadonlyMap<string, string>,
): ReadonlyMap<LeaseKey, PeerEvidence> {
  const found = new Map<LeaseKey, PeerEvidence>();
  const addPeers = (path: string, candidates: readonly VethEvidence[], isNamed: boolean): void => {
    for (const [key, peer] of peersIn(namespaces, path, candidates, isNamed)) found.set(key, peer);
  };
  for (const veth of veths) {
    const path = named.get(veth.containerId);
    if (path !== undefined) addPeers(path, [veth], true);
  }
  for (const path of namespaces.named()) {
    const missing = veths.filter((veth) => !found.has(leaseKey(veth)));
    if (missing.length === 0) break;
    addPeers(path, missing, false);
  }
  return found;
}

function peersIn(
  namespaces: Namespaces,
  path: string,
  veths: readonly VethEvidence[],
  isNamed: boolean,
): readonly (readonly [LeaseKey, PeerEvidence])[] {
  try {
    using netns = namespaces.open(path);
    using inside = namespaces.enter(netns);
    const { rtnetlink } = inside;
    const all = rtnetlink.link.list();
    const links = all.filter(({ kind }) => kind === 'veth');
    return veths.flatMap((veth) => {
      if (veth.table === DIRECT_LINK_GROUP) return exclusivePeerIn(rtnetlink, { path, isNamed }, all, veth);
      const link = links.find(({ ifname, link: peer }) => ifname === veth.ifName && peer === veth.ifindex);
      const key = leaseKey(veth);
      if (link === undefined) return [];
      const ips = globalIpsOf(rtnetlink, link.ifindex);
      const isOfBridge = veth.table === DEFAULT_LINK_GROUP && ips.some((ip) => link.address === bridgePodMac(ip));
      if (!isNamed && !isOfBridge && !hasGatewayNeigh(rtnetlink, link.ifindex, veth.mac)) return [];
      return [[key, { netns: path, podMac: link.address ?? '', ips }] as const];
    });
  } catch {
    // A namespace may be deleted meanwhile; what cannot be read is no evidence.
    return [];
  }
}

/**
 * Finds the interface of a whole ENI, whose alias names the attachment. A Pod can write the alias of another one: so without
 * the runtime's word for the namespace its end of the veth pair must know the host's.
 */
function exclusivePeerIn(
  rtnetlink: Rtnetlink,
  { path, isNamed }: { readonly path: string; readonly isNamed: boolean },
  links: readonly LinkMessage[],
  { containerId, ifName, mac }: VethEvidence,
): readonly (readonly [LeaseKey, PeerEvidence])[] {
  const side = links.find(({ ifname }) => ifname === sideName(ifName));
  if (!isNamed && (side === undefined || !hasGatewayNeigh(rtnetlink, side.ifindex, mac))) return [];
  return links.flatMap((link) => {
    const owner = parseNicAlias(link.ifalias ?? '');
    if (owner?.containerId !== containerId || owner.ifName !== ifName) return [];
    const nic = { sideMac: side?.address ?? '' };
    const ips = globalIpsOf(rtnetlink, link.ifindex);
    return [[leaseKey({ containerId, ifName }), { netns: path, podMac: permanentMac(link) ?? '', ips, nic }] as const];
  });
}

/** Lists the addresses of a link that are no link-local ones. @throws NetlinkError */
export function globalIpsOf(rtnetlink: Rtnetlink, ifindex: number): readonly string[] {
  return rtnetlink.address
    .list({ ifindex })
    .filter(({ scope }) => scope === RT_SCOPE_UNIVERSE)
    .map(ownAddress);
}

/**
 * Reports whether a link's peer is the host end with this MAC. Interface indexes count from one in each namespace, so an
 * equal number proves nothing: the peer may be in yet another namespace. But the Pod's permanent neighbour entry of the
 * gateway has the host end's random MAC; a Pod on the bridge has the MAC of its address instead.
 */
function hasGatewayNeigh(rtnetlink: Rtnetlink, ifindex: number, hostMac: string): boolean {
  return rtnetlink.neigh.list({ ifindex }).some(({ lladdr }) => lladdr === hostMac);
}
