import type { CallContext, RoutePort } from '../cloud/cloud.ts';
import { isCloudError } from '../cloud/cloud-error.ts';
import { isKubeError } from '../kube/kube-error.ts';
import type { RouteState } from '../observability/route-metrics.ts';
import type { Logger } from '../runtime/log.ts';
import { applyRoutes } from './apply-routes.ts';
import { type RemovalCheckDeps, RouteRemovalCheck } from './check-route-removals.ts';
import { decideNodeNetworks, type NodeNetworks } from './decide-node-networks.ts';
import { limitByQuota } from './decide-quota.ts';
import { decideRoutes, type RouteOwnership, type RoutePlan, routesWithin } from './decide-routes.ts';
import { PlaceQuota } from './place-quota.ts';
import type { RouteCache } from './route-cache.ts';
import type { RouteReports } from './route-reports.ts';
import { RouteRetries } from './route-retries.ts';
import type { RoutedNode } from './routed-node.ts';

/** Dependencies of the routes of one place. */
type PlaceDeps = RemovalCheckDeps & {
  readonly routes: RoutePort;
  /** What routes are kept in: id of a VPC or of a route table, name of a cluster's route table. */
  readonly place: string;
  /** The setting that names it. */
  readonly placeSetting: string;
  readonly cache: RouteCache;
  readonly clusterCidrs: readonly string[];
  readonly clusterId: string;
  readonly ownership: RouteOwnership;
  /** Most routes that the place takes; undefined: the cloud is asked where it can say, else it refuses what is too many. */
  readonly quota: number | undefined;
  readonly log: Logger;
  readonly random: () => number;
  readonly observe: {
    onChange(kind: 'create' | 'move' | 'remove', code: string | undefined): void;
    onListFailed(): void;
  };
  readonly reports: Pick<RouteReports, 'reportList' | 'reportHeld' | 'lastMessageOf'>;
};

/** What a comparison of one place showed and did. */
type PlacePass = {
  readonly networks: NodeNetworks;
  readonly counts: Readonly<Record<RouteState, number>>;
  /** False: something failed, and is to be tried again. */
  readonly isDone: boolean;
};

/** A list of this age is good enough for a Node that changed. */
const MAX_LIST_AGE_MS = 15_000;

/** The routes of one place: what is known of them, what failed, and when it is tried again. */
export class PlaceRoutes {
  readonly #deps: PlaceDeps;
  readonly #removals: RouteRemovalCheck;
  readonly #retries: RouteRetries;
  readonly #quota: PlaceQuota;
  /** Node by network, also of Nodes that went. */
  readonly #lastNodes = new Map<string, string>();
  /** Networks that were seen to lead to their nodes; undefined: the first list had routes of the cluster. */
  #served: Set<string> | undefined;
  #isRead = false;

  constructor(deps: PlaceDeps) {
    this.#deps = deps;
    this.#removals = new RouteRemovalCheck(deps);
    this.#retries = new RouteRetries(deps);
    this.#quota = new PlaceQuota({ ...deps, given: deps.quota });
  }

