import { IFF_UP } from '../../netlink/uapi/if-link.ts';
import { RTN_LOCAL, RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import { lookUp } from '../kernel/look-up.ts';
import type { Link, Netns, Route } from '../kernel/netns.ts';
import type { CloudHost } from '../vpc/api/host.ts';
import { markOf } from './marks.ts';

/** Where a packet ends. */
export type Where =
  | { readonly kind: 'pod'; readonly node: string; readonly netns: string }
  | { readonly kind: 'node'; readonly node: string }
  /** It left the cloud's network by this ENI. */
  | { readonly kind: 'outside'; readonly eniId: string }
  | { readonly kind: 'lost'; readonly at: string; readonly why: string };

/** A node, as a packet finds it. */
export type JudgedNode = {
  readonly name: string;
  readonly instanceId: string;
  /** The host's namespace; undefined while it is off. */
  readonly host: Netns | undefined;
  /** Namespaces of its Pods: an ENI may be in one of them. */
  readonly pods: readonly Netns[];
};

/** Source and destination. */
type Packet = { readonly src: string; readonly dst: string };

type Way = { readonly packet: Packet; readonly hops: number; readonly by: string };

const MOST_HOPS = 8;
const NETNS_OF_HOST = 'host';

/**
 * Says where an IPv4 packet goes: a reading of the namespaces' state, and of the cloud's, that shares nothing with the product.
 * Knows routes, rules, neighbours, our nftables table, reverse-path filters, forwarding, and the VPC's check of source and ENI.
 */
export class Judge {
  readonly #nodes: () => Iterable<JudgedNode>;
  readonly #cloud: CloudHost;

  constructor(nodes: () => Iterable<JudgedNode>, cloud: CloudHost) {
    this.#nodes = nodes;
    this.#cloud = cloud;
  }

  /** Follows a packet that a Pod sends from a namespace of a node. */
  fromPod(node: JudgedNode, netns: Netns, packet: Packet): Where {
    const route = routeOf(netns, packet, {});
    const link = linkOf(netns, route);
    if (link === undefined) return lost(netns.name, 'the Pod has no route');
    if (!isUp(link)) return lost(netns.name, 'the link of the Pod is down');
    const { peer } = link;
    if (peer === undefined) return this.#leave(node, link, { packet, hops: MOST_HOPS, by: '' });
    const { gateway } = route ?? {};
    const isKnown = (): boolean => link.neighs.some(({ dst, lladdr }) => dst === gateway && lladdr === peer.address);
    if (gateway !== undefined && !isKnown()) return lost(netns.name, `the gateway ${gateway} has no neighbour entry`);
    if (peer.netns.name !== NETNS_OF_HOST) return lost(netns.name, 'the link leads to another namespace');
    return this.#arrive(node, peer, { packet, hops: MOST_HOPS, by: '' });
  }

  /** Follows a packet that the cloud's network brings to its destination. */
  fromVpc(packet: Packet): Where {
    return this.#throughVpc({ packet, hops: MOST_HOPS, by: '' });
  }

  #arrive(node: JudgedNode, link: Link, way: Way): Where {
    const { packet, hops } = way;
    const { netns } = link;
    if (hops === 0) return lost(node.name, 'it goes in a circle');
    if (!isUp(link)) return lost(node.name, `${link.ifname} is down`);
    const mark = markOf(netns, link);
    const filtered = whyFiltered(netns, link, packet, mark);
    if (filtered !== undefined) return lost(node.name, filtered);
    const route = routeOf(netns, packet, { mark, iif: link.ifindex });
    if (route?.type === RTN_LOCAL) return { kind: 'node', node: node.name };
    const out = linkOf(netns, route);
    if (out === undefined) return lost(node.name, `no route to ${packet.dst} with mark ${mark.toString(16)}`);
    if (link.conf[4].get('forwarding') !== '1') return lost(node.name, `${link.ifname} does not forward`);
    return this.#leave(node, out, way);
  }

  #leave(node: JudgedNode, link: Link, { packet, hops }: Way): Where {
    if (!isUp(link)) return lost(node.name, `${link.ifname} is down`);
    const { peer } = link;
    if (peer !== undefined) return this.#enter(node, peer, packet);
    const eni = [...this.#cloud.model.state.enisOf(node.instanceId)].find(({ mac }) => mac === link.address);
    if (eni === undefined) return lost(node.name, `${link.ifname} is no ENI of this node`);
    if (eni.ips.get(packet.src)?.state !== 'AVAILABLE') return lost(node.name, `${packet.src} is not of ${eni.eniId}`);
    return this.#throughVpc({ packet, hops: hops - 1, by: eni.eniId });
  }

  /** Comes into a Pod by a link of it. */
  #enter(node: JudgedNode, link: Link, { dst }: Packet): Where {
    const { netns } = link;
    if (!isUp(link)) return lost(netns.name, 'the link of the Pod is down');
    const has = [...netns.links.values()].some((one) => one.addresses[4].some(({ address }) => bare(address) === dst));
    return has ? { kind: 'pod', node: node.name, netns: netns.name } : lost(netns.name, `it has no ${dst}`);
  }

  #throughVpc(way: Way): Where {
    for (const node of this.#nodes()) {
      for (const eni of this.#cloud.model.state.enisOf(node.instanceId)) {
        if (eni.ips.get(way.packet.dst)?.state !== 'AVAILABLE') continue;
        const all = node.host === undefined ? [] : [node.host, ...node.pods];
        const link = all.flatMap(({ links }) => [...links.values()]).find(({ address }) => address === eni.mac);
        if (link === undefined) return lost(node.name, `${eni.eniId} is not plugged in`);
        return link.netns === node.host ? this.#arrive(node, link, way) : this.#enter(node, link, way.packet);
      }
    }
    return { kind: 'outside', eniId: way.by };
  }
}

function lost(at: string, why: string): Where {
  return { kind: 'lost', at, why };
}

function isUp({ flags }: Link): boolean {
  return (flags & IFF_UP) !== 0;
}

function bare(prefix: string | undefined): string | undefined {
  return prefix?.split('/')[0];
}

function linkOf(netns: Netns, route: Route | undefined): Link | undefined {
  return route?.type === RTN_UNICAST ? netns.links.get(route.oif ?? 0) : undefined;
}

function routeOf(
  netns: Netns,
  { src, dst }: Packet,
  about: { readonly mark?: number; readonly iif?: number },
): Route | undefined {
  try {
    return lookUp(netns, 4, { src, dst, ...about });
  } catch {
    // A rule refuses.
    return undefined;
  }
}

/** The kernel's check of the way back: `rp_filter`, with the mark where `src_valid_mark` says so. */
function whyFiltered(netns: Netns, link: Link, { src, dst }: Packet, mark: number): string | undefined {
  const setting = (name: string): number =>
    Math.max(Number(netns.all[4].get(name) ?? 0), Number(link.conf[4].get(name) ?? 0));
  const filter = setting('rp_filter');
  if (filter === 0) return undefined;
  const back = routeOf(netns, { src: dst, dst: src }, { mark: setting('src_valid_mark') > 0 ? mark : 0 });
  if (back?.type !== RTN_UNICAST) return `rp_filter: there is no way back to ${src}`;
  return filter === 1 && back.oif !== link.ifindex ? `rp_filter: ${src} does not come by ${link.ifname}` : undefined;
}
