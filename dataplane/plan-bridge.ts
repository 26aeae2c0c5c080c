import { acceptRa, bridgeCallIptables, forwarding, proxyArp, rpFilter } from '../sysctl/sysctl-key.ts';
import { EMPTY_STATE, type HostState, type LinkState, type RouteState, type SysctlState } from './desired.ts';
import { familyOf, networkPrefix } from './ip-prefix.ts';
import { DEFAULT_LINK_GROUP } from './link-group.ts';
import type { BridgeNetwork, NodeNetwork, PodCidr, PodNetwork } from './network.ts';
import { BLOCK_METRIC, BRIDGE_ALIAS, BRIDGE_IFINDEX, BRIDGE_MAC, TABLE_MAIN } from './numbers.ts';
import { blockOf, gatewayPrefix } from './pod-cidr.ts';
import { unreachableRoute } from './unreachable-route.ts';

/**
 * Plans what the GlobalRoute Pods of a node have in common, besides rule 1024: the bridge, and a route for each block.
 * A bridge that is there stays, also when no Pod needs it: only an uninstall deletes it.
 * @param pods of any kind; only those on the bridge count
 */
export function planBridge({ bridge, ...node }: NodeNetwork, pods: readonly PodNetwork[]): HostState {
  if (bridge === undefined) return EMPTY_STATE;
  // The VPC routes no IPv6 block: GlobalRoute Pods have none.
  const podCidrs = node.podCidrs.filter(({ cidr }) => familyOf(cidr) === 4);
  const gateways = bridgeAddresses(bridge, podCidrs, pods);
  // The VPC leads all addresses of a block here. One that no Pod has must not leave by the default route again: the packet
  // would come back until its TTL ends. The routes of the bridge and of Pods come before this one.
  const unreachable = { ...EMPTY_STATE, routes: podCidrs.map(({ cidr }) => unreachableRoute(TABLE_MAIN, cidr)) };
  if (gateways.length === 0 && !bridge.isPresent) return unreachable;
  const { ifindex, name: ifname } = bridge;
  return {
    ...unreachable,
    links: [bridgeLink(bridge)],
    addresses: gateways.map((prefix) => ({ ifindex, ifname, prefix })),
    routes: [...gateways.map((prefix) => blockRoute(bridge, prefix)), ...unreachable.routes],
    sysctls: bridgeSysctls(ifname),
  };
}

/** The bridge has an address in the block of new Pods, and in each block that Pods on it live in. */
function bridgeAddresses(
  { wiring }: BridgeNetwork,
  podCidrs: readonly PodCidr[],
  pods: readonly PodNetwork[],
): readonly string[] {
  const ofNew = wiring === 'bridge' ? podCidrs.filter(({ isCurrent }) => isCurrent).map(blockOf) : [];
  const ofPods = pods.flatMap((pod) => (pod.kind === 'bridge' && pod.wiring === 'bridge' ? [pod.block] : []));
  return [...new Set([...ofNew, ...ofPods].map(gatewayPrefix))];
}

/**
 * The bridge is in the group of no ENI: packets of its ports come in by it, and would be marked. One that another program
 * made keeps its MAC, to which its Pods send.
 */
function bridgeLink({ ifindex, name: ifname, mtu }: BridgeNetwork): LinkState {
  const ours = ifindex === BRIDGE_IFINDEX ? { mac: BRIDGE_MAC, ifalias: BRIDGE_ALIAS } : {};
  return {
    ...{ ifindex, ifname, kind: 'bridge', mtu, up: true, group: DEFAULT_LINK_GROUP, ...ours, arp: true, master: 0 },
    // A bridge in this mode delivers what one Pod sends to another by a Service twice.
    promisc: false,
  };
}

function bridgeSysctls(ifname: string): readonly SysctlState[] {
  return [
    // Without it, an answer to a Pod that asked by the address of a Service passes the bridge only, and its source is
    // not translated back. The module br_netfilter has this key.
    { key: bridgeCallIptables(), value: '1', isOptional: true },
    // Strict: a Pod can use addresses of the bridge's blocks only.
    { key: rpFilter(ifname), value: '1' },
    { key: forwarding(4, ifname), value: '1' },
    // A Pod on the bridge asks it for the whole block. For routed Pods, which are not on it, the node answers.
    { key: proxyArp(ifname), value: '1' },
    // A Pod that sends router advertisements must not become the node's default router.
    { key: acceptRa(ifname), value: '0', isOptional: true },
  ];
}

/** The address makes such a route too. This one is for when another program deletes that one: no repair would bring it back. */
function blockRoute({ ifindex, name }: BridgeNetwork, prefix: string): RouteState {
  const [prefsrc = ''] = prefix.split('/');
  return {
    ...{ table: TABLE_MAIN, dst: networkPrefix(prefix), oif: ifindex, oifname: name, scope: 'link', prefsrc },
    metric: BLOCK_METRIC,
  };
}
