import { batchesOf } from '../cloud/batches.ts';
import type { CallContext, RoutePort, VpcRoute } from '../cloud/cloud.ts';
import { type CloudError, isCloudError } from '../cloud/cloud-error.ts';
import type { RouteMetrics } from '../observability/program-metrics.ts';
import { type RoutePlan, type RouteRemoval, routeDescription } from './decide-routes.ts';
import type { RouteCache } from './route-cache.ts';
import { inHalves } from './split-refused.ts';

/** Dependencies of changes to routes. */
type ApplyDeps = {
  readonly routes: RoutePort;
  readonly cache: RouteCache;
  /** What the routes are in. */
  readonly place: string;
  readonly clusterId: string;
  readonly context: CallContext;
  /** Most calls at once. */
  readonly limit: number;
  /** The cloud refused all creations a while ago: one is tried alone, and the others follow when it is done. */
  readonly isProbing: boolean;
  readonly metrics: Pick<RouteMetrics, 'clusterRouteChanges'>;
};

/** Kinds of changes, for metrics. */
type RouteChangeKind = 'create' | 'move' | 'remove';

/** What became of the changes. */
type AppliedRoutes = {
  /** Errors of creations and moves by network. */
  readonly failed: ReadonlyMap<string, CloudError>;
  /** A refusal that concerns every creation: a quota, or missing rights. */
  readonly refusal: CloudError | undefined;
  /** Number of routes that were removed. */
  readonly removed: number;
};

type Creation = RoutePlan['create'][number];
type Move = RoutePlan['move'][number];

/**
 * Makes the changes of a plan: as many routes in a call as the API takes, a bounded number of calls at once. A refusal
 * that concerns every creation ends them. Each change, and each call that may have had an effect, is noted in the cache.
 * @throws the reason of the signal
 */
export async function applyRoutes(
  deps: ApplyDeps,
  plan: Pick<RoutePlan, 'create' | 'move'>,
  removals: readonly RouteRemoval[],
): Promise<AppliedRoutes> {
  const changes = new RouteChanges(deps);
  const [move, create] = [[...plan.move], [...plan.create]];
  if (deps.isProbing) {
    const [one] = move.splice(0, 1);
    if (one === undefined) await changes.create('create', create.splice(0, 1));
    else await changes.move([one]);
  }
  const size = deps.routes.maxPerCall;
  // Moves and creations come first: Pods wait for them.
  const jobs = [
    ...batchesOf(move, size).map((some) => () => changes.move(some)),
    ...batchesOf(create, size).map((some) => () => changes.create('create', some)),
    ...batchesOf(removals, size).map((some) => () => changes.remove(some)),
  ];
  const waiting = jobs.values();
  const work = async (): Promise<void> => {
    for (const job of waiting) await job();
  };
  // All workers have ended when this returns, whatever one of them throws.
  const ends = await Promise.allSettled(Array.from({ length: Math.min(deps.limit, jobs.length) }, work));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  return changes;
}

/** Changes of routes, and what became of them. A call that is refused for one of its routes is made again for each half. */
class RouteChanges implements AppliedRoutes {
  readonly failed = new Map<string, CloudError>();
  refusal: CloudError | undefined;
  removed = 0;
  readonly #deps: ApplyDeps;

  constructor(deps: ApplyDeps) {
    this.#deps = deps;
  }

  async create(kind: 'create' | 'move', wanted: readonly Creation[]): Promise<void> {
    const { routes, cache, place, clusterId, context } = this.#deps;
    const description = routeDescription(clusterId);
    await this.#attempt(kind, wanted, async (some) => {
      const specs = some.map(({ cidr, gatewayIp }) => ({ cidr, gatewayIp, description }));
      for (const route of await routes.create(place, specs, context)) cache.noteCreated(route);
      this.#countDone(kind, some.length);
    });
  }

  async move(moves: readonly Move[]): Promise<void> {
    const { routes, cache, place, clusterId, context } = this.#deps;
    const { replace } = routes;
    if (replace === undefined) {
      const deleted: Move[] = [];
      await this.#attempt('move', moves, async (some) => {
        await this.#delete(some.map(({ route }) => route));
        deleted.push(...some);
      });
      await this.create('move', deleted);
      return;
    }
    const description = routeDescription(clusterId);
    await this.#attempt('move', moves, async (some) => {
      const orders = some.map(({ route, gatewayIp }) => ({ route: { ...route, description }, gatewayIp }));
      const moved = await replace(place, orders, context);
      for (const { route } of some) cache.noteDeleted(route.routeId);
      for (const route of moved) cache.noteCreated(route);
      this.#countDone('move', some.length);
    });
  }

  async remove(removals: readonly RouteRemoval[]): Promise<void> {
    const routes = removals.map(({ route }) => route);
    await this.#attempt('remove', routes, async (some) => {
      await this.#delete(some);
      this.removed += some.length;
      this.#countDone('remove', some.length);
    });
  }

  async #delete(some: readonly VpcRoute[]): Promise<void> {
    const { routes, cache, place, context } = this.#deps;
    try {
      await routes.delete(place, some, context);
    } catch (error) {
      // Of several one may be gone, and then none is deleted.
      if (!isCloudError(error, 'gone') || some.length > 1) throw error;
    }
    for (const route of some) cache.noteDeleted(route.routeId);
  }

  async #attempt<T extends { readonly cidr: string }>(
    kind: RouteChangeKind,
    items: readonly T[],
    call: (some: readonly T[]) => Promise<void>,
  ): Promise<void> {
    const { context } = this.#deps;
    const isCreation = kind !== 'remove';
    await inHalves(
      items,
      async (some) => {
        context.signal.throwIfAborted();
        if (isCreation && this.refusal !== undefined) throw this.refusal;
        await call(some);
      },
      (some, error) => {
        for (const { cidr } of some) this.#noteFailure(kind, cidr, error);
        if (isCreation && concernsAll(error)) this.refusal ??= error;
      },
    );
  }

  #countDone(kind: RouteChangeKind, count: number): void {
    this.#deps.metrics.clusterRouteChanges.inc({ kind, code: 'OK' }, count);
  }

  #noteFailure(kind: RouteChangeKind, cidr: string, error: CloudError): void {
    const { cache, metrics } = this.#deps;
    if (kind !== 'remove') this.failed.set(cidr, error);
    // No call was made.
    if (error === this.refusal) return;
    metrics.clusterRouteChanges.inc({ kind, code: error.code });
    // A failed move may have removed the old route.
    if (kind === 'move' || mayHaveChanged(error)) cache.noteUnclear(cidr);
  }
}

function concernsAll({ retry, code }: CloudError): boolean {
  return retry === 'quota' || retry === 'credentials' || /^(AuthFailure|UnauthorizedOperation)/.test(code);
}

/** The change may have happened, or the cloud has a route that the list lacks: the next list decides. */
function mayHaveChanged({ retry, code }: CloudError): boolean {
  return retry === 'resolve' || code === 'UnsupportedOperation.Ecmp';
}
