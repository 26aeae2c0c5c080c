import { keepClusterRoutes } from '../pod-cidrs/keep-cluster-routes.ts';
import { findClusterVpc } from './find-cluster-vpc.ts';
import type { LeaderDeps, TermComponents } from './leader-deps.ts';

/** Keeps the VPC's routes to the networks of Nodes until aborted, with --gr-routes=ipamd. Rejects only with a fault of ipamd. */
export async function runClusterRoutes(
  { config, informers, runtime, events }: LeaderDeps,
  components: TermComponents,
  signal: AbortSignal,
): Promise<void> {
  const { podRoutes } = components;
  if (podRoutes === undefined) return;
  const { cloud, kube, clock, log, random, metrics } = runtime;
  await keepClusterRoutes(
    {
      cloud,
      cache: podRoutes,
      kube,
      nodes: informers.nodes,
      // A cluster over several VPCs has no one route table.
      vpcId: () => findClusterVpc(components),
      clusterCidrs: config.clusterCidrs,
      clusterId: config.clusterId,
      percent: config.nodeReleasePercent,
      clock,
      log,
      random,
      events,
      observe: metrics.routes,
    },
    signal,
  );
}
