import { globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'ava';
import { isMap, isSeq, parseDocument } from 'yaml';
import { RESOURCE_KINDS } from '../../crd/kinds.ts';
import { readIpamdConfig } from '../../ipamd/config/ipamd-config.ts';
import { isObject, type JsonObject } from '../../sim/kube-api/object.ts';
import { seedClusterRole } from '../../sim/kube-api/seed-roles.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import {
  AGENT,
  agentConfig,
  BASE,
  CONTAINERS,
  findInBase,
  IPAMD,
  ipamdConfig,
  listOf,
  literalsOf,
  PODS,
  settingsInput,
} from './base-scene.ts';
import { OWN_RIGHTS, PUBLISHED_RIGHTS } from './published-rights.ts';
import {
  KUBERNETES_FOLDER,
  listFiles,
  objectsOf,
  readKustomization,
  readResources,
  strings,
} from './read-manifests.ts';

const OF_SERVICES = 'tke-eni-agent-service-cidrs';
const CCM = 'tke-cloud-controller-manager';
const EXAMPLE = join(KUBERNETES_FOLDER, 'overlays/example');
const MS = 1_000;
const selectedBy = (name: string) => ({ 'app.kubernetes.io/name': 'tke-eni', 'k8s-app': name });
const PROBES = ['startupProbe', 'livenessProbe', 'readinessProbe'] as const;
const portOf = (address: string) => Number(address.slice(address.lastIndexOf(':') + 1));

/** The files with which a kustomization changes objects. */
function patchesOf(folder: string): readonly string[] {
  const paths = listOf(readKustomization(folder)['patches']).map(({ path }) => path);
  return paths.filter((path) => typeof path === 'string').map((path) => join(folder, path));
}

test('base: has what a cluster needs, in kube-system or of the whole cluster', (t) => {
  const found = BASE.map((one) => `${String(one['kind'])} ${String(at(one, 'metadata', 'name'))}`).sort();
  const named = (kind: string, ...names: readonly string[]) => names.map((name) => `${kind} ${name}`);
  const group = 'networking.tke.cloud.tencent.com';
  t.deepEqual(
    found,
    [
      ...named('CustomResourceDefinition', ...RESOURCE_KINDS.map(({ plural }) => `${plural}.${group}`)),
      ...['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding'].flatMap((kind) => named(kind, AGENT, IPAMD)),
      ...['ClusterRole', 'ClusterRoleBinding'].flatMap((kind) => named(kind, OF_SERVICES)),
      ...named('DaemonSet', AGENT),
      ...['Deployment', 'ConfigMap', 'Service', 'PodDisruptionBudget'].flatMap((kind) => named(kind, IPAMD)),
    ].sort(),
  );
  const unbound = ['CustomResourceDefinition', 'ClusterRole', 'ClusterRoleBinding'];
  for (const one of BASE)
    t.is(at(one, 'metadata', 'namespace'), unbound.includes(String(one['kind'])) ? undefined : 'kube-system');
});

