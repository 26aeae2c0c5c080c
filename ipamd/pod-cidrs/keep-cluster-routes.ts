import type { CallContext, Cloud } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { backoffMs } from '../../runtime/backoff.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { NodeEvents } from '../node/node-deps.ts';
import type { NodeEntry } from '../nodes/node-entry.ts';
import { applyRoutes } from './apply-routes.ts';
import { RouteRemovalCheck } from './check-route-removals.ts';
import { decideNodeNetworks } from './decide-node-networks.ts';
import { decideRoutes, type RouteNode, type RoutePlan, routesWithin } from './decide-routes.ts';
import type { RouteCache } from './route-cache.ts';
import { RouteReports } from './route-reports.ts';
import { RouteRetries } from './route-retries.ts';

/** Callbacks for the routes; the metrics use them. */
export type RoutesObserver = {
  /** After each comparison: how many routes there are of each kind. */
  onRoutes(counts: Readonly<Record<RouteState, number>>): void;
  /** After each change; `code` of its error, undefined when it was done. */
  onChange(kind: 'create' | 'move' | 'remove', code: string | undefined): void;
  onListFailed(): void;
};

/** `held`: a route that nothing needs, and that stays until it is certain that its node is gone. */
export type RouteState = 'right' | 'missing' | 'wrong' | 'unneeded' | 'held' | 'faulty';

/** Dependencies of the keeper of routes. */
type RouteKeeperDeps = {
  readonly cloud: Pick<Cloud, 'routes' | 'subnets'>;
  readonly cache: RouteCache;
  readonly kube: Pick<KubeClient, 'get' | 'patch'>;
  readonly nodes: Pick<Informer<NodeEntry>, 'values' | 'get' | 'size' | 'isSynced' | 'subscribe'>;
  /** Returns the VPC of the cluster; undefined while it is not known. */
  readonly vpcId: () => string | undefined;
  /** --cluster-cidr */
  readonly clusterCidrs: readonly string[];
  readonly clusterId: string;
  /** --node-release-percent */
  readonly percent: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly events: NodeEvents;
  readonly observe: RoutesObserver;
};

/** The VPC's routes are compared with the Nodes this often when nothing happens. */
const SYNC_MS = 60_000;
/** A list of this age is good enough for a Node that changed. */
const MAX_LIST_AGE_MS = 15_000;
/** Nodes that change within this time are served together. */
const BATCH_MS = 1_000;
const RETRY = { firstMs: 5_000, maxMs: 60_000, factor: 2, jitter: 0.3 } as const;
/** Most changes, and most writes of conditions, at once; the API takes as many a second. */
const MAX_AT_ONCE = 20;

/**
 * Keeps one route of the VPC for the podCIDR of each Node, to the Node's InternalIP, until aborted: creates what is
 * missing, moves what leads elsewhere, removes what no Node needs, within the networks of the cluster. Writes the
 * condition NetworkUnavailable of each Node. Rejects only with a fault of ipamd.
 */
