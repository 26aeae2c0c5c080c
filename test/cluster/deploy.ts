import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { ENI_IP_TAINT } from '../../crd/names.ts';
import { isObject, type JsonObject } from '../../sim/support/netns.ts';
import type { ImageName } from '../../tools/image/contents.ts';
import { buildImages } from '../../tools/image.ts';
import { waitUntil } from '../support/wait-until.ts';
import type { VpcCloud } from '../system/vpc-cloud.ts';
import type { ClusterNode } from './cluster-node.ts';

/** How the project is brought into a cluster. */
export type DeploySpec = {
  /** Flags of ipamd without dashes, set by its settings ConfigMap: they win over ours. */
  readonly ipamdSettings?: Readonly<Record<string, string>>;
  /** Flags of the agent without dashes, set by its settings ConfigMap. */
  readonly agentSettings?: Readonly<Record<string, string>>;
  /** Flags of the cloud controller manager without dashes, set by its settings ConfigMap: they win over ours. */
  readonly ccmSettings?: Readonly<Record<string, string>>;
  /** Subnets for Pods; default all that the cloud has for them. */
  readonly subnetIds?: readonly string[];
  /** Names of folders below `conf/kubernetes/components` to add. */
  readonly components?: readonly string[];
  /** Patches of the overlay, as YAML. */
  readonly patches?: readonly string[];
  /** Default `nodes`: until all nodes give Pods addresses of ENIs. `ready`: until they run Pods. `applied`: not at all. */
  readonly until?: 'nodes' | 'ready' | 'applied';
};

/** What was brought. */
export type Deployed = {
  /** All that was applied, as YAML. */
  readonly manifests: string;
};

/** What of a cluster is needed to deploy into it. */
type DeployTarget = {
  readonly dir: string;
  readonly cloud: VpcCloud;
  readonly nodes: readonly ClusterNode[];
  kubectl(...args: readonly string[]): Promise<string>;
  apply(manifests: string): Promise<string>;
  kubectlJson(...args: readonly string[]): Promise<unknown>;
  logs(): string;
};

/** Id of the cluster in the test cloud. */
export const CLUSTER_ID = 'cls-real0000';
/** Where each node reaches the cloud's API: plain HTTP, no packet leaves the node. */
export const CLOUD_ENDPOINT = '127.0.0.1:8443';
/** Extended resource of addresses on shared ENIs. */
export const ENI_IP_RESOURCE = 'tke.cloud.tencent.com/eni-ip';

const KUBERNETES = join(import.meta.dirname, '..', '..', 'conf', 'kubernetes');
const CLOUD_SETTINGS = { region: 'ap-guangzhou', endpoint: CLOUD_ENDPOINT, protocol: 'http' } as const;
const IPAMD_SETTINGS = {
  ...CLOUD_SETTINGS,
  clusterid: CLUSTER_ID,
  // Tests look at records at once.
  'record-delay': '500ms',
  'pod-records': 'all',
} as const;

/**
 * Brings this project's images to all nodes, applies its manifests through an overlay with this cluster's names, and waits
 * until Pods can get addresses on every node. Again with other settings: a rollout.
 * @throws Error with what the Pods of ours say when the nodes do not get there
 */
export async function deploy(target: DeployTarget, spec: DeploySpec = {}): Promise<Deployed> {
  await loadImages(target.nodes, spec.components);
  const { secretId, secretKey } = target.cloud.key;
  await target.apply(secretManifest(secretId, secretKey));
  const overlay = join(target.dir, 'overlay');
  mkdirSync(overlay, { recursive: true });
  writeFileSync(join(overlay, 'kustomization.yaml'), renderOverlay(overlay, target.cloud, spec));
  const manifests = await target.kubectl('kustomize', overlay);
  await target.apply(manifests);
  if (spec.until === 'ready') await awaitNodes(target, whyNotReady);
  else if (spec.until !== 'applied') await awaitServing(target);
  return { manifests };
}

/** What every cluster runs. */
export const BASE_IMAGES = ['tke-eni-agent', 'tke-eni-ipamd'] as const satisfies readonly ImageName[];

/** Component of the cloud controller manager. */
export const CCM_COMPONENT = 'cloud-controller-manager';

/** What components run besides. */
const COMPONENT_IMAGES: Readonly<Record<string, ImageName>> = {
  scheduler: 'tke-eni-ip-scheduler',
  webhook: 'tke-eni-ip-webhook',
  [CCM_COMPONENT]: 'tke-cloud-controller-manager',
};

/** Builds this project's images where they are out of date, and gives nodes those that they need. */
export async function loadImages(nodes: readonly ClusterNode[], components: readonly string[] = []): Promise<void> {
  const images = await buildImages({
    names: [...BASE_IMAGES, ...components.flatMap((one) => COMPONENT_IMAGES[one] ?? [])],
  });
  await Promise.all(
    nodes.map(async (node) => {
      for (const { path } of images) await node.importImage(path);
    }),
  );
}

/** Waits until nodes are Ready, without our taint, with addresses of ENIs for Pods; by default all of them. */
export async function awaitServing(target: DeployTarget, names?: readonly string[], timeoutMs?: number): Promise<void> {
  await awaitNodes(target, whyNotServing, names, timeoutMs);
}

