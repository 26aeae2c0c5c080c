import { setTimeout as sleep } from 'node:timers/promises';
import { POD_ANNOTATION } from '../../crd/names.ts';
import { isObject, type JsonObject } from '../../sim/support/netns.ts';
import { ENI_IP_RESOURCE } from './deploy.ts';
import type { RealCluster } from './real-cluster.ts';
import { BUSYBOX_IMAGE } from './small-images.ts';

/** What may differ between Pods of tests. */
export type PodOptions = {
  /** Default: the busybox image sleeps. */
  readonly command?: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  /** Network that its annotation names; default `tke-route-eni`; '': it has no such annotation. */
  readonly network?: string;
  /** Addresses of shared ENIs that it asks for; default 1 with `tke-route-eni`, as in TKE's documents, else 0: it asks for none. */
  readonly eniIps?: number;
  /** Fields of the Pod's spec that win over ours: `nodeName`, `tolerations`. */
  readonly spec?: JsonObject;
  /** Fields of the container that win over ours: `ports`, `readinessProbe`. */
  readonly container?: JsonObject;
};

/** A Pod as the API server has it. */
export type SeenPod = {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  /** Empty until it has one. */
  readonly ip: string;
  /** Empty until it is bound. */
  readonly node: string;
  readonly phase: string;
  readonly isReady: boolean;
  /** True once its end has been asked for. */
  readonly isEnding: boolean;
};

/** Makes the template of a Pod that asks for an address as TKE's documents say. */
function podTemplate(labels: Readonly<Record<string, string>>, options: PodOptions = {}): JsonObject {
  const { network = 'tke-route-eni', command, annotations, spec, container } = options;
  const { eniIps = network === 'tke-route-eni' ? 1 : 0 } = options;
  const resource = { [ENI_IP_RESOURCE]: String(eniIps) };
  return {
    metadata: {
      labels: { ...labels, ...options.labels },
      annotations: { ...(network === '' ? {} : { [POD_ANNOTATION.networks]: network }), ...annotations },
    },
    spec: {
      // Nothing of the tests has to say goodbye.
      terminationGracePeriodSeconds: 2,
      // There is no DNS in the cluster.
      dnsPolicy: 'Default',
      containers: [
        {
          name: 'main',
          image: BUSYBOX_IMAGE,
          imagePullPolicy: 'Never',
          ...(command === undefined ? {} : { command }),
          ...(eniIps === 0 ? {} : { resources: { requests: resource, limits: resource } }),
          ...container,
        },
      ],
      ...spec,
    },
  };
}

/** Makes the manifest of one Pod. */
export function podManifest(name: string, options: PodOptions = {}): string {
  const { metadata, spec } = podTemplate({ app: name }, options);
  return JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name, ...members(metadata) }, spec });
}

/** Makes the manifest of a Deployment whose Pods have the label `app: <name>`. */
export function deploymentManifest(name: string, replicas: number, options: PodOptions = {}): string {
  const selector = { matchLabels: { app: name } };
  const spec = { replicas, selector, template: podTemplate({ app: name }, options) };
  return JSON.stringify({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name }, spec });
}

/** Makes the manifests of a StatefulSet whose Pods have the label `app: <name>`, started side by side. */
export function statefulSetManifest(name: string, replicas: number, options: PodOptions = {}): string {
  const selector = { matchLabels: { app: name } };
  const template = podTemplate({ app: name }, options);
  const spec = { replicas, serviceName: name, podManagementPolicy: 'Parallel', selector, template };
  return JSON.stringify({ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name }, spec });
}

/** Field of a Pod's spec that spreads Pods of one label `app` evenly over the nodes. */
export function spreadOverNodes(app: string): JsonObject {
  const labelSelector = { matchLabels: { app } };
  const constraint = { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule' };
  return { topologySpreadConstraints: [{ ...constraint, labelSelector }] };
}

/** Lists Pods by a label selector; '' is all of the namespace. @throws RunError */
export async function podsOf(
  cluster: RealCluster,
  selector: string,
  namespace = 'default',
): Promise<readonly SeenPod[]> {
  const list = await cluster.kubectlJson('-n', namespace, 'get', 'pods', '-l', selector);
  return isObject(list) && Array.isArray(list['items']) ? list['items'].filter(isObject).map(decodePod) : [];
}

/** Restarts of the first container of each Pod, in the order of the Pods' names. @throws RunError */
export async function restartsOf(
  cluster: RealCluster,
  selector: string,
  namespace = 'default',
): Promise<readonly number[]> {
  const path = 'jsonpath={.items[*].status.containerStatuses[0].restartCount}';
  const answer = await cluster.kubectl('-n', namespace, 'get', 'pods', '-l', selector, '-o', path);
  return answer.split(' ').map(Number);
}

/** Waits until as many Pods as wanted are ready and none is ending; answers with them. @throws Error with the Pods and events */
export async function awaitPods(
  cluster: RealCluster,
  selector: string,
  count: number,
  { namespace = 'default', timeoutMs = 60_000 } = {},
): Promise<readonly SeenPod[]> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const pods = await podsOf(cluster, selector, namespace);
    if (pods.length === count && pods.every((pod) => pod.isReady && !pod.isEnding)) return pods;
    if (performance.now() > deadline) {
      const events = await cluster.kubectl('-n', namespace, 'get', 'events', '--sort-by=.lastTimestamp').catch(String);
      throw new Error(
        `${selector}: not ${count} ready Pods within ${timeoutMs} ms: ${JSON.stringify(pods)}\n${events.slice(-4_000)}`,
      );
    }
    await sleep(200);
  }
}

/** Pings an address from a Pod; true when an answer came. One lost packet is made good by a second. */
export async function pingFrom(cluster: RealCluster, pod: SeenPod, address: string): Promise<boolean> {
  const command = ['ping', '-c', '1', '-W', '2', address];
  for (let tries = 0; tries < 2; tries++) {
    const answer = await cluster.tryKubectl(['-n', pod.namespace, 'exec', pod.name, '--', ...command]);
    if (answer.code === 0) return true;
  }
  return false;
}

function decodePod(pod: JsonObject): SeenPod {
  const [metadata, spec, status] = [members(pod['metadata']), members(pod['spec']), members(pod['status'])];
  const conditions = Array.isArray(status['conditions']) ? status['conditions'].filter(isObject) : [];
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  return {
    name: text(metadata['name']),
    namespace: text(metadata['namespace']),
    uid: text(metadata['uid']),
    ip: text(status['podIP']),
    node: text(spec['nodeName']),
    phase: text(status['phase']),
    isReady: conditions.some((one) => one['type'] === 'Ready' && one['status'] === 'True'),
    isEnding: metadata['deletionTimestamp'] !== undefined,
  };
}

function members(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}
