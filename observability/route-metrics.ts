import type { MetricFactory } from './metric-factory.ts';

/** `held`: a route that nothing needs, and that stays until it is certain that its node is gone. */
export type RouteState = 'right' | 'missing' | 'wrong' | 'unneeded' | 'held' | 'faulty';

/** Callbacks for the routes to networks of Pods. */
export type RoutesObserver = {
  /** After each comparison: how many routes there are of each kind. */
  onRoutes(counts: Readonly<Record<RouteState, number>>): void;
  /** After each change; `code` of its error, undefined when it was done. */
  onChange(kind: 'create' | 'move' | 'remove', code: string | undefined): void;
  onListFailed(): void;
};

/** Counts changes of the VPC's routes, and shows how they stand while this replica leads. */
export function createRoutesObserver(factory: MetricFactory): RoutesObserver & { clear(): void } {
  let latest: Readonly<Record<RouteState, number>> | undefined;
  factory.gauge(
    'cluster_routes',
    "The VPC's routes to the networks of Nodes, by how they stood at the last comparison.",
    ['state'],
    (gauge) => {
      for (const [state, count] of Object.entries(latest ?? {})) gauge.set({ state }, count);
    },
  );
  const changes = factory.counter('cluster_route_changes_total', "Changes of the VPC's routes to networks of Nodes.", [
    'kind',
    'code',
  ]);
  const failures = factory.counter(
    'cluster_route_list_failures_total',
    "Times that the VPC's routes could not be read.",
  );
  return {
    onRoutes: (counts) => {
      latest = counts;
    },
    onChange: (kind, code) => changes.inc({ kind, code: code ?? 'OK' }),
    onListFailed: () => failures.inc(),
    clear: () => {
      latest = undefined;
    },
  };
}