/** Waits until nothing is said against nodes. @param why says what is missing, by the name and the list of Nodes */
async function awaitNodes(
  target: DeployTarget,
  why: typeof whyNotReady,
  names: readonly string[] = target.nodes.map(({ name }) => name),
  timeoutMs = 120_000,
): Promise<void> {
  let last: readonly string[] = [];
  await waitUntil(
    async () => {
      const list = await target.kubectlJson('get', 'nodes');
      const items = isObject(list) && Array.isArray(list['items']) ? list['items'].filter(isObject) : [];
      last = names.flatMap((name) => why(name, items));
      return last.length === 0;
    },
    { what: 'nodes that serve Pods', timeoutMs, everyMs: 200, explain: () => last.join('; ') },
  ).catch(async (error: Error) => {
    throw new Error(`${error.message}\n${await tellOurPods(target)}\n${target.logs()}`);
  });
}

/** Says why a node cannot give a Pod an address of an ENI; nothing when it can. */
function whyNotServing(name: string, nodes: readonly JsonObject[]): readonly string[] {
  const status = nodes.find((one) => nameOf(one) === name)?.['status'];
  const allocatable =
    isObject(status) && isObject(status['allocatable']) ? Number(status['allocatable'][ENI_IP_RESOURCE] ?? 0) : 0;
  return [...whyNotReady(name, nodes), ...(allocatable > 0 ? [] : [`${name}: no ${ENI_IP_RESOURCE} is allocatable`])];
}

/** Says why a node runs no Pod; nothing when it does. */
function whyNotReady(name: string, nodes: readonly JsonObject[]): readonly string[] {
  const node = nodes.find((one) => nameOf(one) === name);
  if (node === undefined) return [`${name}: no such Node`];
  const status = isObject(node['status']) ? node['status'] : {};
  const conditions = listOf(status['conditions']);
  const ready = conditions.find((one) => one['type'] === 'Ready');
  const taints = listOf(isObject(node['spec']) ? node['spec']['taints'] : undefined);
  return [
    ...(ready?.['status'] === 'True' ? [] : [`${name}: not Ready: ${String(ready?.['message'])}`]),
    ...(taints.some(({ key }) => key === ENI_IP_TAINT.key) ? [`${name}: tainted ${ENI_IP_TAINT.key}`] : []),
  ];
}

function nameOf(object: JsonObject): unknown {
  return isObject(object['metadata']) ? object['metadata']['name'] : undefined;
}

function listOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Tells what Pods there are, what happened to them, and what ipamd and the agents say: for errors of tests. */
export async function tellOurPods(target: DeployTarget): Promise<string> {
  const ours = ['-n', 'kube-system', '-l', 'app.kubernetes.io/name=tke-eni'];
  const told = [
    ['get', 'pods', '-A', '-o', 'wide'],
    ['get', 'events', '-A', '--sort-by=.lastTimestamp'],
    ['logs', ...ours, '--tail=30', '--prefix', '--ignore-errors'],
  ].map((args) => target.kubectl(...args).catch(String));
  return (await Promise.all(told)).map((text) => text.slice(-6_000)).join('\n');
}

function secretManifest(secretId: string, secretKey: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'tke-eni-ipamd-credentials', namespace: 'kube-system' },
    stringData: { secretId, secretKey },
  });
}

/** Makes the kustomization of a cluster: JSON, which is YAML. */
function renderOverlay(folder: string, cloud: VpcCloud, spec: DeploySpec): string {
  const fromHere = (path: string) => relative(folder, join(KUBERNETES, path));
  const subnetIds = spec.subnetIds ?? cloud.podSubnetIds;
  return JSON.stringify({
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    // What an installation gets: with the least privilege of agents, and the two admission policies.
    resources: [fromHere('overlays/kubernetes-1.30')],
    components: (spec.components ?? []).map((name) => fromHere(`components/${name}`)),
    configMapGenerator: [
      settingsOf('tke-eni-ipamd-settings', { ...IPAMD_SETTINGS, ...spec.ipamdSettings }),
      settingsOf('tke-eni-agent-settings', spec.agentSettings ?? {}),
    ],
    patches: [
      {
        patch: JSON.stringify({
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: 'tke-eni-ipamd', namespace: 'kube-system' },
          data: { TKE_ENI_IPAMD_SUBNET_ID: subnetIds.join(':'), TKE_ENI_IPAMD_VPC_ID: cloud.vpcId },
        }),
      },
      // Components come after generators, so their ConfigMaps cannot be merged.
      ...(spec.components?.includes(CCM_COMPONENT)
        ? [{ patch: ccmSettingsPatch({ ...CLOUD_SETTINGS, ...spec.ccmSettings }) }]
        : []),
      ...(spec.patches ?? []).map((patch) => ({ patch })),
    ],
  });
}

function ccmSettingsPatch(flags: Readonly<Record<string, string>>): string {
  const data = Object.fromEntries(Object.entries(flags).map(([flag, value]) => [variableOf(flag), value]));
  const metadata = { name: 'tke-cloud-controller-manager-settings', namespace: 'kube-system' };
  return JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
}

function settingsOf(name: string, flags: Readonly<Record<string, string>>): object {
  const literals = Object.entries(flags).map(([flag, value]) => `${variableOf(flag)}=${value}`);
  // As in the base, whose options a merge drops.
  return { name, namespace: 'kube-system', behavior: 'merge', literals, options: { immutable: true } };
}

/** Name of the variable that sets a flag. */
function variableOf(flag: string): string {
  return `TKE_ENI_${flag.replaceAll('-', '_').toUpperCase()}`;
}