  /**
   * Compares the routes with the Nodes, and makes at most `limit` calls at once. Undefined: the routes cannot be read.
   * @throws the reason of the signal
   */
  async pass(
    entries: readonly RoutedNode[],
    vpcId: string,
    limit: number,
    context: CallContext,
  ): Promise<PlacePass | undefined> {
    const { clusterCidrs, clusterId, ownership, cache, observe, reports, place } = this.#deps;
    try {
      if (cache.isDue(MAX_LIST_AGE_MS)) await cache.refresh(this.#deps.routes, place, context);
    } catch (error) {
      if (!isCloudError(error)) throw error;
      observe.onListFailed();
      reports.reportList(place, error);
      return undefined;
    }
    reports.reportList(place, undefined);
    const routes = cache.routes();
    const decided = decideRoutes({ clusterCidrs, clusterId, ownership, nodes: entries, routes });
    const count = routes.filter(({ isSystem }) => isSystem !== true).length;
    const plan = limitByQuota(decided, count, await this.#quota.read(count, decided.create.length, context));
    this.#noteServed(decided);
    for (const { cidr, node } of [...plan.right, ...plan.create, ...plan.move]) this.#lastNodes.set(cidr, node);
    this.#forgetNodes(new Set([...routes, ...decided.create].map(({ cidr }) => cidr)));
    return await this.#carryOut(plan, entries, vpcId, limit, context);
  }

  async #carryOut(
    plan: RoutePlan,
    entries: readonly RoutedNode[],
    vpcId: string,
    limit: number,
    context: CallContext,
  ): Promise<PlacePass> {
    const { routes, cache, clusterId, observe, reports, place } = this.#deps;
    const verdict = await this.#checkRemovals(plan, entries, vpcId, context);
    reports.reportHeld(place, verdict.held);
    const due = this.#retries.select(plan);
    const applied = await applyRoutes(
      {
        routes,
        cache,
        place,
        clusterId,
        context,
        limit,
        isProbing: this.#retries.isProbing,
        onChange: observe.onChange,
      },
      due,
      verdict.allowed,
    );
    this.#retries.note(due, applied.failed, applied.refusal);
    if (applied.removed > 0) this.#retries.allowProbe();
    const counts = {
      right: plan.right.length,
      missing: plan.create.length,
      wrong: plan.move.length,
      unneeded: plan.remove.length - verdict.held.length,
      held: verdict.held.length,
      faulty: plan.faults.length + plan.notKept.length + plan.full.length,
    };
    const open = new Set(entries.flatMap((one) => (one.networkCondition?.status === 'False' ? [one.name] : [])));
    const networks = decideNodeNetworks({
      plan,
      tried: due,
      failed: applied.failed,
      attemptsOf: (cidr) => this.#retries.attemptsOf(cidr),
      isRefused: this.#retries.isProbing,
      lastMessageOf: (node) => reports.lastMessageOf(node),
      isServedElsewhere: (node, cidr) => this.#served?.has(cidr) === false && open.has(node),
      cure: `${place} never had a route to it; correct ${this.#deps.placeSetting} if its routes are elsewhere`,
    });
    const isAllTried = due.create.length + due.move.length === plan.create.length + plan.move.length;
    const isDone = isAllTried && applied.failed.size === 0 && !cache.isDue(Number.POSITIVE_INFINITY);
    return { networks, counts, isDone };
  }

  async #checkRemovals(
    plan: RoutePlan,
    entries: readonly RoutedNode[],
    vpcId: string,
    context: CallContext,
  ): ReturnType<RouteRemovalCheck['check']> {
    const { cache, clusterCidrs, log } = this.#deps;
    try {
      return await this.#removals.check(
        {
          vpcId,
          removals: plan.remove,
          routeCount: routesWithin(clusterCidrs, cache.routes()).length,
          nodeCount: entries.length,
          liveIp: entries.find(({ internalIp, isReady }) => isReady && internalIp !== undefined)?.internalIp,
          lastNodeOf: (cidr) => this.#lastNodes.get(cidr),
        },
        context,
      );
    } catch (error) {
      if (!isKubeError(error)) throw error;
      log.warn('no route is removed: the API server does not tell whether its node is gone', { error });
      return { allowed: [], held: [] };
    }
  }

  /**
   * A place without any route of the cluster when it is first read is a new one, or the wrong one: a Node in service has its
   * route elsewhere until one was seen here.
   */
  #noteServed({ right, move, remove, notKept }: RoutePlan): void {
    if (!this.#isRead && [right, move, remove, notKept].every(({ length }) => length === 0)) this.#served = new Set();
    this.#isRead = true;
    for (const { cidr } of right) this.#served?.add(cidr);
  }

  #forgetNodes(known: ReadonlySet<string>): void {
    for (const cidr of this.#lastNodes.keys()) if (!known.has(cidr)) this.#lastNodes.delete(cidr);
    this.#retries.forgetOthers(known);
    for (const cidr of this.#served ?? []) if (!known.has(cidr)) this.#served?.delete(cidr);
  }
}