test('conf/kubernetes: no file is forgotten by the kustomizations', (t) => {
  const all = readdirSync(KUBERNETES_FOLDER, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.yaml'))
    .map((path) => join(KUBERNETES_FOLDER, path));
  const kustomizations = all.filter((path) => path.endsWith('/kustomization.yaml'));
  const used = kustomizations
    .map((path) => dirname(path))
    .flatMap((folder) => [...listFiles(folder), ...patchesOf(folder)]);
  // kube-scheduler reads it from a file of its node.
  const kept = [...kustomizations, join(KUBERNETES_FOLDER, 'scheduler/kube-scheduler-configuration.yaml')];
  t.deepEqual(
    all.filter((path) => !used.includes(path) && !kept.includes(path)),
    [],
  );
});

test('ClusterRoles: are the published ones, and nothing more', (t) => {
  const asSets = (rules: readonly JsonObject[]) =>
    rules.map((rule) =>
      Object.fromEntries(Object.entries(rule).map(([key, value]) => [key, [...strings(value)].sort()])),
    );
  for (const name of [AGENT, IPAMD, 'tke-eni-ip-scheduler', CCM] as const) {
    const role = seedClusterRole(name);
    t.is(at(role, 'metadata', 'name'), name === CCM ? 'cloud-controller-manager' : name);
    t.deepEqual(asSets(listOf(role['rules'])), asSets(PUBLISHED_RIGHTS[name] ?? []), name);
  }
});

test('ClusterRoles: what is beyond the published ones is in one of its own, of the agent', (t) => {
  t.deepEqual(findInBase('ClusterRole', OF_SERVICES)['rules'], OWN_RIGHTS[AGENT]);
  const binding = findInBase('ClusterRoleBinding', OF_SERVICES);
  t.is(at(binding, 'roleRef', 'name'), OF_SERVICES);
  t.deepEqual(binding['subjects'], findInBase('ClusterRoleBinding', AGENT)['subjects']);
});

test('ClusterRoleBindings: give each account its own role', (t) => {
  for (const name of [AGENT, IPAMD]) {
    const binding = findInBase('ClusterRoleBinding', name);
    t.deepEqual(binding['roleRef'], { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name });
    t.deepEqual(binding['subjects'], [{ kind: 'ServiceAccount', name, namespace: 'kube-system' }]);
  }
  t.is(at(PODS.agent, 'serviceAccountName'), AGENT);
  t.is(at(PODS.ipamd, 'serviceAccountName'), IPAMD);
});

test('agent: its own reader takes flags and variables', (t) => {
  const { supplySource, nodeName, pluginDir, stateDir, kubeconfig } = agentConfig();
  t.deepEqual(
    { supplySource, nodeName, pluginDir, stateDir, kubeconfig },
    {
      supplySource: 'cluster',
      nodeName: 'n1',
      pluginDir: '/opt/tke-eni/bin',
      stateDir: '/run/tke-eni',
      kubeconfig: '',
    },
  );
  const nodeEnv = listOf(at(CONTAINERS.agent, 'env')).find((one) => one['name'] === 'NODE_NAME');
  t.is(at(nodeEnv, 'valueFrom', 'fieldRef', 'fieldPath'), 'spec.nodeName');
});

test('ipamd: its own reader takes flags and variables; the base lacks the id of the cluster alone', (t) => {
  const { namespace, configMap, credentials, leaderElect } = ipamdConfig();
  t.deepEqual(
    { namespace, configMap, credentials, leaderElect },
    { namespace: 'kube-system', configMap: IPAMD, credentials: 'auto', leaderElect: true },
  );
  const base = t.throws(() =>
    readIpamdConfig(settingsInput(CONTAINERS.ipamd, literalsOf('ipamd', 'tke-eni-ipamd-settings'))),
  );
  const faults = (base?.message ?? '').split('\n').filter((line) => line.includes('--'));
  t.is(faults.length, 1, base?.message);
  t.regex(base?.message ?? '', /--clusterid/);
});

test('images: have the version of package.json, in base and example', (t) => {
  const packageJson: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const version = String(at(packageJson, 'version'));
  const optional = ['tke-eni-ip-scheduler', 'tke-eni-ip-webhook', CCM];
  for (const [folder, names] of [
    ['base', [AGENT, IPAMD]],
    ['overlays/example', [AGENT, IPAMD, ...optional]],
    ['scheduler', ['tke-eni-ip-scheduler']],
    ['webhook', ['tke-eni-ip-webhook']],
    ['cloud-controller-manager', [CCM]],
  ] as const) {
    const images = listOf(readKustomization(join(KUBERNETES_FOLDER, folder))['images']);
    t.deepEqual(
      images.map(({ name, newTag }) => [name, newTag]),
      names.map((name) => [name, version]),
    );
  }
  t.is(at(CONTAINERS.agent, 'image'), AGENT);
  t.is(at(CONTAINERS.ipamd, 'image'), IPAMD);
});

test('ports: probes, ports and the Service ask where the processes listen', (t) => {
  const [agentAddress, ipamdAddress] = [agentConfig().metricsAddress, ipamdConfig().metricsAddress];
  t.is(agentAddress, '127.0.0.1:61680');
  t.is(portOf(ipamdAddress), 61_681);
  for (const probe of PROBES) {
    t.is(at(CONTAINERS.agent, probe, 'httpGet', 'host'), '127.0.0.1');
    t.is(at(CONTAINERS.agent, probe, 'httpGet', 'port'), portOf(agentAddress));
    t.is(at(CONTAINERS.ipamd, probe, 'httpGet', 'port'), 'metrics');
    const path = probe === 'readinessProbe' ? '/readyz' : '/healthz';
    t.is(at(CONTAINERS.agent, probe, 'httpGet', 'path'), path);
    t.is(at(CONTAINERS.ipamd, probe, 'httpGet', 'path'), path);
  }
  t.deepEqual(at(CONTAINERS.ipamd, 'ports'), [
    { name: 'metrics', containerPort: portOf(ipamdAddress), protocol: 'TCP' },
  ]);
  const service = findInBase('Service', IPAMD);
  t.is(at(service, 'spec', 'ports', 0, 'port'), portOf(ipamdAddress));
  t.is(at(service, 'spec', 'ports', 0, 'targetPort'), 'metrics');
});

test('labels: selectors find the Pods, and only them', (t) => {
  for (const [kind, name, component] of [
    ['DaemonSet', AGENT, 'agent'],
    ['Deployment', IPAMD, 'ipamd'],
  ] as const) {
    const labels = at(findInBase(kind, name), 'spec', 'template', 'metadata', 'labels');
    t.deepEqual(labels, {
      'k8s-app': name,
      'app.kubernetes.io/name': 'tke-eni',
      'app.kubernetes.io/component': component,
    });
    t.deepEqual(at(findInBase(kind, name), 'spec', 'selector'), { matchLabels: selectedBy(name) });
  }
  t.deepEqual(at(findInBase('Service', IPAMD), 'spec', 'selector'), selectedBy(IPAMD));
  t.deepEqual(at(findInBase('PodDisruptionBudget', IPAMD), 'spec', 'selector'), { matchLabels: selectedBy(IPAMD) });
  const terms = at(PODS.ipamd, 'affinity', 'podAntiAffinity', 'requiredDuringSchedulingIgnoredDuringExecution');
  t.deepEqual(terms, [{ topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: selectedBy(IPAMD) } }]);
});

