import type { CallContext, RoutePort } from '../cloud/cloud.ts';
import { type CloudError, isCloudError } from '../cloud/cloud-error.ts';
import { type RoutePlan, type RouteRemoval, routeDescription } from './decide-routes.ts';
import type { RouteCache } from './route-cache.ts';

/** Dependencies of changes to routes. */
type ApplyDeps = {
  readonly routes: RoutePort;
  readonly cache: RouteCache;
  /** What the routes are in. */
  readonly place: string;
  readonly clusterId: string;
  readonly context: CallContext;
  /** Most changes at once. */
  readonly limit: number;
  /** Called after each change; `code` of its error, undefined when it was done. */
  readonly onChange: (kind: RouteChangeKind, code: string | undefined) => void;
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

type Change = { readonly kind: RouteChangeKind; readonly cidr: string; readonly run: () => Promise<void> };

/**
 * Makes the changes of a plan, a bounded number at once. A refusal that concerns every creation ends them. Each change,
 * and each call that may have had an effect, is noted in the cache.
 * @throws the reason of the signal
 */
export async function applyRoutes(
  deps: ApplyDeps,
  plan: Pick<RoutePlan, 'create' | 'move'>,
  removals: readonly RouteRemoval[],
): Promise<AppliedRoutes> {
  const failed = new Map<string, CloudError>();
  let refusal: CloudError | undefined;
  let removed = 0;
  const changes = changesOf(deps, plan, removals);
  const waiting = changes.values();
  const work = async (): Promise<void> => {
    for (const { kind, cidr, run } of waiting) {
      deps.context.signal.throwIfAborted();
      const isCreation = kind !== 'remove';
      try {
        if (isCreation && refusal !== undefined) throw refusal;
        await run();
        deps.onChange(kind, undefined);
        removed += isCreation ? 0 : 1;
      } catch (error) {
        if (!isCloudError(error)) throw error;
        if (error !== refusal) deps.onChange(kind, error.code);
        // A failed move may have removed the old route.
        if (kind === 'move' || mayHaveChanged(error)) deps.cache.noteUnclear(cidr);
        if (isCreation) failed.set(cidr, error);
        if (isCreation && concernsAll(error)) refusal = error;
      }
    }
  };
  // All workers have ended when this returns, whatever one of them throws.
  const ends = await Promise.allSettled(Array.from({ length: Math.min(deps.limit, changes.length) }, work));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  return { failed, refusal, removed };
}

/** Moves and creations come first: Pods wait for them. */
function changesOf(
  { routes, cache, place, clusterId, context }: ApplyDeps,
  { create, move }: Pick<RoutePlan, 'create' | 'move'>,
  removals: readonly RouteRemoval[],
): readonly Change[] {
  const description = routeDescription(clusterId);
  return [
    ...move.map(({ cidr, gatewayIp, route }): Change => {
      const run = async (): Promise<void> => {
        const moved = await routes.replace(place, { ...route, description }, gatewayIp, context);
        cache.noteDeleted(route.routeId);
        cache.noteCreated(moved);
      };
      return { kind: 'move', cidr, run };
    }),
    ...create.map(({ cidr, gatewayIp }): Change => {
      const run = async (): Promise<void> =>
        cache.noteCreated(await routes.create(place, { cidr, gatewayIp, description }, context));
      return { kind: 'create', cidr, run };
    }),
    ...removals.map(({ route: { cidr, routeId } }): Change => {
      const run = async (): Promise<void> => {
        await routes.delete(place, routeId, context).catch((error: unknown) => {
          if (!isCloudError(error, 'gone')) throw error;
        });
        cache.noteDeleted(routeId);
      };
      return { kind: 'remove', cidr, run };
    }),
  ];
}

function concernsAll({ retry, code }: CloudError): boolean {
  return retry === 'quota' || retry === 'credentials' || /^(AuthFailure|UnauthorizedOperation)/.test(code);
}

/** The change may have happened, or the cloud has a route that the list lacks: the next list decides. */
function mayHaveChanged({ retry, code }: CloudError): boolean {
  return retry === 'resolve' || code === 'UnsupportedOperation.Ecmp';
}
