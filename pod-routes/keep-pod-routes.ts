import type { CallContext, RoutePort, SubnetPort } from '../cloud/cloud.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import type { RouteMetrics } from '../observability/program-metrics.ts';
import { backoffMs } from '../runtime/backoff.ts';
import { ChangeSignal } from '../runtime/change-signal.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import { mergeNetworks, type NodeNetworks, withEniNodes } from './decide-node-networks.ts';
import type { RouteOwnership } from './decide-routes.ts';
import { PlaceRoutes, type RouteState } from './place-routes.ts';
import { RouteCache } from './route-cache.ts';
import { type RouteEvents, RouteReports } from './route-reports.ts';
import type { RoutedNode, RoutedNodes } from './routed-node.ts';
import { RoutesElsewhere, type VpcFault } from './routes-elsewhere.ts';

/** Dependencies of the keeper of routes. */
export type RouteKeeperDeps = {
  readonly routes: RoutePort;
  readonly subnets: Pick<SubnetPort, 'usersOf'>;
  readonly kube: Pick<KubeClient, 'get' | 'patch'>;
  readonly nodes: RoutedNodes;
  /** Returns the VPC of the cluster; undefined while it is not known. */
  readonly vpcId: () => string | undefined;
  /** What shows that this is another VPC than that of the Nodes; absent: nothing can. */
  readonly vpcFault?: () => VpcFault | undefined;
  /** Where the VPC is set, for people. */
  readonly vpcCure: string;
  /** The setting that names what routes are kept in: `--route-tables`. */
  readonly placeSetting: string;
  /** Route tables, by id or name, that each get all routes; absent: the VPC itself has them. */
  readonly tables?: readonly string[];
  /** What is known of the routes of a place. Default: a new cache. */
  readonly cacheOf?: (place: string) => RouteCache;
  readonly ownership: RouteOwnership;
  /** Most routes of each place; undefined: what the cloud says, if it does. */
  readonly quota?: number;
  /** --cluster-cidr */
  readonly clusterCidrs: readonly string[];
  readonly clusterId: string;
  /** --node-release-percent */
  readonly percent: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly events: RouteEvents;
  readonly metrics: RouteMetrics;
  /** Called after each comparison. */
  readonly onCompared?: () => void;
};

/** The routes are compared with the Nodes this often when nothing happens. */
const SYNC_MS = 60_000;
/** Nodes that change within this time are served together. */
const BATCH_MS = 1_000;
const RETRY = { firstMs: 5_000, maxMs: 60_000, factor: 2, jitter: 0.3 } as const;
/** Most calls, and most writes of conditions, at once; the API takes as many a second. */
const MAX_AT_ONCE = 20;

/**
 * Keeps one route for the podCIDR of each Node, to the Node's InternalIP, until aborted: creates what is missing, moves
 * what leads elsewhere, removes what no Node needs, within the networks of the cluster. Writes the condition
 * NetworkUnavailable of each Node. Rejects only with a fault of this program.
 */
export async function keepPodRoutes(deps: RouteKeeperDeps, signal: AbortSignal): Promise<void> {
  const keeper = new RouteKeeper(deps);
  await keeper.run(signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

class RouteKeeper {
  readonly #deps: RouteKeeperDeps;
  readonly #reports: RouteReports;
  readonly #changed: ChangeSignal;
  readonly #elsewhere: RoutesElsewhere;
  readonly #places = new Map<string, PlaceRoutes>();
  /** The Nodes as routes depend on them, as text: most changes of a Node are none of these. */
  readonly #digests = new Map<string, string>();
  #isDirty = true;
  /** Failures in a row. */
  #failures = 0;

  constructor(deps: RouteKeeperDeps) {
    this.#deps = deps;
    this.#reports = new RouteReports(deps);
    this.#elsewhere = new RoutesElsewhere(deps);
    this.#changed = new ChangeSignal(deps.clock);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { nodes, clock, random } = this.#deps;
    const end = nodes.subscribe(({ key, after }) => this.#noteNode(key, after));
    try {
      while (!signal.aborted) {
        this.#isDirty = false;
        const isDone = await this.#pass(signal);
        this.#failures = isDone ? 0 : this.#failures + 1;
        const waitMs = isDone ? SYNC_MS : backoffMs(RETRY, this.#failures, random());
        if (!this.#isDirty || !isDone) await this.#changed.wait(waitMs, signal);
        await clock.sleep(BATCH_MS, signal);
      }
    } finally {
      end();
    }
  }

  #noteNode(name: string, node: RoutedNode | undefined): void {
    const digest = node === undefined ? undefined : digestOf(node);
    if (this.#digests.get(name) === digest) return;
    if (digest === undefined) this.#digests.delete(name);
    else this.#digests.set(name, digest);
    this.#isDirty = true;
    this.#changed.notify();
  }

  /** One comparison with all that follows from it. False: something failed, and is to be tried again. */
  async #pass(signal: AbortSignal): Promise<boolean> {
    const { nodes, metrics, tables } = this.#deps;
    const vpcId = this.#deps.vpcId();
    const vpcFault = this.#deps.vpcFault?.();
    this.#reports.reportVpc(vpcId);
    if (vpcId === undefined || !nodes.isSynced) return false;
    const context: CallContext = { priority: 'warm', owner: 'routes', signal };
    const entries = [...nodes.values()];
    let networks: NodeNetworks | undefined;
    let isDone = true;
    let isRead = true;
    const counts: Record<RouteState, number> = { right: 0, missing: 0, wrong: 0, unneeded: 0, held: 0, faulty: 0 };
    for (const place of tables ?? [vpcId]) {
      const one = await this.#placeOf(place).pass(entries, { vpcId, vpcFault }, MAX_AT_ONCE, context);
      if (one === undefined) {
        isRead = false;
        continue;
      }
      networks = networks === undefined ? one.networks : mergeNetworks(networks, one.networks);
      isDone &&= one.isDone;
      for (const [state, count] of Object.entries(one.counts)) counts[state as RouteState] += count;
    }
    // Where one table cannot be read, nothing is said of any Node; the others are kept.
    if (!isRead || networks === undefined) return false;
    metrics.clusterRoutes.replace(Object.entries(counts).map(([state, count]) => [{ state }, count]));
    this.#deps.onCompared?.();
    const said = withEniNodes(networks, entries);
    return (await this.#reports.writeNodes(entries, said, MAX_AT_ONCE, signal)) && isDone;
  }

  #placeOf(place: string): PlaceRoutes {
    const { clock, cacheOf = () => new RouteCache(clock), quota } = this.#deps;
    const shared = { reports: this.#reports, elsewhere: this.#elsewhere };
    const known =
      this.#places.get(place) ?? new PlaceRoutes({ ...this.#deps, quota, place, cache: cacheOf(place), ...shared });
    this.#places.set(place, known);
    return known;
  }
}

function digestOf({ createdAt, podCidrs, internalIp, networkCondition, hasEniPods }: RoutedNode): string {
  return JSON.stringify([createdAt, podCidrs, internalIp, networkCondition?.status, hasEniPods]);
}