test('labels: no selector finds a Pod that has the labels of the product alone', (t) => {
  const selectors = globSync('**/*.yaml', { cwd: KUBERNETES_FOLDER })
    .filter((path) => !path.endsWith('kustomization.yaml'))
    .flatMap((path) =>
      objectsOf(readFileSync(join(KUBERNETES_FOLDER, path), 'utf8')).flatMap((object) =>
        podSelectorsOf(object).map((selector) => [path, selector] as const),
      ),
    );
  t.true(selectors.length >= 20, `${selectors.length} selectors`);
  for (const [path, selector] of selectors)
    t.is(at(selector, 'app.kubernetes.io/name'), 'tke-eni', `${path}: ${JSON.stringify(selector)}`);
});

test('labels: the Pods of 0.1.0 have what the selectors ask for', (t) => {
  const file = join(KUBERNETES_FOLDER, '../../test/frozen/0.1.0/manifests/objects.json');
  const recorded = JSON.parse(readFileSync(file, 'utf8')) as Readonly<Record<string, unknown>>;
  const pods = Object.entries(recorded).flatMap(([key, row]) => {
    const labels = at(row, 'pod', 'labels');
    const [folder = '', kind = ''] = key.split(' ');
    return isObject(labels) ? [{ folder, kind, labels }] : [];
  });
  const compared = pods.flatMap(({ folder, kind, labels }) => {
    const object = globSync('*.yaml', { cwd: join(KUBERNETES_FOLDER, '..', folder) })
      .flatMap((path) => objectsOf(readFileSync(join(KUBERNETES_FOLDER, '..', folder, path), 'utf8')))
      .find((one) => one['kind'] === kind);
    return object === undefined ? [] : [{ labels, selectors: podSelectorsOf(object) }];
  });
  t.true(compared.length >= 4, `${compared.length} workloads`);
  for (const { labels, selectors } of compared) for (const selector of selectors) t.like(labels, selector as object);
});

/** Selectors of Pods anywhere in an object: of Services, workloads, budgets and affinities. */
function podSelectorsOf(value: unknown, key = '', kind = ''): readonly unknown[] {
  if (Array.isArray(value)) return value.flatMap((item) => podSelectorsOf(item, '', kind));
  if (!isObject(value)) return [];
  const of = kind === '' ? String(value['kind']) : kind;
  if (key === 'matchLabels' || (key === 'selector' && of === 'Service')) return [value];
  return Object.entries(value).flatMap(([name, item]) =>
    name === 'namespaceSelector' || name === 'objectSelector' ? [] : podSelectorsOf(item, name, of),
  );
}

