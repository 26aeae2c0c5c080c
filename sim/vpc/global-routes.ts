import type { NetnsView } from '../support/netns.ts';
import type { Nic } from './nic.ts';

/** A route of the whole VPC: packets to the network go to the node with this address, from wherever they come. */
export type GlobalRoute = { readonly cidr: string; readonly nodeIp: string };

/** The NIC that an address belongs to; undefined when none. */
type OwnerOf = (ip: string) => Nic | undefined;

/** The routes of the whole VPC, and the router's routes that they are. */
export class GlobalRoutes {
  readonly #router: NetnsView;
  readonly #ownerOf: OwnerOf;
  readonly #nodeIps = new Map<string, readonly string[]>();

  constructor(router: NetnsView, ownerOf: OwnerOf) {
    this.#router = router;
    this.#ownerOf = ownerOf;
  }

  /** Leads a network to the nodes with these addresses and to no others, in one step. None: it is led nowhere. */
  async set(cidr: string, nodeIps: readonly string[]): Promise<void> {
    if (nodeIps.length === 0 && !this.#nodeIps.has(cidr)) return;
    if (nodeIps.length === 0) this.#nodeIps.delete(cidr);
    else this.#nodeIps.set(cidr, nodeIps);
    const ports = new Set((await this.#router.ipJson('link')).map((link) => link['ifname']));
    const ownerOf = (ip: string): Nic | undefined => {
      const nic = this.#ownerOf(ip);
      // The port of a node without power has died; it is led to again when the node comes back.
      return nic !== undefined && ports.has(nic.port) ? nic : undefined;
    };
    await this.#router.ipBatch(globalRouteLines(cidr, nodeIps, ownerOf));
  }

  /** `ip` lines for the routes that lead to a NIC: they died with its port, or waited for it. */
  linesOf(nic: Nic): readonly string[] {
    const own = [...this.#nodeIps].filter(([, nodeIps]) => nodeIps.some((ip) => this.#ownerOf(ip) === nic));
    return own.flatMap(([cidr, nodeIps]) => globalRouteLines(cidr, nodeIps, this.#ownerOf));
  }
}

/**
 * `ip` lines, run in the router, that lead a network to the nodes with these addresses, in one step: packets that are
 * under way meanwhile take the old route or the new one. Several addresses share the packets. A node that is not there
 * swallows its packets, as in a real VPC; no address at all ends the route.
 */
function globalRouteLines(cidr: string, nodeIps: readonly string[], ownerOf: OwnerOf): readonly string[] {
  if (nodeIps.length === 0) return [`route delete ${cidr} metric ${METRIC}`];
  const hops = nodeIps.flatMap((ip) => {
    const port = ownerOf(ip)?.port;
    return port === undefined ? [] : [`nexthop via ${ip} dev ${port} onlink`];
  });
  // `route replace` finds the route to replace by network and metric, whatever its type.
  return [`route replace ${hops.length === 0 ? 'blackhole ' : ''}${cidr} metric ${METRIC} ${hops.join(' ')}`.trimEnd()];
}

/** Of every such route, so that a blackhole and a route with a hop replace each other. */
const METRIC = 100;
