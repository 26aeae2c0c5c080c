import { AF_INET } from '../../netlink/uapi/netlink.ts';
import { RTN_LOCAL, RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import type { NetnsFacts } from '../node/node-facts.ts';
import { findRoute, type RouteResult } from './find-route.ts';
import type { Flow } from './flow.ts';

/** The packet whose source is checked. */
type CheckedPacket = Pick<Flow, 'dst' | 'mark' | 'tos' | 'ipProto' | 'sport' | 'dport'> & {
  readonly src: string;
  readonly iif: number;
};

/** Result of the kernel's source validation (rp_filter) for a packet. */
export type SourceCheck = {
  /** max(all, interface): 0 off, 1 strict, 2 loose. */
  readonly mode: number;
  readonly isDropped: boolean;
  readonly why: /** The answer would leave by the link that the packet came in by. */
    | 'same-link'
    | 'off'
    /** Loose mode, and some route leads back. */
    | 'loose'
    /** Strict mode, and the answer would leave by another link. */
    | 'other-link'
    /** Not off, and no route leads back; or the link has no IPv4 address of its own, where loose counts as strict. */
    | 'no-route'
    | 'no-address'
    /** The source is an address of this node, or of no possible host. */
    | 'martian';
  /** The route of the answer. */
  readonly reverse: RouteResult;
};

/** What the check needs of a namespace. */
type CheckedNetns = Pick<NetnsFacts, 'rules' | 'routes' | 'links' | 'sysctls' | 'addresses'>;

/**
 * Checks the source of an incoming IPv4 packet as the kernel does. IPv6 has no such check.
 * @param oif link by which the packet would leave; undefined when it is for the node itself
 * @see net/ipv4/fib_frontend.c fib_validate_source
 */
export function evaluateSourceCheck(netns: CheckedNetns, packet: CheckedPacket, oif: number | undefined): SourceCheck {
  const ifname = netns.links.find(({ ifindex }) => ifindex === packet.iif)?.ifname ?? '';
  const mode = effective(netns, ifname, 'rp_filter');
  const usesMark = effective(netns, ifname, 'src_valid_mark') > 0;
  const { tos } = packet;
  const { ipProto, sport, dport } = readsTransport(netns) ? packet : {};
  const back: Flow = {
    family: 4,
    dst: packet.src,
    src: packet.dst,
    mark: usesMark ? packet.mark : 0,
    ...(oif === undefined ? {} : { iif: oif }),
    ...(tos === undefined ? {} : { tos }),
    ...(ipProto === undefined ? {} : { ipProto }),
    ...(dport === undefined ? {} : { sport: dport }),
    ...(sport === undefined ? {} : { dport: sport }),
  };
  const reverse = findRoute(netns, back);
  return { mode, reverse, ...classify(netns, { packet, mode, reverse, acceptsLocal: acceptsLocal(netns, ifname) }) };
}

/**
 * Reports whether source validation reads the protocol and the ports of a packet. The kernel does so only where a rule has
 * them that is not for `iif lo`; other rules with them then never match.
 * @see include/net/fib_rules.h fib_rule_requires_fldissect
 */
function readsTransport({ rules }: CheckedNetns): boolean {
  return rules.some(
    ({ family, iifname, ipProto = 0, sportRange, dportRange }) =>
      family === AF_INET && iifname !== 'lo' && (ipProto !== 0 || sportRange !== undefined || dportRange !== undefined),
  );
}

/** Returns the value of a setting that is in force: the larger one of `all` and the interface. */
export function effective(netns: Pick<NetnsFacts, 'sysctls'>, ifname: string, name: string): number {
  return Math.max(
    ...['all', ifname].map((scope) =>
      Number(netns.sysctls.get(`net.ipv4.conf.${scope.replaceAll('.', '/')}.${name}`) ?? 0),
    ),
  );
}

function acceptsLocal(netns: CheckedNetns, ifname: string): boolean {
  return effective(netns, ifname, 'accept_local') > 0;
}

type SourceCheckInput = {
  readonly packet: CheckedPacket;
  readonly mode: number;
  readonly reverse: RouteResult;
  readonly acceptsLocal: boolean;
};

function classify(
  netns: CheckedNetns,
  { packet, mode, reverse, acceptsLocal }: SourceCheckInput,
): Pick<SourceCheck, 'isDropped' | 'why'> {
  if (mode === 0 && acceptsLocal) return { isDropped: false, why: 'off' };
  if (reverse.kind === 'refused') {
    return mode === 0 ? { isDropped: false, why: 'off' } : { isDropped: true, why: 'no-route' };
  }
  const { type } = reverse.route;
  if (type !== RTN_UNICAST && !(type === RTN_LOCAL && acceptsLocal)) return { isDropped: true, why: 'martian' };
  if (reverse.nexthops.some(({ oif }) => oif === packet.iif)) return { isDropped: false, why: 'same-link' };
  if (mode === 0) return { isDropped: false, why: 'off' };
  const hasAddress = netns.addresses.some(({ family, ifindex }) => family === AF_INET && ifindex === packet.iif);
  if (!hasAddress) return { isDropped: true, why: 'no-address' };
  return mode === 1 ? { isDropped: true, why: 'other-link' } : { isDropped: false, why: 'loose' };
}
