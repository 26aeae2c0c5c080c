import type { LinkMessage } from '../../netlink/link-message.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import { IFA_F_TENTATIVE } from '../../netlink/uapi/if-addr.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { RT_TABLE_LOCAL, RTN_ANYCAST, RTN_MULTICAST } from '../../netlink/uapi/rtnetlink.ts';
import { acceptRa, arpIgnore, disableIpv6, forwarding, rpFilter } from '../../sysctl/sysctl-key.ts';
import type { ContractNetns } from './machine.ts';

/** Settings that random requests change. */
export const SETTINGS = [
  ...[rpFilter, arpIgnore, acceptRa, disableIpv6],
  ...[(scope: string) => forwarding(4, scope), (scope: string) => forwarding(6, scope)],
] as const;

/** What a program of the product sees of a namespace by its lists, without what is of the moment. */
export function observe(rtnetlink: Rtnetlink): Readonly<Record<string, readonly unknown[]>> {
  return {
    links: rtnetlink.link.list().map(linkOf),
    addresses: rtnetlink.address.list().map(({ cacheinfo, unknown: _, flags, ...address }) => ({
      ...address,
      flags: flags & ~IFA_F_TENTATIVE,
      ...{ valid: cacheinfo?.valid, preferred: cacheinfo?.preferred },
    })),
    routes: [AF_INET, AF_INET6].flatMap((family) => rtnetlink.route.list({ family }).filter(isComparable).map(routeOf)),
    rules: [AF_INET, AF_INET6].flatMap((family) =>
      rtnetlink.rule.list({ family }).map(({ unknown: _, ...rule }) => rule),
    ),
    neighs: rtnetlink.neigh
      .list()
      .filter(({ state }) => (state & 0x80) !== 0)
      .map(({ family, ifindex, dst, lladdr, state }) => ({ family, ifindex, dst, lladdr, state }))
      .sort((a, b) => a.ifindex - b.ifindex || (a.dst < b.dst ? -1 : 1)),
  };
}

/** Settings of links that the product sets, and that follow from one another. */
export function observeSettings({ rtnetlink, sysctl }: Pick<ContractNetns, 'rtnetlink' | 'sysctl'>): unknown {
  const scopes = ['all', 'default', ...rtnetlink.link.list().map(({ ifname }) => ifname)];
  return scopes.map((scope) => SETTINGS.map((key) => `${scope} ${sysctl.find(key(scope))}`));
}

/** A link as the product reads it; undefined when there is none. */
export function linkOf(link: LinkMessage | undefined): unknown {
  if (link === undefined) return undefined;
  const { ifindex, ifname, type, flags, mtu, address, group, kind, ifalias, master, slaveKind, bridgePort } = link;
  const { mode, isolated, unicastFlood, bcastFlood, learning, proxyarp, locked } = bridgePort ?? {};
  const fields = {
    ...{ ifindex, ifname, type, flags, mtu, address, group, kind, ifalias, master, slaveKind, link: link.link },
    isElsewhere: link.linkNetnsid !== undefined,
    ...(bridgePort && { port: { mode, isolated, unicastFlood, bcastFlood, learning, proxyarp, locked } }),
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** A route without its age. */
function routeOf({ cacheinfo: _cacheinfo, unknown: _unknown, ...route }: RouteMessage): unknown {
  return route;
}

/** Routes of groups of IPv6, which the kernel makes when a socket or a router joins one, are not compared. */
function isComparable({ family, table, type }: RouteMessage): boolean {
  return !(family === AF_INET6 && table === RT_TABLE_LOCAL && (type === RTN_ANYCAST || type === RTN_MULTICAST));
}
