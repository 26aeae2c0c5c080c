import { DIRECT_ENI_RESOURCE, EIP_RESOURCE, ENI_IP_RESOURCE } from '../crd/names.ts';
import { hostPrefix } from '../dataplane/ip-prefix.ts';
import { ChangeSignal } from '../runtime/change-signal.ts';
import { invariant } from '../runtime/invariant.ts';
import { type ClusterConnection, openCluster } from './cluster.ts';
import type { AgentComponents } from './components.ts';
import { readEips, readEniIps, readExclusiveEnis } from './device-plugin/count-supply.ts';
import { type DevicePlugin, startDevicePlugin } from './device-plugin/device-plugin.ts';
import type { HostPorts } from './host-ports.ts';
import type { Readiness } from './ops/readiness.ts';
import type { AcceptSupplyDeps } from './supply/accept-supply.ts';
import { refuseSupply } from './supply/refuse-supply.ts';
import { enisInUse } from './supply/why-contradicted.ts';

/** Follows the node's objects when supply comes from the cluster, and lets `/readyz` follow the API server; undefined when it does not. */
export function joinCluster(components: AgentComponents, readiness: Readiness): ClusterConnection | undefined {
  const { config, kube } = components;
  if (config.supplySource === 'file') return undefined;
  invariant(kube !== undefined, 'whoever starts an agent of a cluster gives it the API server');
  const cluster = openCluster({ ...components, kube });
  readiness.whyApiUnready = cluster.whyUnready;
  return cluster;
}

/** Starts to report to kubelet how many addresses the node may have; undefined without a cluster or without kubelet. */
export function openDevicePlugin(
  components: Pick<
    AgentComponents,
    'background' | 'config' | 'state' | 'metrics' | 'clock' | 'log' | 'random' | 'kube' | 'events'
  > & {
    readonly host: Pick<HostPorts, 'kubelet'>;
  },
  cluster: ClusterConnection | undefined,
): DevicePlugin | undefined {
  const { config, host, state, kube } = components;
  // With the role uplinks kubelet gives no addresses to Pods: there is nothing that it could count.
  if (cluster === undefined || host.kubelet === undefined || config.role === 'uplinks') return undefined;
  const { supply } = cluster;
  const supplyChanged = new ChangeSignal(components.clock);
  const unsubscribe = supply.subscribe(() => supplyChanged.notify());
  const plugin = startDevicePlugin({
    ...components,
    kubelet: host.kubelet,
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
        count: () => readExclusiveEnis(state, supply.latest()),
        isOptional: true,
      },
      {
        name: EIP_RESOURCE,
        prefix: 'eip',
        socketName: 'tke-eip.sock',
        count: () => readEips(state, supply.latest()),
      },
    ],
    changes: [state.changed, state.demandChanged, supplyChanged],
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
export function acceptSupplyDepsOf(
  { config, host, state, metrics, journal, log, operationLog, readHostView, found, finder }: AgentComponents,
  cluster: ClusterConnection | undefined,
  supplyChanged: () => void,
): AcceptSupplyDeps {
  const refuse: AcceptSupplyDeps['refuse'] = (supply) =>
    refuseSupply(supply, readHostView(), {
      primary: finder.evidence(),
      vpcCidrs: config.vpcCidrs,
      servers: host.readServers(),
      inUse: enisInUse(state),
      arePodsOfOthers: config.role === 'uplinks',
      added: [
        ...(found.current().addresses ?? []),
        // An agent before this one may have recorded none.
        ...state.plannedEnis.flatMap(({ ifindex, addresses }) =>
          addresses.map(({ ip }) => ({ ifindex, prefix: hostPrefix(ip) })),
        ),
      ],
    });
  const base = { state, journal, metrics, log, operationLog, refuse, nodeName: config.nodeName, supplyChanged };
  if (cluster === undefined) return base;
  return { ...base, life: cluster.life, events: cluster.events };
}
