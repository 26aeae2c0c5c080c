import type { NodeNetwork } from '../../dataplane/network.ts';
import { podCidrOf } from '../../dataplane/pod-cidr.ts';
import type { AddressMessage } from '../../netlink/address-message.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import type { Family } from '../journal/lease.ts';

/** The part of the node's own network that the plan needs. */
export type PrimaryInterface = NodeNetwork['primary'];

/** Objects of the host's namespace. */
export type HostView = {
  readonly links: readonly LinkMessage[];
  readonly addresses: readonly AddressMessage[];
  /** Routes of the main table, both families. */
  readonly mainRoutes: readonly RouteMessage[];
};

/**
 * Finds the primary interface: the one named, or the device of the default route with the lowest metric, IPv4 first.
 * ENIs are skipped: a DHCP client may have put a default route there. Undefined when there is none.
 */
export function findPrimary(
  { links, addresses, mainRoutes }: HostView,
  configured: string | undefined,
  eniMacs: ReadonlySet<string>,
): PrimaryInterface | undefined {
  const candidates = links.filter(({ address }) => !eniMacs.has(address ?? ''));
  const link =
    configured === undefined
      ? candidates.find(({ ifindex }) => ifindex === defaultOif(mainRoutes, new Set(candidates.map((c) => c.ifindex))))
      : links.find(({ ifname }) => ifname === configured);
  if (link === undefined) return undefined;
  const linkAddresses = addresses
    .filter(({ ifindex }) => ifindex === link.ifindex)
    .map(({ local, address }) => local ?? address);
  return { ifindex: link.ifindex, ifname: link.ifname, addresses: linkAddresses };
}

const AF_INET = 2;

function defaultOif(routes: readonly RouteMessage[], allowed: ReadonlySet<number>): number | undefined {
  const defaults = routes
    .filter(({ dst }) => dst === undefined || dst.endsWith('/0'))
    .flatMap((route) => {
      const oif = route.oif ?? route.multipath?.[0]?.oif;
      return oif === undefined || !allowed.has(oif) ? [] : [{ oif, family: route.family, metric: route.priority ?? 0 }];
    });
  return defaults.toSorted(
    (a, b) => Number(b.family === AF_INET) - Number(a.family === AF_INET) || a.metric - b.metric,
  )[0]?.oif;
}

/** The part of the node's plan that is configured and not observed. */
export type NodeNetworkSettings = Pick<
  NodeNetwork,
  'eniMarkMask' | 'rpFilterMode' | 'egress' | 'nodePort' | 'fastPath'
> & {
  readonly podCidrs: readonly string[];
  readonly vpcCidrs: readonly string[];
  readonly nftables: boolean;
  readonly serviceCidrs: readonly string[];
};

/** Joins what is configured with what was observed. */
export function nodeNetworkOf(
  settings: NodeNetworkSettings,
  primary: PrimaryInterface,
  families: readonly Family[],
  subnetCidrs: readonly string[],
): NodeNetwork {
  return {
    ...settings,
    podCidrs: settings.podCidrs.map((cidr) => podCidrOf(cidr)),
    ruleMode: 'compact',
    primary,
    families: families.length === 0 ? [4] : families,
    // If the VPC's own ranges are not configured, the subnets of its ENIs are what is surely inside it.
    vpcCidrs: settings.vpcCidrs.length > 0 ? settings.vpcCidrs : [...new Set(subnetCidrs)],
  };
}
