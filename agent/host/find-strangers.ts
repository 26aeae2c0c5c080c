import { hostPrefix } from '../../dataplane/ip-prefix.ts';
import { RTPROT_TKE_ENI, TABLE_MAIN } from '../../dataplane/numbers.ts';
import { isNetlinkError } from '../../netlink/netlink-error.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { RTN_LOCAL, RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import type { Strangers } from '../state/ports.ts';

/** Dependencies of looking for addresses that another program wired. */
type StrangerDeps = {
  readonly rtnetlink: Pick<Rtnetlink, 'route' | 'rule'>;
  /** The primary interface and the ENIs: a route by one of them leads out of the node, and to no link on it. */
  readonly uplinks: () => ReadonlySet<number>;
};

/**
 * Binds the look to the kernel. Changes nothing. A look-up does not go past the routes by which we refuse packets to
 * addresses without a Pod: then the table is read in which other programs have the routes to their Pods.
 */
export function openStrangers({ rtnetlink, uplinks }: StrangerDeps): Strangers {
  const routes = (filter: { readonly table?: number }): readonly RouteMessage[] =>
    [AF_INET, AF_INET6].flatMap((family) => rtnetlink.route.list({ family, ...filter }));
  return {
    isWired: (ip) => {
      const out = uplinks();
      try {
        return isToLink(rtnetlink.route.get({ dst: ip, fibmatch: true }), out, ip);
      } catch (error) {
        if (!isNetlinkError(error)) throw error;
        return routes({ table: TABLE_MAIN }).some((route) => isToLink(route, out, ip));
      }
    },
    find: (ips) => {
      const out = uplinks();
      const wired = routes({}).filter((route) => isToLink(route, out));
      const taken = new Set([...wired.map(({ dst }) => dst), ...ruledByOthers(rtnetlink)]);
      return new Set([...ips].filter((ip) => taken.has(hostPrefix(ip))));
    },
  };
}

/** A route of a network leads on, by whatever link: it says nothing about one address. */
function isToLink({ type, dst, oif, multipath }: RouteMessage, out: ReadonlySet<number>, ip?: string): boolean {
  if (ip !== undefined && dst !== hostPrefix(ip)) return false;
  if (type === RTN_LOCAL) return true;
  const links = [oif, ...(multipath ?? []).map((hop) => hop.oif)].filter((ifindex) => ifindex !== undefined);
  return type === RTN_UNICAST && links.some((ifindex) => !out.has(ifindex));
}

function ruledByOthers({ rule }: StrangerDeps['rtnetlink']): ReadonlySet<string> {
  const rules = [AF_INET, AF_INET6].flatMap((family) => rule.list({ family }));
  const foreign = rules.filter(({ protocol }) => protocol !== RTPROT_TKE_ENI);
  return new Set(foreign.flatMap(({ src, dst }) => [src, dst].filter((prefix) => prefix !== undefined)));
}
