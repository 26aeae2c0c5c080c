import { acceptDad, disableIpv6 } from '../sysctl/sysctl-key.ts';
import { EMPTY_STATE, type HostState, type PodState, type SysctlState } from './desired.ts';
import { anyPrefix, canonicalAddress, familyOf } from './ip-prefix.ts';
import { linkGroupOf } from './link-group.ts';
import type { BridgeNetwork, BridgePodNetwork, NodeNetwork } from './network.ts';
import { TABLE_MAIN } from './numbers.ts';
import { type PodPlan, planRoutedPod } from './plan-routed-pod.ts';

/** Interface index of `lo` in every network namespace. */
const LOOPBACK_IFINDEX = 1;

/**
 * Plans both sides of a GlobalRoute Pod, as it was wired. It has no rule: rule 1024 of its block leads to it, and its own
 * packets take the main table.
 * @param podIfindex index of the Pod's interface in its own namespace, once it is known
 */
export function planBridgePod(node: NodeNetwork, pod: BridgePodNetwork, podIfindex?: number): PodPlan {
  if (pod.wiring === 'routed') return planRoutedPod(node, pod, EMPTY_STATE, podIfindex);
  return {
    host: node.bridge === undefined ? EMPTY_STATE : hostSide(node.bridge, pod),
    pod: planBridgePodSide(pod, podIfindex),
  };
}

/** The port: with hairpin, so that a Pod reaches itself by the address of its own Service. */
function hostSide(bridge: BridgeNetwork, pod: BridgePodNetwork): HostState {
  const { ifindex, name: ifname, mac } = pod.hostVeth;
  if (ifindex === undefined) return EMPTY_STATE;
  const port = { master: bridge.ifindex, hairpin: true } as const;
  return {
    ...EMPTY_STATE,
    links: [{ ifindex, ifname, mtu: pod.mtu, up: true, group: linkGroupOf(pod), mac, ifalias: pod.alias, ...port }],
  };
}

/**
 * Plans the inside of a Pod on the bridge.
 * @param ifindex index of its interface in its own namespace, once it is known
 */
export function planBridgePodSide(pod: BridgePodNetwork, ifindex: number | undefined): PodState {
  const ifname = pod.podVeth.name;
  const sysctls = podSysctls(pod);
  if (ifindex === undefined) return { ...EMPTY_STATE, sysctls };
  const { gateway, prefixLength } = pod.block;
  const ips = pod.ips.map(canonicalAddress);
  return {
    ...EMPTY_STATE,
    sysctls,
    links: [
      { ifindex: LOOPBACK_IFINDEX, ifname: 'lo', up: true },
      { ifindex, ifname, mtu: pod.mtu, up: true, arp: true },
    ],
    addresses: ips.map((ip) => ({ ifindex, ifname, prefix: `${ip}/${prefixLength}` })),
    // The address has made the route of its block.
    routes: [{ table: TABLE_MAIN, dst: anyPrefix(familyOf(gateway)), gateway, oif: ifindex, oifname: ifname }],
  };
}

function podSysctls({ podVeth, disableIpv6: isIpv6Off }: BridgePodNetwork): readonly SysctlState[] {
  if (isIpv6Off === true) return [{ key: disableIpv6(podVeth.name), value: '1', isOptional: true }];
  // By hairpin the Pod would receive its own probe, and take its link-local address for one that is in use.
  return [{ key: acceptDad(podVeth.name), value: '0', isOptional: true }];
}
