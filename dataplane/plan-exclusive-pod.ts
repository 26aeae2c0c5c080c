import { acceptDad, acceptRa, disableIpv6, rpFilter } from '../sysctl/sysctl-key.ts';
import { EMPTY_STATE, type HostState, type NeighState, type PodState, type RouteState } from './desired.ts';
import {
  anyPrefix,
  canonicalAddress,
  canonicalPrefix,
  type Family,
  familyOf,
  hostPrefix,
  isLinkLocal,
} from './ip-prefix.ts';
import type { EniPodNetwork, ExclusiveNic, NodeNetwork } from './network.ts';
import { LINK_LOCAL_IPV4, POD_GATEWAY_IPV4, POD_GATEWAY_IPV6, PRIORITY, TABLE_MAIN } from './numbers.ts';
import { planLinklessRoutes } from './plan-pod-rules.ts';
import { hostRoute, hostVethLink, hostVethSysctls, type PodPlan } from './plan-routed-pod.ts';

/** Interface index of `lo` in every network namespace. */
const LOOPBACK_IFINDEX = 1;

/** Indexes of a Pod's two interfaces in its own namespace. */
export type ExclusiveEnds = { readonly nic: number; readonly side: number };

/**
 * Plans both sides of a Pod with an exclusive ENI. It reaches the VPC through the ENI; the node, the node's Services
 * and link-local addresses through the side link, with the Pod's own address. So kube-proxy's rules apply to the Pod,
 * and replies to probes do not pass the VPC.
 * @param ends absent: the Pod's side is empty.
 */
export function planExclusivePod(node: NodeNetwork, pod: EniPodNetwork, ends?: ExclusiveEnds): PodPlan {
  const ips = pod.ips.map(canonicalAddress);
  return {
    host: hostSide(node, pod, ips),
    pod: ends === undefined || pod.nic === undefined ? EMPTY_STATE : podSide(node, pod, pod.nic, ends),
  };
}

function hostSide(node: NodeNetwork, pod: EniPodNetwork, ips: readonly string[]): HostState {
  const { ifindex, name: ifname } = pod.hostVeth;
  return {
    ...EMPTY_STATE,
    sysctls: hostVethSysctls(ifname, ips),
    links: ifindex === undefined ? [] : [hostVethLink(pod, ifindex)],
    routes: [
      ...(ifindex === undefined
        ? []
        : ips.map((ip) => ({ ...hostRoute(node, ip, ifindex, ifname), ...prefsrcFor(node, ip) }))),
      ...(node.ruleMode === 'per-pod' ? planLinklessRoutes(ips) : []),
    ],
    // The address is on the Pod's other interface, and an IPv6 host answers neighbour requests only for addresses of
    // the same interface.
    neighs: ifindex === undefined ? [] : ips.map((dst) => ({ ifindex, ifname, dst, lladdr: pod.podVeth.mac })),
    // Other Pods of the node look up their ENI's table before main. Packets from the side link are for main only.
    rules:
      node.ruleMode === 'per-pod'
        ? ips.map((ip) => ({
            family: familyOf(ip),
            priority: PRIORITY.toPod,
            dst: hostPrefix(ip),
            table: TABLE_MAIN,
          }))
        : [],
  };
}

/**
 * Returns the source address for the route to a Pod. Over the side link the Pod answers only to the primary interface's
 * addresses; for IPv6 the kernel might select the address of an ENI.
 */
function prefsrcFor(node: NodeNetwork, ip: string): { readonly prefsrc?: string } {
  const [prefsrc] = node.primary.addresses.filter((one) => familyOf(one) === familyOf(ip) && !isLinkLocal(one));
  return prefsrc === undefined ? {} : { prefsrc: canonicalAddress(prefsrc) };
}

