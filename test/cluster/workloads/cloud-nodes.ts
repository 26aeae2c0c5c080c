import { at } from '../../kube-api/contract/contract-case.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { tellOurPods } from '../deploy.ts';
import { podsOf, type SeenPod } from '../pods.ts';
import type { RealCluster } from '../real-cluster.ts';

/** What a cloud controller manager writes into a Node, as the API server has it. */
type SeenCloudNode = {
  readonly uid: string;
  readonly providerId: unknown;
  /** Keys, sorted. */
  readonly taints: readonly string[];
  /** `InternalIP 10.0.0.4`, in their order. */
  readonly addresses: readonly string[];
  readonly labels: unknown;
};

/** Name and selector of the cloud controller manager's Pods, and its account. */
export const CCM = {
  name: 'tke-cloud-controller-manager',
  selector: 'k8s-app=tke-cloud-controller-manager',
  user: 'system:serviceaccount:kube-system:tke-cloud-controller-manager',
} as const;
/** Lock of the cloud controller manager, in `kube-system`. */
export const CCM_LOCK = 'cloud-controller-manager';
const LEADER = 'control-plane.alpha.kubernetes.io/leader';

/** Reads a Node. @throws RunError when there is none */
export async function readNode(cluster: RealCluster, name: string): Promise<SeenCloudNode> {
  const node = await cluster.kubectlJson('get', 'node', name);
  return {
    uid: String(at(node, 'metadata', 'uid')),
    providerId: at(node, 'spec', 'providerID'),
    taints: listOf(at(node, 'spec', 'taints'))
      .map((one) => String(at(one, 'key')))
      .toSorted(),
    addresses: listOf(at(node, 'status', 'addresses')).map((one) => `${at(one, 'type')} ${at(one, 'address')}`),
    labels: at(node, 'metadata', 'labels'),
  };
}

/** Names of all Nodes, sorted. */
export async function nodeNames(cluster: RealCluster): Promise<readonly string[]> {
  const nodes = listOf(at(await cluster.kubectlJson('get', 'nodes'), 'items'));
  return nodes.map((node) => String(at(node, 'metadata', 'name'))).toSorted();
}

/** Waits until a Node is as wanted; answers with it. @throws Error with the Node and what our Pods say */
export async function awaitNode(
  cluster: RealCluster,
  name: string,
  what: string,
  isWanted: (node: SeenCloudNode) => boolean,
  timeoutMs = 120_000,
): Promise<SeenCloudNode> {
  let last: SeenCloudNode | undefined;
  return waitUntil(
    async () => {
      last = await readNode(cluster, name);
      return isWanted(last) && last;
    },
    { what: `${name}: ${what}`, timeoutMs, everyMs: 500, explain: () => JSON.stringify(last) },
  ).catch(async (error: Error) => {
    throw new Error(`${error.message}\n${await tellOurPods(cluster)}`);
  });
}

/** Name of the Pod that holds a lock of Endpoints in `kube-system`; '' while none does. @throws RunError without the lock */
export async function holderOf(cluster: RealCluster, lock: string): Promise<string> {
  const object = await cluster.kubectlJson('-n', 'kube-system', 'get', 'endpoints', lock);
  const record = String(at(object, 'metadata', 'annotations', LEADER) ?? '{}');
  return String(at(JSON.parse(record), 'holderIdentity') ?? '').replace(/_[^_]*$/, '');
}

/**
 * Starts kube-controller-manager again, and waits until its controller of Endpoints has begun: it deletes those that have
 * neither a Service nor the annotation of a lock. @throws RunError when it does not
 */
export async function restartControllerManager(cluster: RealCluster): Promise<void> {
  const stray = { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'stray', namespace: 'kube-system' } };
  await cluster.apply(JSON.stringify(stray));
  await cluster.controllerManager.kill('SIGTERM');
  cluster.controllerManager.start();
  await cluster.kubectl('-n', 'kube-system', 'wait', 'endpoints/stray', '--for=delete', '--timeout=55s');
}

/** Pods of the cloud controller manager. */
export function ccmPods(cluster: RealCluster): Promise<readonly SeenPod[]> {
  return podsOf(cluster, CCM.selector, 'kube-system');
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
