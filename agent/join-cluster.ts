import { DIRECT_ENI_RESOURCE, EIP_RESOURCE, ENI_IP_RESOURCE } from '../crd/names.ts';
import { ChangeSignal } from '../runtime/change-signal.ts';
import { invariant } from '../runtime/invariant.ts';
import { type ClusterSide, openCluster } from './cluster/cluster.ts';
import { NO_EVENTS } from './cluster/node-events.ts';
import type { AgentConfig } from './config/options.ts';
import { readDirectEnis, readEniIps } from './device-plugin/count-addresses.ts';
import { type DevicePlugin, startDevicePlugin } from './device-plugin/device-plugin.ts';
import { readEips } from './eip/count-eips.ts';
import type { AgentParts, AgentRuntime } from './parts.ts';
import type { SupplyIntakeDeps } from './supply-intake.ts';

/** Follows the node's objects when supply comes from the cluster; undefined when it does not. */
export function joinCluster(
  config: AgentConfig,
  { state, metrics, useCases, diary }: AgentParts,
  runtime: AgentRuntime,
): ClusterSide | undefined {
  if (config.supplySource === 'file') return undefined;
  invariant(runtime.kube !== undefined, 'whoever starts an agent of a cluster gives it the API server');
  return openCluster({ config, runtime, state, metrics, diary, kube: runtime.kube, journal: useCases.journal });
}

/** Starts to report to kubelet how many addresses the node may have; undefined without a cluster or without kubelet. */
export function openDevicePlugin(
  config: AgentConfig,
  { state, metrics }: Pick<AgentParts, 'state' | 'metrics'>,
  { clock, log, random = () => 0.5, kube, events = NO_EVENTS }: Omit<AgentRuntime, 'randomBytes' | 'release'>,
  cluster: ClusterSide | undefined,
): DevicePlugin | undefined {
  if (cluster === undefined || config.kubeletDir === '') return undefined;
  const { supply } = cluster;
  const supplyTold = new ChangeSignal(clock);
  const unsubscribe = supply.subscribe(() => supplyTold.notify());
  const plugin = startDevicePlugin({
    ...{ clock, log, random, metrics, events },
    kubeletDir: config.kubeletDir,
    resources: [
      {
        name: ENI_IP_RESOURCE,
        prefix: 'eni-ip',
        socketName: 'tke-eni-ip.sock',
        count: () => readEniIps(state, supply.latest()),
      },
      {
        name: DIRECT_ENI_RESOURCE,
        prefix: 'direct-eni',
        socketName: 'tke-direct-eni.sock',
        count: () => readDirectEnis(state, supply.latest()),
      },
      {
        name: EIP_RESOURCE,
        prefix: 'eip',
        socketName: 'tke-eip.sock',
        count: () => readEips(state, supply.latest()),
      },
    ],
    changes: [state.changed, state.demandChanged, supplyTold],
    node: kube === undefined ? undefined : { kube, name: config.nodeName },
  });
  return {
    close: async () => {
      unsubscribe();
      await plugin.close();
    },
  };
}

/** Returns the dependencies of accepting supply. */
export function intakeOf(
  config: AgentConfig,
  { state, metrics, useCases, diary }: AgentParts,
  cluster: ClusterSide | undefined,
  supplyChanged: () => void,
): SupplyIntakeDeps {
  const { journal, log } = useCases;
  const base = { state, journal, metrics, log, diary, nodeName: config.nodeName, supplyChanged };
  if (cluster === undefined) return base;
  return { ...base, life: cluster.life, events: cluster.events };
}
