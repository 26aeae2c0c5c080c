import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { SERVICES } from '../../kube/resource-types.ts';
import { recordOf, recordsOf, textOf, textsOf } from '../../runtime/json.ts';
import { KUBERNETES_FOLDER, readKustomization, readResources } from '../conf/read-manifests.ts';
import type { PodCluster } from '../ipamd/shell/pod-cluster.ts';
import { at } from '../kube-api/contract/contract-case.ts';

const NAMESPACE = 'kube-system';
/** What is made beside the manifests: by programs as they run, and by people, as pages have them. */
const BESIDES: readonly (readonly [apiVersion: string, kind: string, name: string])[] = [
  ['v1', 'ConfigMap', 'tke-eni-ipamd-leader'],
  ['v1', 'ConfigMap', 'tke-eni-subnets'],
  ['v1', 'ConfigMap', 'tke-eni-pod-cidrs'],
  ['v1', 'ConfigMap', 'tke-eni-ip-scheduler-leader'],
  ['v1', 'ConfigMap', 'tke-eni-agent-settings-0123456789'],
  ['v1', 'Secret', 'tke-eni-ipamd-credentials'],
  ['v1', 'Secret', 'tke-eni-ip-scheduler-tls'],
  ['v1', 'Secret', 'tke-eni-ip-webhook-tls'],
  ['v1', 'Endpoints', 'tke-eni-pod-routes'],
  ['v1', 'Endpoints', 'cloud-controller-manager'],
  ['v1', 'ServiceAccount', 'tke-eni-viewer'],
  ['rbac.authorization.k8s.io/v1', 'ClusterRoleBinding', 'tke-eni-viewer'],
];
const COMPONENTS = join(KUBERNETES_FOLDER, 'components');

/** What an overlay makes that has all components: as the files have it, with the ConfigMaps of settings. */
export const OVERLAY: readonly KubeObject[] = [
  join(KUBERNETES_FOLDER, 'base'),
  ...readdirSync(COMPONENTS).map((name) => join(COMPONENTS, name)),
].flatMap((folder) => [...resourcesOf(folder), ...settingsOf(folder)]);

/**
 * Installs all that there can be, as far as the API server serves its kinds: of the overlay, and beside it; and a Pod of each
 * Deployment, on a node. Nothing of it runs.
 */
export async function install(cluster: PodCluster, node: string): Promise<void> {
  const besides = BESIDES.map(([apiVersion, kind, name]) => ({
    apiVersion,
    kind,
    ...bodyOf(kind),
    metadata: { name },
  }));
  const pods = OVERLAY.filter(({ kind }) => kind === 'Deployment').map(
    ({ metadata: { name }, spec }): KubeObject => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `${name}-0`, labels: labelsOf(at(spec, 'template', 'metadata', 'labels')) },
      spec: { nodeName: node, hostNetwork: true, containers: [{ name: 'c', image: 'i' }] },
    }),
  );
  for (const object of [...OVERLAY, ...besides, ...pods]) await create(cluster, object);
}

/** Names of all objects of ours, by name or label, with their kind; Nodes and events left out. */
export function oursOf({ scene: { server } }: PodCluster): readonly string[] {
  return server.api.registry.all().flatMap(({ plural, group, kind }) => {
    // The store's objects are those of the API.
    const objects = ['Event', 'Node'].includes(kind) ? [] : (server.objects(plural, group) as readonly KubeObject[]);
    return objects
      .filter(({ metadata }) => /tke/.test(`${metadata.name} ${JSON.stringify(metadata.labels ?? {})}`))
      .map(({ metadata }) => `${kind}/${metadata.name}`);
  });
}

async function create(cluster: PodCluster, object: KubeObject): Promise<void> {
  const { kube, server } = cluster.scene;
  const [version = '', group = ''] = (object.apiVersion ?? '').split('/').toReversed();
  const found = server.api.registry
    .all()
    .find((one) => one.kind === object.kind && one.group === group && one.version === version);
  if (found === undefined) return;
  const { plural, namespaced } = found;
  const metadata = { ...object.metadata, ...(namespaced ? { namespace: NAMESPACE } : {}) };
  // No webhook answers here.
  const body = 'webhooks' in object ? { ...object, webhooks: [] } : object;
  const type = { ...SERVICES, group, version, plural, kind: found.kind, isNamespaced: namespaced };
  await cluster.run(kube.create(type, { ...body, metadata })).catch((error: unknown) => {
    // ipamd has made it before.
    if (!isKubeError(error, 'ALREADY_EXISTS')) throw error;
  });
}

function resourcesOf(folder: string): readonly KubeObject[] {
  // Checked against the API server when they are created.
  return readResources(folder) as readonly unknown[] as readonly KubeObject[];
}

/** The ConfigMaps that a kustomization generates, also by way of folders; the hash of each name is made up. */
function settingsOf(folder: string): readonly KubeObject[] {
  const kustomization = readKustomization(folder);
  const own = recordsOf(kustomization['configMapGenerator']).map(({ name, options }) => {
    const { labels, disableNameSuffixHash } = recordOf(options);
    const suffix = disableNameSuffixHash === true ? '' : '-9mdhbd9978';
    return {
      ...{ apiVersion: 'v1', kind: 'ConfigMap' },
      metadata: { name: `${textOf(name)}${suffix}`, namespace: NAMESPACE, labels: labelsOf(labels) },
    };
  });
  const folders = textsOf(kustomization['resources']).filter((entry) => !entry.endsWith('.yaml'));
  return [...own, ...folders.flatMap((entry) => settingsOf(join(folder, entry)))];
}

function labelsOf(value: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(recordOf(value)).map(([key, label]) => [key, textOf(label)]));
}

function bodyOf(kind: string): object {
  if (kind !== 'ClusterRoleBinding') return {};
  return { roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'tke-eni-viewer' } };
}
