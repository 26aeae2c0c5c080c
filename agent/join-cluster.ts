import { invariant } from '../runtime/invariant.ts';
import { type ClusterSide, openCluster } from './cluster/cluster.ts';
import type { AgentConfig } from './config/options.ts';
import type { AgentParts, AgentRuntime } from './parts.ts';
import type { SupplyIntakeDeps } from './supply-intake.ts';

/** Follows the node's objects when supply comes from the cluster; undefined when it does not. */
export function joinCluster(
  config: AgentConfig,
  { state, metrics, useCases }: AgentParts,
  runtime: AgentRuntime,
): ClusterSide | undefined {
  if (config.supplySource === 'file') return undefined;
  invariant(runtime.kube !== undefined, 'whoever starts an agent of a cluster gives it the API server');
  return openCluster({ config, runtime, state, metrics, kube: runtime.kube, journal: useCases.journal });
}

/** Makes what taking in supply needs. */
export function intakeOf(
  config: AgentConfig,
  { state, metrics, useCases }: AgentParts,
  cluster: ClusterSide | undefined,
  supplyChanged: () => void,
): SupplyIntakeDeps {
  const { journal, log } = useCases;
  const base = { state, journal, metrics, log, nodeName: config.nodeName, supplyChanged };
  if (cluster === undefined) return base;
  return { ...base, life: cluster.life, events: cluster.events };
}
