import { VPC_ENI_KIND } from '../../crd/vpc-eni.ts';
import { runVpcEnis } from '../direct/run-vpc-enis.ts';
import type { LeaderDeps, TermComponents } from './leader-deps.ts';

/** Runs the VpcENI controller until aborted. Rejects only with a fault of ipamd. */
export async function runDirectEnis(deps: LeaderDeps, { queues }: TermComponents, signal: AbortSignal): Promise<void> {
  const { informers, events } = deps;
  const { cloud, kube, clock, log, random, metrics } = deps.runtime;
  const { clusterId } = deps.config;
  const { necs, vpcEnis, pods } = informers;
  const enqueueNode = (name: string): void => queues.supply.add(name);
  const { definitions } = deps;
  const isOwnDeletion = (uid: string, by: AbortSignal) => definitions.isOwnDeletion(VPC_ENI_KIND, uid, by);
  const isRebuilding = (): boolean => definitions.isRebuilding;
  const sources = { isOwnDeletion, isRebuilding, necs, vpcEnis, pods, enqueueNode, observer: metrics.controller };
  await runVpcEnis({ cloud, kube, clusterId, clock, log, random, events, ...sources }, signal).catch(
    (error: unknown) => {
      if (!signal.aborted) throw error;
    },
  );
}
