import { locateBridge } from '../../dataplane/locate-bridge.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import type { PortEvidence } from './bridge-evidence.ts';

/** Reads the veth links that are ports of the bridge of GlobalRoute Pods; none while there is no bridge. */
export function readBridgePorts(rtnetlink: Rtnetlink, name: string): readonly PortEvidence[] {
  const links = rtnetlink.link.list();
  const bridge = locateBridge(links, name);
  if (!bridge.isPresent) return [];
  return links
    .filter(({ master, kind }) => master === bridge.ifindex && kind === 'veth')
    .map(({ ifindex, ifname, address = '', mtu }) => ({ ifindex, name: ifname, mac: address, mtu }));
}
