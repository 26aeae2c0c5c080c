import { acceptDad, acceptRa, disableIpv6, forwarding, rpFilter } from '../sysctl/sysctl-key.ts';
import {
  EMPTY_STATE,
  type HostState,
  type LinkState,
  type PodState,
  type RouteState,
  type SysctlState,
} from './desired.ts';
import { anyPrefix, canonicalAddress, type Family, familyOf, hostPrefix } from './ip-prefix.ts';
import { linkGroupOf } from './link-group.ts';
import type { NodeNetwork, PodNetwork } from './network.ts';
import { POD_GATEWAY_IPV4, POD_GATEWAY_IPV6, TABLE_MAIN, TABLE_POD_ROUTES } from './numbers.ts';

/** Interface index of `lo` in every network namespace. */
const LOOPBACK_IFINDEX = 1;

/** The two sides of a Pod. */
export type PodPlan = { readonly host: HostState; readonly pod: PodState };

/**
 * Plans both sides of a Pod that its node reaches by a route to its link: its gateway is an address that no interface
 * has. A side whose link does not exist yet (no ifindex) has neither links nor routes to it.
 * @param own rules of this Pod, and routes of it that lead to no link
 * @param podIfindex index of the Pod's interface in its own namespace, once it is known
 */
export function planRoutedPod(
  node: NodeNetwork,
  pod: PodNetwork,
  own: Pick<HostState, 'rules' | 'routes'>,
  podIfindex?: number,
): PodPlan {
  const ips = pod.ips.map(canonicalAddress);
  return { host: hostSide(node, pod, ips, own), pod: podSide(pod, ips, podIfindex) };
}

function hostSide(
  node: NodeNetwork,
  pod: PodNetwork,
  ips: readonly string[],
  { rules, routes }: Pick<HostState, 'rules' | 'routes'>,
): HostState {
  const { ifindex, name: ifname } = pod.hostVeth;
  return {
    ...EMPTY_STATE,
    sysctls: hostVethSysctls(ifname, ips),
    links: ifindex === undefined ? [] : [hostVethLink(pod, ifindex)],
    routes: [...(ifindex === undefined ? [] : ips.map((ip) => hostRoute(node, ip, ifindex, ifname))), ...routes],
    rules,
  };
}

/** Plans the host's end of a Pod's link. The Pod has a permanent neighbour with its MAC. */
export function hostVethLink(pod: PodNetwork, ifindex: number): LinkState {
  const { name: ifname, mac } = pod.hostVeth;
  // In both rule modes the group is that of the Pod's ENI: by it the nftables table finds the ENI.
  const group = linkGroupOf(pod);
  const link = {
    ifindex,
    ifname,
    mtu: pod.mtu,
    up: true,
    group,
    mac,
    ifalias: pod.alias,
    arp: true,
    master: 0,
  } as const;
  return hasFamily(pod.ips, 6) ? { ...link, linkLocal: true } : link;
}

/** Plans the route through which the host reaches a Pod's address. */
export function hostRoute(node: NodeNetwork, ip: string, oif: number, oifname: string): RouteState {
  const table = node.ruleMode === 'compact' ? TABLE_POD_ROUTES : TABLE_MAIN;
  return { table, dst: hostPrefix(ip), oif, oifname, ...(familyOf(ip) === 4 ? { scope: 'link' as const } : {}) };
}

/** Plans the settings of a Pod's host end. */
export function hostVethSysctls(ifname: string, ips: readonly string[]): readonly SysctlState[] {
  return [
    // Strict: a Pod cannot use an address that is not routed to its veth. This holds with any value of `all` as long as
    // the veth has no IPv4 address of its own: on such a device the kernel treats loose like strict. Never add one.
    { key: rpFilter(ifname), value: '1' },
    // IPv4 packets that come in by a link are forwarded only if this setting of the link itself is on.
    ...(hasFamily(ips, 4) ? [{ key: forwarding(4, ifname), value: '1' }] : []),
    // A Pod that sends router advertisements must not become the node's default router.
    { key: acceptRa(ifname), value: '0', isOptional: true },
    ...(hasFamily(ips, 6)
      ? [
          { key: disableIpv6(ifname), value: '0' },
          // The link-local address is the source of neighbour solicitations; without this it is unusable for a second.
          { key: acceptDad(ifname), value: '0' },
          { key: forwarding(6, ifname), value: '1' },
        ]
      : []),
  ];
}

function podSide(pod: PodNetwork, ips: readonly string[], ifindex: number | undefined): PodState {
  const ifname = pod.podVeth.name;
  const sysctls = podSysctls(pod, ips);
  if (ifindex === undefined) return { ...EMPTY_STATE, sysctls };
  const families = ([4, 6] as const).filter((family) => hasFamily(ips, family));
  return {
    links: [
      { ifindex: LOOPBACK_IFINDEX, ifname: 'lo', up: true },
      { ifindex, ifname, mtu: pod.mtu, up: true, arp: true },
    ],
    addresses: ips.map((ip) => ({ ifindex, ifname, prefix: hostPrefix(ip) })),
    routes: families.flatMap((family) => podRoutes(family, ifindex, ifname)),
    neighs: families.map((family) => ({ ifindex, ifname, dst: gatewayOf(family), lladdr: pod.hostVeth.mac })),
    rules: [],
    sysctls,
  };
}

function podRoutes(family: Family, oif: number, oifname: string): readonly RouteState[] {
  const common = { table: TABLE_MAIN, oif, oifname };
  const byDefault: RouteState = { ...common, dst: anyPrefix(family), gateway: gatewayOf(family) };
  return family === 4 ? [{ ...common, dst: hostPrefix(POD_GATEWAY_IPV4), scope: 'link' }, byDefault] : [byDefault];
}

function podSysctls(pod: PodNetwork, ips: readonly string[]): readonly SysctlState[] {
  const { name } = pod.podVeth;
  if (pod.disableIpv6 === true) return [{ key: disableIpv6(name), value: '1', isOptional: true }];
  if (!hasFamily(ips, 6)) return [];
  return [
    { key: disableIpv6(name), value: '0' },
    { key: acceptRa(name), value: '0' },
    { key: acceptDad(name), value: '0' },
  ];
}

function gatewayOf(family: Family): string {
  return family === 4 ? POD_GATEWAY_IPV4 : POD_GATEWAY_IPV6;
}

function hasFamily(ips: readonly string[], family: Family): boolean {
  return ips.some((ip) => familyOf(ip) === family);
}
