import { locateBridge } from '../../dataplane/locate-bridge.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';

/** The host's end of a Pod's link that is a port of the bridge. */
export type PortEvidence = {
  readonly ifindex: number;
  readonly name: string;
  readonly mac: string;
  readonly mtu: number;
};

/** One veth interface with an IPv4 address in a network namespace that is not the host's. */
export type PodInterface = {
  /** Path of its namespace, as the runtime or `/run/netns` names it. */
  readonly netns: string;
  readonly ifName: string;
  readonly ifindex: number;
  readonly mac: string;
  /** Interface index of its peer, in the peer's namespace. */
  readonly peerIfindex: number;
  readonly addresses: readonly { readonly ip: string; readonly prefixLength: number }[];
  /** Next hop of its default route. */
  readonly gateway?: string;
};

/** What the network namespaces of a node hold. */
export type NetnsEvidence = {
  readonly interfaces: readonly PodInterface[];
  /** False when some namespace could not be read: an address that was not found may be in it. */
  readonly isComplete: boolean;
};

/** Reads the veth links that are ports of the bridge of GlobalRoute Pods; none while there is no bridge. */
export function readBridgePorts(rtnetlink: Rtnetlink, name: string): readonly PortEvidence[] {
  const links = rtnetlink.link.list();
  const bridge = locateBridge(links, name);
  if (!bridge.isPresent) return [];
  return links
    .filter(({ master, kind }) => master === bridge.ifindex && kind === 'veth')
    .map(({ ifindex, ifname, address = '', mtu }) => ({ ifindex, name: ifname, mac: address, mtu }));
}
