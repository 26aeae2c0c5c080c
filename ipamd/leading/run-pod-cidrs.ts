import { blockSettingsOf } from '../config/ipamd-config.ts';
import { numberBlocks } from '../pod-cidrs/cidr-blocks.ts';
import { keepPodCidrs } from '../pod-cidrs/keep-pod-cidrs.ts';
import type { LeaderDeps, TermComponents } from './leader-deps.ts';

/** Gives Nodes their podCIDRs until aborted, where that is configured. Rejects only with a fault of ipamd. */
export async function runPodCidrs(
  { config, runtime, informers, events, secondAllocator }: LeaderDeps,
  { subnets, podRoutes }: TermComponents,
  signal: AbortSignal,
): Promise<void> {
  const settings = blockSettingsOf(config);
  if (settings === undefined || secondAllocator === undefined) return;
  const { kube, clock, log, random, metrics } = runtime;
  await keepPodCidrs(
    {
      kube,
      nodes: informers.nodes,
      blocks: numberBlocks(settings),
      secondAllocator,
      ...(podRoutes === undefined ? {} : { routes: () => podRoutes.view() }),
      vpcCidrs: () => subnets.all().map(({ cidr }) => cidr),
      holdMs: config.podCidrHoldMs,
      namespace: config.namespace,
      configMap: { namespace: config.namespace, name: config.configMap },
      clock,
      log,
      random,
      events,
      observe: metrics.podCidrs,
    },
    signal,
  );
}
