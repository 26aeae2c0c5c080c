import { canonicalPrefix, familyOf, networkPrefix, prefixLength } from '../../dataplane/ip-prefix.ts';
import type { ConnectedNetwork } from '../../dataplane/network.ts';
import { ALWAYS_VIA_ENI } from '../../dataplane/nft-table.ts';
import { RTPROT_TKE_ENI } from '../../dataplane/numbers.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import { IFF_LOOPBACK } from '../../netlink/uapi/if-link.ts';
import { RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import { compareTexts } from '../../runtime/compare-texts.ts';
import { isOverlap } from '../pod-cidr/refuse-pod-cidrs.ts';
import type { HostView } from './node-network.ts';

/** What tells networks of the node alone from those of the VPC and of Pods. */
type KnownNetworks = {
  readonly primaryIfindex: number;
  readonly eniMacs: ReadonlySet<string>;
  /** Networks of the VPC, of GlobalRoute Pods and of Services: what overlaps one is left to the ENIs. */
  readonly taken: readonly string[];
};

/** Shorter prefixes are default routes by another name, as 0.0.0.0/1 and 128.0.0.0/1 of VPN clients. */
const SHORTEST = { 4: 8, 6: 16 } as const;

/**
 * Finds the networks that are connected to the node by a link that is neither the primary interface nor an ENI nor a
 * Pod's, as a bridge of containers or a VPN: unicast routes of main without a gateway. Of two routes to one network that
 * with the lower metric counts.
 */
export function connectedNetworks({ links, mainRoutes }: HostView, known: KnownNetworks): readonly ConnectedNetwork[] {
  const third = new Map(links.filter((link) => isThird(link, known)).map(({ ifindex, ifname }) => [ifindex, ifname]));
  const found = new Map<string, ConnectedNetwork>();
  for (const route of mainRoutes.toSorted((a, b) => (a.priority ?? 0) - (b.priority ?? 0))) {
    const { oif, dst, prefsrc } = route;
    const ifname = third.get(oif ?? 0);
    if (oif === undefined || dst === undefined || ifname === undefined || !isConnected(route)) continue;
    const cidr = canonicalPrefix(dst);
    if (found.has(cidr) || prefixLength(cidr) < SHORTEST[familyOf(cidr)]) continue;
    if (overlapsOne(known.taken, cidr)) continue;
    found.set(cidr, { cidr, ifindex: oif, ifname, ...(prefsrc === undefined ? {} : { prefsrc }) });
  }
  return [...found.values()].sort((a, b) => compareTexts(a.cidr, b.cidr));
}

function isThird(
  { ifindex, address, flags, ifalias = '' }: LinkMessage,
  { primaryIfindex, eniMacs }: KnownNetworks,
): boolean {
  const isOurs = ifalias.startsWith('tke-eni') || eniMacs.has(address ?? '');
  return ifindex !== primaryIfindex && !isOurs && (flags & IFF_LOOPBACK) === 0;
}

/**
 * Reports whether a route leads to its network without a next hop, whoever added it. Link-local networks are none: each link has
 * the same one.
 */
export function isConnected({ dst, type, protocol, gateway, via, multipath, nhId, tos = 0 }: RouteMessage): boolean {
  const hasHop = gateway !== undefined || via !== undefined || multipath !== undefined || nhId !== undefined;
  if (dst === undefined || type !== RTN_UNICAST || protocol === RTPROT_TKE_ENI || hasHop || tos !== 0) return false;
  return !overlapsOne(ALWAYS_VIA_ENI[familyOf(dst)], dst);
}

function overlapsOne(networks: readonly string[], cidr: string): boolean {
  return networks.some((one) => familyOf(one) === familyOf(cidr) && isOverlap(one, cidr));
}

/**
 * Returns what to take for the VPC's networks: those configured, else the /16 (IPv6: /48) around each subnet that is
 * known to be in it, because a subnet of the same VPC that another NIC is in may not be known.
 */
export function assumedVpc(configured: readonly string[], subnets: readonly string[]): readonly string[] {
  if (configured.length > 0) return [...configured, ...subnets];
  const widest = { 4: 16, 6: 48 } as const;
  return subnets.map((subnet) => {
    const [address = ''] = subnet.split('/');
    return networkPrefix(`${address}/${Math.min(prefixLength(subnet), widest[familyOf(subnet)])}`);
  });
}