function podSide(node: NodeNetwork, pod: EniPodNetwork, nic: ExclusiveNic, ends: ExclusiveEnds): PodState {
  const nicName = pod.key.ifName;
  const side = { ifindex: ends.side, ifname: pod.podVeth.name };
  const addresses = podAddresses(pod, nic);
  const families = [...new Set(addresses.map(({ ip }) => familyOf(ip)))];
  return {
    links: [
      { ifindex: LOOPBACK_IFINDEX, ifname: 'lo', up: true },
      { ifindex: ends.nic, ifname: nicName, mtu: pod.mtu, up: true, arp: true },
      { ...side, mtu: pod.mtu, up: true, arp: true },
    ],
    addresses: addresses.map(({ ip, prefixLength }) => ({
      ifindex: ends.nic,
      ifname: nicName,
      // An IPv6 neighbour in the subnet is only reachable through the gateway, as everywhere in the cloud.
      prefix: familyOf(ip) === 4 ? `${ip}/${prefixLength}` : hostPrefix(ip),
    })),
    routes: addresses.flatMap(({ ip, gateway }) => [
      ...nicRoutes(ends.nic, nicName, gateway),
      ...sideRoutes(node, side, ip),
    ]),
    neighs: families.map((family): NeighState => ({ ...side, dst: sideGateway(family), lladdr: pod.hostVeth.mac })),
    rules: [],
    sysctls: podSysctls(pod, families),
  };
}

function podAddresses(pod: EniPodNetwork, nic: ExclusiveNic) {
  return nic.addresses
    .map(({ ip, gateway, prefixLength }) => ({
      ip: canonicalAddress(ip),
      gateway: canonicalAddress(gateway),
      prefixLength,
    }))
    .filter(({ ip }) => pod.disableIpv6 !== true || familyOf(ip) === 4);
}

function nicRoutes(oif: number, oifname: string, gateway: string): readonly RouteState[] {
  const family = familyOf(gateway);
  const common = { table: TABLE_MAIN, oif, oifname };
  const defaultRoute: RouteState = { ...common, dst: anyPrefix(family), gateway };
  // The IPv4 address has created the subnet's route; a link-local gateway is reachable on each link.
  if (family === 4 || isLinkLocal(gateway)) return [defaultRoute];
  return [{ ...common, dst: hostPrefix(gateway) }, defaultRoute];
}

function sideRoutes(
  node: NodeNetwork,
  { ifindex: oif, ifname: oifname }: { readonly ifindex: number; readonly ifname: string },
  ip: string,
): readonly RouteState[] {
  const family = familyOf(ip);
  const gateway = sideGateway(family);
  const common = { table: TABLE_MAIN, oif, oifname, prefsrc: ip };
  const toGateway: readonly RouteState[] =
    family === 4 ? [{ ...common, dst: hostPrefix(gateway), scope: 'link' as const }] : [];
  return [...toGateway, ...sideDestinations(node, family).map((dst): RouteState => ({ ...common, dst, gateway }))];
}

/** Returns what a Pod with an exclusive ENI reaches through its node, besides the gateway. */
function sideDestinations(node: NodeNetwork, family: Family): readonly string[] {
  const prefixes = [
    ...node.primary.addresses.filter((address) => !isLinkLocal(address)).map(hostPrefix),
    ...[...node.podCidrs.map(({ cidr }) => cidr), ...(node.serviceCidrs ?? [])].map(canonicalPrefix),
    ...(family === 4 ? [LINK_LOCAL_IPV4] : []),
  ];
  return [...new Set(prefixes)].filter((prefix) => familyOf(prefix) === family);
}

// rp_filter is off on the side link: requests of other Pods of the node come in there, and the replies leave by the
// ENI. Loose mode would not help: on an interface without an address the kernel treats it like strict; and the larger
// value of `all` and the interface applies.
function podSysctls({ key, podVeth, disableIpv6: isIpv6Off }: EniPodNetwork, families: readonly Family[]) {
  const names = [key.ifName, podVeth.name];
  const loose = [
    { key: rpFilter('all'), value: '0' },
    { key: rpFilter(key.ifName), value: '2' },
    { key: rpFilter(podVeth.name), value: '0' },
  ];
  if (isIpv6Off === true) {
    const off = names.map((name) => ({ key: disableIpv6(name), value: '1', isOptional: true as const }));
    return [...loose, ...off];
  }
  const ipv6 = names.flatMap((name) => [
    { key: disableIpv6(name), value: '0' },
    { key: acceptRa(name), value: '0' },
    { key: acceptDad(name), value: '0' },
  ]);
  return families.includes(6) ? [...loose, ...ipv6] : loose;
}

function sideGateway(family: Family): string {
  return family === 4 ? POD_GATEWAY_IPV4 : POD_GATEWAY_IPV6;
}
