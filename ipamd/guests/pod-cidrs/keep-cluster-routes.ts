import { holdRoutesLock } from '../../../pod-routes/hold-routes-lock.ts';
import { keepPodRoutes } from '../../../pod-routes/keep-pod-routes.ts';
import type { RouteCache } from '../../../pod-routes/route-cache.ts';
import { involvedConfigMap } from '../../config/involved-config-map.ts';
import type { LeaderTerm } from '../../term/leader-term.ts';

/** Kind of the problem, and reason of the event. */
const ROUTES_KEPT = 'RoutesKeptByOther';

/**
 * Keeps the VPC's routes to the networks of Nodes until aborted, with --gr-routes=ipamd, while no other program keeps
 * them. Rejects only with a fault of ipamd.
 */
export async function keepClusterRoutes(term: LeaderTerm, podRoutes: RouteCache, signal: AbortSignal): Promise<void> {
  const { config, cloud, log, events, metrics } = term;
  const keep = (held: AbortSignal): Promise<void> =>
    keepPodRoutes(
      {
        ...term,
        routes: cloud.routes.global,
        subnets: cloud.subnets,
        cacheOf: () => podRoutes,
        vpcCure: 'set TKE_ENI_IPAMD_VPC_ID in the ConfigMap',
        placeSetting: 'TKE_ENI_IPAMD_VPC_ID in the ConfigMap',
        ownership: 'network',
        clusterCidrs: config.clusterCidrs,
        clusterId: config.clusterId,
        percent: config.nodeReleasePercent,
      },
      held,
    );
  const report = (holder: string | undefined): void => {
    const problem = holder === undefined ? [] : [{ kind: ROUTES_KEPT, name: holder }];
    metrics.problems.report('routes', problem);
    if (holder === undefined) return;
    const message = `ipamd keeps no routes of podCIDRs: ${holder} does (Endpoints tke-eni-pod-routes); set --gr-routes=ccm here, or --routes=none there`;
    log.error('another program keeps the routes of podCIDRs', { holder });
    events.record({ involved: involvedConfigMap(config), type: 'Warning', reason: ROUTES_KEPT, message });
  };
  await holdRoutesLock({ ...term, program: 'tke-eni-ipamd', report }, keep, signal);
}
