import { isInCidr } from '../../../crd/ip-text.ts';
import { at } from '../../kube-api/contract/contract-case.ts';
import { waitUntil } from '../../support/wait-until.ts';
import type { VpcCloud } from '../../system/vpc-cloud.ts';
import type { Flags } from '../control-plane.ts';
import type { DeploySpec } from '../deploy.ts';
import type { RealCluster } from '../real-cluster.ts';

/** Networks of Pods, outside of the VPC; the last quarter is that of the Services. */
export const CLUSTER_CIDR = '192.168.0.0/20';
/** Addresses of Services. */
export const GR_SERVICE_CIDR = '192.168.12.0/22';

/** Flags of kube-proxy in a cluster with GlobalRoute Pods, as docs/install.md wants them. */
export const GR_KUBE_PROXY: Flags = { 'detect-local-mode': 'BridgeInterface', 'pod-bridge-interface': 'cbr0' };

/** Brings this project into a cluster as the network mode `gr` of the chart does: blocks and routes by ipamd, no subnets. */
export const GR_DEPLOYMENT: DeploySpec = {
  until: 'ready',
  subnetIds: [],
  agentSettings: { 'default-network': 'tke-bridge' },
  ipamdSettings: {
    'default-network': 'tke-bridge',
    'allocate-node-cidrs': 'true',
    'cluster-cidr': CLUSTER_CIDR,
    'service-cluster-ip-range': GR_SERVICE_CIDR,
    'max-pods-per-node': '64',
    'gr-routes': 'ipamd',
    'enable-direct-eni': 'true',
  },
};

/** The block of each Node, by its name; '' where it has none. */
export async function blocksOf(cluster: RealCluster): Promise<ReadonlyMap<string, string>> {
  const nodes = at(await cluster.kubectlJson('get', 'nodes'), 'items');
  return new Map(
    (Array.isArray(nodes) ? nodes : []).map((node) => [
      String(at(node, 'metadata', 'name')),
      String(at(node, 'spec', 'podCIDR') ?? ''),
    ]),
  );
}

/** Reports whether an address is of the block of a node. */
export async function isOfBlockOf(cluster: RealCluster, node: string, ip: string): Promise<boolean> {
  return isInCidr(ip, (await blocksOf(cluster)).get(node) ?? '');
}

/** Address of the bridge of a block: `192.168.0.64/26` -> `192.168.0.65`. */
export function gatewayOf(block: string): string {
  return block.replace(/(\d+)\/\d+$/, (_, last: string) => String(Number(last) + 1));
}

/**
 * Says what keeps Pods off a node: a taint, or that the condition of its route is missing. Waits, bounded, until nothing
 * does; returns what is left.
 */
export async function whyNotOpen(cluster: RealCluster, name: string): Promise<readonly string[]> {
  let last: readonly string[] = [];
  const look = async (): Promise<boolean> => {
    const node = await cluster.kubectlJson('get', 'node', name);
    const conditions = at(node, 'status', 'conditions');
    const network = (Array.isArray(conditions) ? conditions : []).find(
      (one) => at(one, 'type') === 'NetworkUnavailable',
    );
    const taints = at(node, 'spec', 'taints');
    const reason = `${at(network, 'status')} ${at(network, 'reason')}`;
    last = [
      ...(Array.isArray(taints) ? taints : []).map((taint) => `${name}: taint ${String(at(taint, 'key'))}`),
      ...(reason === 'False RouteCreated' ? [] : [`${name}: NetworkUnavailable ${reason}`]),
    ];
    return last.length === 0;
  };
  await waitUntil(look, { what: `${name}: open`, timeoutMs: 30_000, everyMs: 500 }).catch(() => undefined);
  return last;
}

/** The VPC's routes to blocks, `192.168.0.0/26 10.0.0.4`, sorted. */
export function routesOf({ host }: VpcCloud): readonly string[] {
  return [...host.model.state.globalRoutes.values()].map(({ cidr, gatewayIp }) => `${cidr} ${gatewayIp}`).toSorted();
}
