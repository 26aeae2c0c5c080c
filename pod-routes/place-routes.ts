import type { CallContext, RoutePort } from '../cloud/cloud.ts';
import { isCloudError } from '../cloud/cloud-error.ts';
import { isKubeError } from '../kube/kube-error.ts';
import type { RouteMetrics } from '../observability/program-metrics.ts';
import type { Logger } from '../runtime/log.ts';
import { applyRoutes } from './apply-routes.ts';
import { type RemovalCheckDeps, RouteRemovalCheck } from './check-route-removals.ts';
import { decideNodeNetworks, findLacking, keepServed, type NodeNetworks } from './decide-node-networks.ts';
import { decideRoutes, type RouteOwnership, type RoutePlan, routesWithin } from './decide-routes.ts';
import { limitByQuota, PlaceQuota } from './place-quota.ts';
import type { RouteCache } from './route-cache.ts';
import type { RouteReports } from './route-reports.ts';
import { RouteRetries } from './route-retries.ts';
import type { RoutedNode } from './routed-node.ts';
import type { RoutesElsewhere, VpcFault } from './routes-elsewhere.ts';

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
  readonly metrics: Pick<RouteMetrics, 'clusterRouteChanges' | 'clusterRouteListFailures'>;
  readonly reports: Pick<RouteReports, 'reportList' | 'reportHeld'>;
  readonly elsewhere: RoutesElsewhere;
};

/** `held`: a route that nothing needs, and that stays until it is certain that its node is gone. */
export type RouteState = 'right' | 'missing' | 'wrong' | 'unneeded' | 'held' | 'faulty';

/** The VPC of the cluster. */
type VpcFacts = { readonly vpcId: string; readonly vpcFault: VpcFault | undefined };

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
  /** What was said last of networks without a route. */
  #messages: ReadonlyMap<string, string> = new Map();

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
    vpc: VpcFacts,
    limit: number,
    context: CallContext,
  ): Promise<PlacePass | undefined> {
    const { clusterCidrs, clusterId, ownership, cache, metrics, reports, place } = this.#deps;
    try {
      if (cache.isDue(MAX_LIST_AGE_MS)) await cache.refresh(this.#deps.routes, place, context);
    } catch (error) {
      if (!isCloudError(error)) throw error;
      metrics.clusterRouteListFailures.inc();
      reports.reportList(place, error);
      return undefined;
    }
    reports.reportList(place, undefined);
    const routes = cache.routes();
    const decided = decideRoutes({ clusterCidrs, clusterId, ownership, nodes: entries, routes });
    const count = routes.filter(({ isSystem }) => isSystem !== true).length;
    const plan = limitByQuota(decided, count, await this.#quota.read(count, decided.create.length, context));
    for (const { cidr, node } of [...plan.right, ...plan.create, ...plan.move]) this.#lastNodes.set(cidr, node);
    this.#forgetNodes(new Set([...routes, ...decided.create].map(({ cidr }) => cidr)));
    return await this.#carryOut(plan, entries, vpc, limit, context);
  }

  async #carryOut(
    plan: RoutePlan,
    entries: readonly RoutedNode[],
    vpc: VpcFacts,
    limit: number,
    context: CallContext,
  ): Promise<PlacePass> {
    const { routes, cache, clusterId, metrics, reports, place } = this.#deps;
    const verdict = await this.#checkRemovals(plan, entries, vpc, context);
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
        metrics,
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
    const decided = decideNodeNetworks({
      plan,
      tried: due,
      failed: applied.failed,
      attemptsOf: (cidr) => this.#retries.attemptsOf(cidr),
      refusal: this.#retries.refusal,
      lastMessageOf: (cidr) => this.#messages.get(cidr),
    });
    this.#messages = decided.messages;
    const networks = await this.#keepServed(decided, plan, entries, vpc, context);
    const isAllTried = due.create.length + due.move.length === plan.create.length + plan.move.length;
    const isDone = isAllTried && applied.failed.size === 0 && !cache.isDue(Number.POSITIVE_INFINITY);
    return { networks, counts, isDone };
  }

  async #checkRemovals(
    plan: RoutePlan,
    entries: readonly RoutedNode[],
    vpc: VpcFacts,
    context: CallContext,
  ): ReturnType<RouteRemovalCheck['check']> {
    const { cache, clusterCidrs, log } = this.#deps;
    try {
      return await this.#removals.check(
        {
          ...vpc,
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

  /** No Node is closed whose route is seen in another place. */
  async #keepServed(
    networks: NodeNetworks,
    plan: RoutePlan,
    entries: readonly RoutedNode[],
    { vpcId, vpcFault }: VpcFacts,
    context: CallContext,
  ): Promise<NodeNetworks> {
    const lacking = findLacking(networks, plan, entries);
    if (lacking.length === 0) return networks;
    const elsewhere = await this.#deps.elsewhere.read(vpcId, vpcFault, context);
    return keepServed(networks, lacking, elsewhere, this.#deps);
  }

  #forgetNodes(known: ReadonlySet<string>): void {
    for (const cidr of this.#lastNodes.keys()) if (!known.has(cidr)) this.#lastNodes.delete(cidr);
    this.#retries.forgetOthers(known);
  }
}
