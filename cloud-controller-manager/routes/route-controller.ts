import type { Cloud } from '../../cloud/cloud.ts';
import { holdRoutesLock } from '../../pod-routes/hold-routes-lock.ts';
import { keepPodRoutes, type RouteKeeperDeps } from '../../pod-routes/keep-pod-routes.ts';
import type { RoutedNode, RoutedNodes } from '../../pod-routes/routed-node.ts';
import type { CcmConfig } from '../config/options.ts';
import type { CcmNode } from '../controller/ccm-node.ts';
import type { ControllerDeps, ReportWaiting } from '../controller/controller-deps.ts';
import { lockObjectOf } from '../controller/lock-object.ts';
import { readCloudNode } from '../nodes/cloud-node.ts';
import { VPC_CURE } from '../nodes/decide-vpc.ts';
import { readRoutedNode } from './read-routed-node.ts';

/**
 * Keeps one route to the podCIDR of each Node, by --routes, until aborted; while ipamd keeps the routes it waits, and
 * reports that. Faults of the cloud and of the API server are reported and tried again.
 */
export async function runRouteController(
  deps: ControllerDeps,
  signal: AbortSignal,
  reportWaiting: ReportWaiting,
): Promise<void> {
  const { kube, instances, clock, log, random, metrics, config, events } = deps;
  const report = (holder: string | undefined): void => {
    const problem = holder === undefined ? [] : [{ kind: ROUTES_KEPT, name: holder }];
    metrics.problems.reportOfTerm('routes', problem);
    if (holder === undefined) return;
    const message = `the route controller keeps no routes of podCIDRs: ${holder} does (Endpoints tke-eni-pod-routes); set --gr-routes=ccm of ipamd, or --routes=none here`;
    log.error('another program keeps the routes of podCIDRs', { holder });
    events.record({ involved: lockObjectOf(config), type: 'Warning', reason: ROUTES_KEPT, message });
  };
  const keep = async (held: AbortSignal): Promise<void> => {
    reportWaiting(false);
    try {
      await instances.ready(held);
      await keepPodRoutes(keeperOf(deps), held);
    } finally {
      reportWaiting(true);
      metrics.clusterRoutes.replace([]);
    }
  };
  const program = 'tke-cloud-controller-manager';
  reportWaiting(true);
  await holdRoutesLock({ kube, program, clock, log, random, report }, keep, signal);
}

/** Kind of the problem, and reason of the event. */
const ROUTES_KEPT = 'RoutesKeptByOther';

function keeperOf(deps: ControllerDeps): RouteKeeperDeps {
  const { cloud, config, kube, instances, clock, log, random, events, metrics } = deps;
  return {
    ...placesOf(config, cloud.routes),
    subnets: cloud.subnets,
    kube,
    nodes: routedNodesOf(deps),
    vpcId: () => instances.vpcId,
    vpcFault: () => instances.vpcFault,
    vpcCure: VPC_CURE,
    ...(config.routeQuota === 0 ? {} : { quota: config.routeQuota }),
    clusterCidrs: config.clusterCidrs,
    clusterId: config.clusterId,
    percent: config.nodeReleasePercent,
    clock,
    log,
    random,
    events,
    metrics,
    onCompared: () => metrics.routeSyncs.inc(),
  };
}

type Places = Pick<RouteKeeperDeps, 'routes' | 'tables' | 'ownership' | 'placeSetting'>;

/** Where routes are kept by --routes. A route table of the cluster service is the cluster's own, and has no descriptions. */
function placesOf(config: CcmConfig, ports: Cloud['routes']): Places {
  const { routes: kind, routeTables, clusterRouteTable, clusterId } = config;
  switch (kind) {
    case 'none':
    case 'global':
      return { routes: ports.global, ownership: 'mark', placeSetting: '--vpc-id' };
    case 'table':
      return {
        routes: ports.table,
        tables: [...new Set(routeTables)],
        ownership: 'mark',
        placeSetting: '--route-tables',
      };
    case 'cluster': {
      const table = clusterRouteTable === '' ? clusterId : clusterRouteTable;
      return { routes: ports.cluster, tables: [table], ownership: 'network', placeSetting: '--cluster-route-table' };
    }
  }
}

/** Reads each version of a Node once: of thousands few change between two comparisons. */
function routedNodesOf({ nodes, instances }: Pick<ControllerDeps, 'nodes' | 'instances'>): RoutedNodes {
  let read = new WeakMap<CcmNode, RoutedNode>();
  const routedOf = (node: CcmNode): RoutedNode => {
    const known = read.get(node) ?? readRoutedNode(node, instances.of(readCloudNode(node)));
    read.set(node, known);
    return known;
  };
  return {
    get isSynced() {
      return nodes.isSynced;
    },
    get size() {
      return nodes.size;
    },
    values: () => [...nodes.values()].map(routedOf),
    subscribe: (listener) => {
      const stopNodes = nodes.subscribe(({ key, after }) =>
        listener({ key, ...(after && { after: routedOf(after) }) }),
      );
      const stopInstances = instances.subscribe(() => {
        read = new WeakMap();
        for (const node of nodes.values()) listener({ key: node.metadata.name, after: routedOf(node) });
      });
      return () => {
        stopNodes();
        stopInstances();
      };
    },
  };
}
