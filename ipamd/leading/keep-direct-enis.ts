import { runVpcEnis } from '../direct/run-vpc-enis.ts';
import type { LeadDeps, TermParts } from './lead-deps.ts';

/** Runs the VpcENI controller until aborted. Rejects only with a fault of ipamd. */
export async function keepDirectEnis(deps: LeadDeps, { queues }: TermParts, signal: AbortSignal): Promise<void> {
  const { informers, events } = deps;
  const { cloud, kube, clock, log, random, metrics } = deps.runtime;
  const { necs, vpcEnis, pods } = informers;
  const nodeOfPod = (key: string): string | undefined => pods.get(key)?.nodeName;
  const wakeNode = (name: string): void => queues.supply.add(name);
  const own = { necs, vpcEnis, nodeOfPod, wakeNode, observer: metrics.controller };
  await runVpcEnis({ cloud, kube, clock, log, random, events, ...own }, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