export async function keepClusterRoutes(deps: RouteKeeperDeps, signal: AbortSignal): Promise<void> {
  const keeper = new RouteKeeper(deps);
  await keeper.run(signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

class RouteKeeper {
  readonly #deps: RouteKeeperDeps;
  readonly #removals: RouteRemovalCheck;
  readonly #reports: RouteReports;
  readonly #retries: RouteRetries;
  readonly #changed: ChangeSignal;
  /** The Nodes as routes depend on them, as text: most changes of a Node are none of these. */
  readonly #digests = new Map<string, string>();
  /** Node by network, also of Nodes that went. */
  readonly #lastNodes = new Map<string, string>();
  #isDirty = true;
  /** Failures in a row. */
  #failures = 0;

  constructor(deps: RouteKeeperDeps) {
    this.#deps = deps;
    this.#removals = new RouteRemovalCheck({ ...deps, subnets: deps.cloud.subnets });
    this.#reports = new RouteReports(deps);
    this.#retries = new RouteRetries(deps);
    this.#changed = new ChangeSignal(deps.clock);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { nodes, clock, random } = this.#deps;
    const end = nodes.subscribe(({ before, after }) => this.#noteNode((after ?? before)?.name ?? '', after));
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

  #noteNode(name: string, node: NodeEntry | undefined): void {
    const digest = node === undefined ? undefined : JSON.stringify([routeNodeOf(node), node.networkCondition?.status]);
    if (this.#digests.get(name) === digest) return;
    if (digest === undefined) this.#digests.delete(name);
    else this.#digests.set(name, digest);
    this.#isDirty = true;
    this.#changed.notify();
  }

  /** One comparison with all that follows from it. False: something failed, and is to be tried again. */
  async #pass(signal: AbortSignal): Promise<boolean> {
    const { nodes, clusterCidrs, clusterId, cache, observe } = this.#deps;
    const vpcId = this.#deps.vpcId();
    this.#reports.reportVpc(vpcId);
    if (vpcId === undefined || !nodes.isSynced) return false;
    const context: CallContext = { priority: 'warm', owner: 'routes', signal };
    try {
      if (cache.isDue(MAX_LIST_AGE_MS)) await cache.refresh(this.#deps.cloud.routes, vpcId, context);
    } catch (error) {
      if (!isCloudError(error)) throw error;
      observe.onListFailed();
      this.#reports.reportList(error);
      return false;
    }
    this.#reports.reportList(undefined);
    const entries = [...nodes.values()];
    const routes = cache.routes();
    const plan = decideRoutes({ clusterCidrs, clusterId, nodes: entries.map(routeNodeOf), routes });
    for (const { cidr, node } of [...plan.right, ...plan.create, ...plan.move]) this.#lastNodes.set(cidr, node);
    this.#forgetNodes(new Set([...routes.map(({ cidr }) => cidr), ...plan.create.map(({ cidr }) => cidr)]));
    return await this.#carryOut(plan, entries, vpcId, context);
  }

  async #carryOut(
    plan: RoutePlan,
    entries: readonly NodeEntry[],
    vpcId: string,
    context: CallContext,
  ): Promise<boolean> {
    const { cloud, cache, clusterId, log, observe, nodes } = this.#deps;
    let verdict: Awaited<ReturnType<RouteRemovalCheck['check']>> = { allowed: [], held: [] };
    try {
      verdict = await this.#removals.check(
        {
          vpcId,
          removals: plan.remove,
          routeCount: routesWithin(this.#deps.clusterCidrs, cache.routes()).length,
          nodeCount: nodes.size,
          liveIp: entries.find(({ internalIp, isReady }) => isReady && internalIp !== undefined)?.internalIp,
          lastNodeOf: (cidr) => this.#lastNodes.get(cidr),
        },
        context,
      );
    } catch (error) {
      if (!isKubeError(error)) throw error;
      log.warn('no route is removed: the API server does not tell whether its node is gone', { error });
    }
    this.#reports.reportHeld(verdict.held);
    const due = this.#retries.select(plan);
    const applied = await applyRoutes(
      {
        routes: cloud.routes,
        cache,
        vpcId,
        clusterId,
        context,
        // After a refusal of all one creation tries whether it still stands.
        limit: this.#retries.isProbing ? 1 : MAX_AT_ONCE,
        onChange: observe.onChange,
      },
      due,
      verdict.allowed,
    );
    this.#retries.note(due, applied.failed, applied.refusal);
    if (applied.removed > 0) this.#retries.allowProbe();
    observe.onRoutes({
      right: plan.right.length,
      missing: plan.create.length,
      wrong: plan.move.length,
      unneeded: plan.remove.length - verdict.held.length,
      held: verdict.held.length,
      faulty: plan.faults.length,
    });
    const networks = decideNodeNetworks({
      plan,
      tried: due,
      failed: applied.failed,
      attemptsOf: (cidr) => this.#retries.attemptsOf(cidr),
      isRefused: this.#retries.isProbing,
      lastMessageOf: (node) => this.#reports.lastMessageOf(node),
    });
    const isWritten = await this.#reports.writeNodes(entries, networks, MAX_AT_ONCE, context.signal);
    const isAllTried = due.create.length + due.move.length === plan.create.length + plan.move.length;
    return isWritten && isAllTried && applied.failed.size === 0 && !cache.isDue(Number.POSITIVE_INFINITY);
  }

  #forgetNodes(known: ReadonlySet<string>): void {
    for (const cidr of this.#lastNodes.keys()) if (!known.has(cidr)) this.#lastNodes.delete(cidr);
    this.#retries.forgetOthers(known);
  }
}

function routeNodeOf({ name, createdAt, podCidrs, internalIp }: NodeEntry): RouteNode {
  return { name, createdAt, podCidrs, ...(internalIp === undefined ? {} : { internalIp }) };
}