test('ipamd: is nobody in particular and may nothing on its node', (t) => {
  t.deepEqual(at(PODS.ipamd, 'securityContext'), {
    runAsNonRoot: true,
    runAsUser: 65_532,
    runAsGroup: 65_532,
    seccompProfile: { type: 'RuntimeDefault' },
  });
  t.deepEqual(at(CONTAINERS.ipamd, 'securityContext'), {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  t.is(at(PODS.ipamd, 'hostPID'), undefined);
  t.is(at(PODS.ipamd, 'volumes'), undefined);
});

test('agent: has a read-only root, privileged or with three capabilities', (t) => {
  t.deepEqual(at(CONTAINERS.agent, 'securityContext'), { privileged: true, readOnlyRootFilesystem: true });
  const path = join(KUBERNETES_FOLDER, 'components/agent-least-privilege/daemonset.yaml');
  const [patch] = objectsOf(readFileSync(path, 'utf8'));
  t.deepEqual(at(patch, 'spec', 'template', 'spec', 'containers', 0), {
    name: at(CONTAINERS.agent, 'name'),
    securityContext: {
      privileged: false,
      allowPrivilegeEscalation: false,
      seccompProfile: { type: 'RuntimeDefault' },
      capabilities: { drop: ['ALL'], add: ['NET_ADMIN', 'SYS_ADMIN', 'SYS_PTRACE'] },
    },
  });
});

test('Pods: run on the host’s network, before there is another', (t) => {
  for (const pod of [PODS.agent, PODS.ipamd]) {
    t.is(at(pod, 'hostNetwork'), true);
    t.is(at(pod, 'dnsPolicy'), 'Default');
    t.is(at(pod, 'automountServiceAccountToken'), true);
  }
  t.is(at(PODS.agent, 'hostPID'), true);
  t.deepEqual(at(PODS.agent, 'tolerations'), [{ operator: 'Exists' }]);
  t.is(at(PODS.agent, 'priorityClassName'), 'system-node-critical');
  t.is(at(PODS.ipamd, 'priorityClassName'), 'system-cluster-critical');
  const tolerated = listOf(at(PODS.ipamd, 'tolerations')).map(({ key }) => key);
  for (const taint of ['node.kubernetes.io/not-ready', 'tke.cloud.tencent.com/eni-ip-unavailable'])
    t.true(tolerated.includes(taint), taint);
});

test('agent: every folder of the host that its settings name is mounted under its own name', (t) => {
  const volumes = new Map(listOf(at(PODS.agent, 'volumes')).map((one) => [one['name'], at(one, 'hostPath', 'path')]));
  const mounts = listOf(at(CONTAINERS.agent, 'volumeMounts'));
  t.deepEqual(mounts.map(({ name }) => name).sort(), [...volumes.keys()].sort());
  for (const { name, mountPath } of mounts) t.is(mountPath, volumes.get(name));
  const { stateDir, cniBinDir, cniConfDir, criSockets, kubeletDir } = agentConfig();
  const kubelet = ['device-plugins', 'pod-resources'].map((folder) => join(kubeletDir, folder));
  const wanted = [stateDir, cniBinDir, cniConfDir, ...criSockets.map((socket) => dirname(socket)), ...kubelet];
  t.deepEqual([...volumes.values()].sort(), [...wanted].sort());
});

test('agent: every folder of the host has a comment that says why', (t) => {
  const document = parseDocument(readFileSync(join(KUBERNETES_FOLDER, 'agent/daemonset.yaml'), 'utf8'));
  const volumes = document.getIn(['spec', 'template', 'spec', 'volumes']);
  if (!isSeq(volumes)) return t.fail('no volumes');
  const without = volumes.items.filter((one, index) => {
    const comment = isMap(one) ? (one.commentBefore ?? (index === 0 ? volumes.commentBefore : undefined)) : undefined;
    return comment === undefined || comment === null;
  });
  t.deepEqual(without.map(String), []);
});

test('shutdown: Pods get more time than their processes take', (t) => {
  const DRAIN_MS = 10 * MS;
  t.true(Number(at(PODS.agent, 'terminationGracePeriodSeconds')) * MS >= 2 * DRAIN_MS);
  const { shutdownGraceMs } = ipamdConfig();
  t.true(Number(at(PODS.ipamd, 'terminationGracePeriodSeconds')) * MS >= shutdownGraceMs + DRAIN_MS);
});

test('replicas: one of two may go, in an update as in a drain', (t) => {
  t.is(at(findInBase('Deployment', IPAMD), 'spec', 'replicas'), 2);
  t.deepEqual(at(findInBase('Deployment', IPAMD), 'spec', 'strategy', 'rollingUpdate'), {
    maxSurge: 0,
    maxUnavailable: 1,
  });
  t.is(at(findInBase('PodDisruptionBudget', IPAMD), 'spec', 'maxUnavailable'), 1);
  t.is(at(findInBase('DaemonSet', AGENT), 'spec', 'updateStrategy', 'rollingUpdate', 'maxSurge'), 0);
});

test('credentials: of a Secret that may be missing', (t) => {
  const secret = listOf(at(CONTAINERS.ipamd, 'env')).filter(
    (one) => at(one, 'valueFrom', 'secretKeyRef') !== undefined,
  );
  t.deepEqual(
    secret.map((one) => [one['name'], at(one, 'valueFrom', 'secretKeyRef')]),
    [
      ['TENCENTCLOUD_SECRET_ID', { name: 'tke-eni-ipamd-credentials', key: 'secretId', optional: true }],
      ['TENCENTCLOUD_SECRET_KEY', { name: 'tke-eni-ipamd-credentials', key: 'secretKey', optional: true }],
      ['TENCENTCLOUD_SESSION_TOKEN', { name: 'tke-eni-ipamd-credentials', key: 'token', optional: true }],
    ],
  );
});

test('example: every placeholder is named in a comment', (t) => {
  const text = readFileSync(join(EXAMPLE, 'kustomization.yaml'), 'utf8');
  const kustomization = readKustomization(EXAMPLE);
  const [patch] = objectsOf(String(at(listOf(kustomization['patches'])[0], 'patch')));
  const { TKE_ENI_ENDPOINT, ...literals } = literalsOf('overlays/example', 'tke-eni-ipamd-settings');
  t.is(TKE_ENI_ENDPOINT, '*.internal.tencentcloudapi.com');
  const registries = listOf(kustomization['images']).map(({ newName }) => dirname(String(newName)));
  const data = Object.values(at(patch, 'data') ?? {}).map(String);
  for (const value of new Set([...Object.values(literals), ...data, ...registries]))
    t.true(text.includes(`# REPLACE ${value}: `), value);
});

test('example-hybrid: every placeholder is named in a comment, and components agree about the default network', (t) => {
  const folder = 'overlays/example-hybrid';
  const text = readFileSync(join(KUBERNETES_FOLDER, folder, 'kustomization.yaml'), 'utf8');
  const ipamd = literalsOf(folder, 'tke-eni-ipamd-settings');
  for (const name of ['CLUSTER_CIDR', 'SERVICE_CLUSTER_IP_RANGE', 'MAX_PODS_PER_NODE'])
    t.true(text.includes(`# REPLACE ${ipamd[`TKE_ENI_${name}`]}: `), name);
  const agent = literalsOf(folder, 'tke-eni-agent-settings');
  t.is(agent['TKE_ENI_DEFAULT_NETWORK'], ipamd['TKE_ENI_DEFAULT_NETWORK']);
  const commented = /# {5}- TKE_ENI_DEFAULT_NETWORK=(\S+)/.exec(text)?.[1];
  t.is(commented, ipamd['TKE_ENI_DEFAULT_NETWORK']);
  t.is(listOf(readKustomization(join(KUBERNETES_FOLDER, folder))['configMapGenerator']).length, 2);
});

test('agent-own-node-only: is about the account that the agent has', (t) => {
  const [policy, binding] = readResources(join(KUBERNETES_FOLDER, 'components/agent-own-node-only'));
  t.is(
    at(policy, 'spec', 'matchConditions', 0, 'expression'),
    `request.userInfo.username == 'system:serviceaccount:kube-system:${AGENT}'`,
  );
  t.is(at(binding, 'spec', 'policyName'), at(policy, 'metadata', 'name'));
});
