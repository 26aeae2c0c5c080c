import type { RunningIpamd } from '../../../ipamd/ipamd.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { NODES } from '../../../kube/resource-types.ts';
import type { CloudSpec } from '../../../sim/vpc/api/model/state.ts';
import type { ModelGlobalRoute } from '../../../sim/vpc/api/model/types.ts';
import { addInstance, CLOUD, nodeOf, type ShellScene, shellScene } from '../shell/shell-scene.ts';

/** The networks of Pods of the cluster here. */
const CLUSTER_CIDR = '172.16.0.0/16';

const FLAGS = ['--gr-routes=ipamd', `--cluster-cidr=${CLUSTER_CIDR}`, '--record-pods=false'];

/** A cluster whose nodes have podCIDRs, on a virtual clock. */
export type RoutesScene = {
  readonly shell: ShellScene;
  start(name?: string, ...flags: readonly string[]): Promise<RunningIpamd>;
  /** Starts a machine and registers its Node with a podCIDR; resolves with its address. */
  join(name: string, podCidr?: string): Promise<string>;
  /** Deletes the Node; the machine too if `isTerminated`. */
  leave(name: string, isTerminated: boolean): Promise<void>;
  ipOf(name: string): string;
  routes(): readonly ModelGlobalRoute[];
  addRoute(route: Pick<ModelGlobalRoute, 'cidr' | 'gatewayIp'> & { readonly description?: string }): ModelGlobalRoute;
  /** `network` of each route that leads to the node. */
  routesOf(name: string): readonly string[];
  /** Status and reason of the condition NetworkUnavailable; undefined when there is none. */
  networkOf(name: string): string | undefined;
  events(reason: string): readonly string[];
};

/** Makes a cluster without nodes and without ipamd. */
export async function routesScene(spec: Partial<CloudSpec> = {}): Promise<RoutesScene> {
  const shell = await shellScene({ ...CLOUD, ...spec });
  const { clock, host, kube, server } = shell;
  const ips = new Map<string, string>();
  const { state } = host.model;
  const nodes = (): readonly KubeObject[] => server.objects('nodes') as unknown as readonly KubeObject[];
  return {
    shell,
    start: async (name = 'ipamd', ...flags) => await shell.start({ name, flags: [...FLAGS, ...flags] }),
    join: async (name, podCidr) => {
      const instanceId = `ins-shell${name}`;
      addInstance(host, instanceId);
      const primary = state.enisOf(instanceId).find(({ isPrimary }) => isPrimary);
      const [ip = ''] = primary?.ips.keys() ?? [];
      ips.set(name, ip);
      const node = nodeOf(name, instanceId);
      const spec = podCidr === undefined ? {} : { podCIDR: podCidr, podCIDRs: [podCidr] };
      await clock.run(kube.create(NODES, { ...node, spec: { ...(node['spec'] as object), ...spec } }));
      const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }];
      const body = { status: { addresses: [{ type: 'InternalIP', address: ip }], conditions } };
      await clock.run(kube.patch(NODES, { name }, { kind: 'strategic', body, subresource: 'status' }));
      return ip;
    },
    leave: async (name, isTerminated) => {
      if (isTerminated) state.removeInstance(`ins-shell${name}`);
      await clock.run(kube.delete(NODES, { name }));
    },
    ipOf: (name) => ips.get(name) ?? '',
    routes: () => [...state.globalRoutes.values()],
    addRoute: (route) => state.addGlobalRoute({ vpcId: CLOUD.vpcId, description: '', ...route }),
    routesOf: (name) =>
      [...state.globalRoutes.values()].filter(({ gatewayIp }) => gatewayIp === ips.get(name)).map(({ cidr }) => cidr),
    networkOf: (name) => {
      const status = nodes().find(({ metadata }) => metadata.name === name)?.['status'] as
        | { readonly conditions?: readonly { type: string; status: string; reason: string }[] }
        | undefined;
      const condition = status?.conditions?.find(({ type }) => type === 'NetworkUnavailable');
      return condition === undefined ? undefined : `${condition.status} ${condition.reason}`;
    },
    events: (wanted) =>
      server.objects('events').flatMap((event) => {
        const { reason, message } = event as { readonly reason?: string; readonly message?: string };
        return reason === wanted ? [String(message)] : [];
      }),
  };
}
