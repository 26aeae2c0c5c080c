import { holdRoutesLock } from '../../pod-routes/hold-routes-lock.ts';
import { keepPodRoutes } from '../../pod-routes/keep-pod-routes.ts';
import { findClusterVpc } from './find-cluster-vpc.ts';
import type { LeaderDeps, TermComponents } from './leader-deps.ts';

/**
 * Keeps the VPC's routes to the networks of Nodes until aborted, with --gr-routes=ipamd, while no other program keeps
 * them. Rejects only with a fault of ipamd.
 */
export async function runClusterRoutes(
  { config, informers, runtime, events }: LeaderDeps,
  components: TermComponents,
  signal: AbortSignal,
): Promise<void> {
  const { podRoutes } = components;
  if (podRoutes === undefined) return;
  const { cloud, kube, clock, log, random, metrics } = runtime;
  const keep = (held: AbortSignal): Promise<void> =>
    keepPodRoutes(
      {
        routes: cloud.routes.global,
        subnets: cloud.subnets,
        cacheOf: () => podRoutes,
        kube,
        nodes: informers.nodes,
        // A cluster over several VPCs has no one route table.
        vpcId: () => findClusterVpc(components),
        vpcCure: 'set TKE_ENI_IPAMD_VPC_ID in the ConfigMap',
        placeSetting: 'TKE_ENI_IPAMD_VPC_ID in the ConfigMap',
        ownership: 'network',
        clusterCidrs: config.clusterCidrs,
        clusterId: config.clusterId,
        percent: config.nodeReleasePercent,
        clock,
        log,
        random,
        events,
        observe: metrics.routes,
      },
      held,
    );
  const report = (holder: string | undefined): void => {
    const problem = holder === undefined ? [] : [{ kind: ROUTES_KEPT, name: holder }];
    metrics.problems.report('routes', problem);
    if (holder === undefined) return;
    const message = `ipamd keeps no routes of podCIDRs: ${holder} does (Endpoints tke-eni-pod-routes); set --gr-routes=ccm here, or --routes=none there`;
    log.error('another program keeps the routes of podCIDRs', { holder });
    const involved = { apiVersion: 'v1', kind: 'ConfigMap', name: config.configMap, namespace: config.namespace };
    events.record({ involved, type: 'Warning', reason: ROUTES_KEPT, message });
  };
  await holdRoutesLock({ kube, program: 'tke-eni-ipamd', clock, log, random, report }, keep, signal);
}

/** Kind of the problem, and reason of the event. */
const ROUTES_KEPT = 'RoutesKeptByOther';
