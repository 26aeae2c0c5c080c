import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import test from 'ava';
import { parse, stringify } from 'yaml';
import { readAgentConfig } from '../../agent/config/agent-config.ts';
import { readIpamdConfig } from '../../ipamd/config/ipamd-config.ts';
import type { JsonObject } from '../../sim/kube-api/object.ts';
import { makeChart } from '../../tools/chart.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { AGENT, IPAMD, listOf, settingsInput } from './base-scene.ts';
import { objectsOf } from './read-manifests.ts';
import { authorityPatch, type KubernetesVersion, renderExample } from './render-example.ts';

/** The real thing: `HELM` names it, or it is on the path. Debian has no package of it. */
const HELM = process.env['HELM'] ?? 'helm';
const place = createTempDir('chart');
test.after.always(() => place.close());
const CHART = makeChart(place.join('tke-eni'));
const MOST_BYTES = 64 << 20;
const TEMPLATE = ['template', 'tke-eni', CHART];
const hasHelm = spawnSync(HELM, ['version', '--short']).status === 0;
const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;
const run = hasHelm && hasKubectl ? test : test.skip;
if (!hasHelm) process.stderr.write('chart not rendered: no helm on the path, and HELM names none\n');

/** In the form of a certificate; nothing here reads it. */
const AUTHORITY = '-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n';

const SETTINGS = {
  clusterId: 'cls-a1b2c3d4',
  region: 'ap-guangzhou',
  endpoint: '*.internal.tencentcloudapi.com',
  subnets: ['subnet-a1b2c3d4', 'subnet-e5f6a7b8'],
  vpcId: 'vpc-a1b2c3d4',
  image: { registry: 'registry.example.com/tke-eni' },
  webhook: { enabled: false },
};

type Case = {
  readonly title: string;
  readonly components: readonly string[];
  readonly values: JsonObject;
  /** Of the overlay besides. */
  readonly patches?: readonly string[];
  /** The overlay that the chart must equal; default: that of the server's version. */
  readonly like?: KubernetesVersion;
  /** With overlays/example-hybrid over it. */
  readonly hybrid?: boolean;
};

/** As overlays/example-hybrid. */
const NETWORK = {
  mode: 'hybrid',
  clusterCidrs: ['192.168.0.0/20'],
  serviceCidr: '192.168.12.0/22',
  maxPodsPerNode: 64,
};

/** A cluster without ENIs: the ConfigMap of the overlay has no subnets. */
/** What the chart gives the cloud controller manager of the values of ipamd. */
const OF_CLOUD = `apiVersion: v1
kind: ConfigMap
metadata:
  name: tke-cloud-controller-manager-settings
  namespace: kube-system
data:
  TKE_ENI_REGION: ap-guangzhou
  TKE_ENI_ENDPOINT: "*.internal.tencentcloudapi.com"
  TKE_ENI_VPC_ID: vpc-a1b2c3d4
`;

const NO_SUBNETS = `apiVersion: v1
kind: ConfigMap
metadata:
  name: tke-eni-ipamd
  namespace: kube-system
data:
  TKE_ENI_IPAMD_SUBNET_ID: ""
`;

const CASES: readonly Case[] = [
  { title: 'of the example overlay', components: [], values: {} },
  {
    title: 'with neither policies nor least privilege, where values say so',
    components: [],
    values: { agent: { leastPrivilege: false, ownNodeOnly: false }, ipamd: { onlyWriterOfStatus: false } },
    like: '1.27',
  },
  {
    title: 'with agents for nodes of Cilium',
    components: ['agent-uplinks'],
    values: { agent: { uplinksOnCiliumNodes: true } },
  },
  { title: 'with monitoring', components: ['monitoring'], values: { monitoring: { enabled: true } } },
  {
    title: 'with the scheduler extender, which makes its certificates',
    components: ['scheduler', 'scheduler-certificates'],
    values: { scheduler: { enabled: true } },
  },
  {
    title: 'with the scheduler extender, and certificates in files',
    components: ['scheduler'],
    values: { scheduler: { enabled: true, tlsSecret: 'tke-eni-ip-scheduler-tls' } },
  },
  {
    title: 'with the webhook, which makes its certificates',
    components: ['webhook', 'webhook-certificates'],
    values: { webhook: { enabled: true } },
  },
  {
    title: 'with the webhook, and a certificate in files',
    components: ['webhook'],
    values: { webhook: { enabled: true, caBundle: AUTHORITY } },
    patches: [authorityPatch(AUTHORITY)],
  },
  {
    title: 'with the cloud controller manager',
    components: ['cloud-controller-manager'],
    values: { cloudControllerManager: { enabled: true } },
    patches: [OF_CLOUD],
  },
  {
    title: 'with load balancers of Services and Ingresses',
    components: ['cloud-controller-manager', 'load-balancers', 'ingresses'],
    // Load balancers are told by the id of the cluster: the chart has it.
    values: { cloudControllerManager: { enabled: true, settings: { 'load-balancers': 'clb', ingress: 'clb' } } },
    patches: [
      `${OF_CLOUD}  TKE_ENI_INGRESS: clb
  TKE_ENI_LOAD_BALANCERS: clb
  TKE_ENI_CLUSTERID: ${SETTINGS.clusterId}
`,
    ],
  },
  { title: 'with the role of viewers', components: ['viewer'], values: { viewer: true } },
  {
    title: 'with agents that serve CiliumNodes',
    components: ['agent-cilium-node'],
    values: { agent: { ciliumNode: true } },
  },
  { title: 'of a hybrid cluster', components: [], values: { network: NETWORK }, hybrid: true },
  {
    title: 'of a GlobalRoute cluster',
    components: [],
    values: { network: { ...NETWORK, mode: 'gr' }, subnets: [] },
    patches: [NO_SUBNETS],
    hybrid: true,
  },
];

/** Versions as servers tell them, with the overlay whose objects they take. */
const SERVERS: readonly (readonly [server: string, overlay: KubernetesVersion])[] = [
  ['v1.27.3', '1.27'],
  ['v1.29.15-tke.1', '1.27'],
  ['v1.30.0-tke.4', '1.30'],
  ['v1.30.0', '1.30'],
  ['v1.34.1', '1.30'],
];

/** Of these servers every case is rendered; of the others the first. */
const WITH_ALL_CASES = ['v1.27.3', 'v1.34.1'];

for (const [server, version] of SERVERS) {
  const cases = WITH_ALL_CASES.includes(server) ? CASES : CASES.slice(0, 1);
  for (const { title, components, values, patches = [], like = version, hybrid = false } of cases) {
    run(`chart: renders the objects of kustomize for ${server}, ${title}`, (t) => {
      const ours = byName(helm({ ...SETTINGS, ...values }, { server }));
      const theirs = byName(renderExample(components, { version: like, patches, hybrid }));
      t.deepEqual([...ours.keys()].sort(), [...theirs.keys()].sort());
      for (const [name, object] of theirs) t.deepEqual(ours.get(name), object, name);
    });
  }
}

run('chart: installs on Kubernetes 1.27 and on no older one', (t) => {
  const render = (server: string) =>
    spawnSync(HELM, [...TEMPLATE, '--kube-version', server, '-f', '-'], {
      input: stringify(SETTINGS),
      encoding: 'utf8',
    });
  t.is(render('v1.27.0').status, 0);
  const { status, stderr } = render('v1.26.9');
  t.not(status, 0);
  t.regex(stderr, /1\.27/);
});

run('chart: has the policy alone, or least privilege alone, where values say so', (t) => {
  const render = (agent: JsonObject) => byName(helm({ ...SETTINGS, agent }, { server: 'v1.34.1' }));
  const isPrivileged = (objects: ReadonlyMap<string, JsonObject>) =>
    at(
      objects.get('DaemonSet tke-eni-agent'),
      'spec',
      'template',
      'spec',
      'containers',
      0,
      'securityContext',
      'privileged',
    );
  const policy = 'ValidatingAdmissionPolicy tke-eni-agent-own-node-only';
  const policyAlone = render({ leastPrivilege: false });
  t.true(policyAlone.has(policy));
  t.is(isPrivileged(policyAlone), true);
  const leastAlone = render({ ownNodeOnly: false });
  t.false(leastAlone.has(policy));
  t.is(isPrivileged(leastAlone), false);
});

run('chart: has the policy of the status where values say so', (t) => {
  for (const onlyWriterOfStatus of [true, false]) {
    const objects = byName(helm({ ...SETTINGS, ipamd: { onlyWriterOfStatus } }, { server: 'v1.34.1' }));
    t.is(objects.has('ValidatingAdmissionPolicy tke-eni-only-ipamd-writes-status'), onlyWriterOfStatus);
    t.is(objects.has('ValidatingAdmissionPolicyBinding tke-eni-only-ipamd-writes-status'), onlyWriterOfStatus);
  }
});

run('chart: puts each value where it belongs', (t) => {
  const values = {
    ...SETTINGS,
    credentialsSecret: 'my-key',
    image: { registry: 'registry.example.com/tke-eni/', tag: 'v9', pullPolicy: 'Always', pullSecrets: ['pull'] },
    agent: { maxUnavailable: 3, resources: { limits: { memory: '1Gi' } } },
    ipamd: { replicas: 3 },
  };
  const ours = byName(helm(values));
  const agent = ours.get('DaemonSet tke-eni-agent');
  t.is(at(agent, 'spec', 'updateStrategy', 'rollingUpdate', 'maxUnavailable'), 3);
  const pod = at(agent, 'spec', 'template', 'spec');
  t.deepEqual(at(pod, 'imagePullSecrets'), [{ name: 'pull' }]);
  t.is(at(pod, 'containers', 0, 'image'), 'registry.example.com/tke-eni/tke-eni-agent:v9');
  t.is(at(pod, 'containers', 0, 'imagePullPolicy'), 'Always');
  t.is(at(pod, 'containers', 0, 'resources', 'limits', 'memory'), '1Gi');
  t.is(at(pod, 'containers', 0, 'resources', 'requests', 'memory'), '128Mi');
  const ipamd = ours.get('Deployment tke-eni-ipamd');
  t.is(at(ipamd, 'spec', 'replicas'), 3);
  const keys = at(ipamd, 'spec', 'template', 'spec', 'containers', 0, 'env') as readonly JsonObject[];
  const secrets = keys.map((one) => at(one, 'valueFrom', 'secretKeyRef', 'name')).filter((name) => name !== undefined);
  t.deepEqual(secrets, ['my-key', 'my-key', 'my-key']);
});

run(
  'chart: a Role and its binding in each namespace that has certificates of Ingresses, and the class where it is asked for',
  (t) => {
    const secrets = [
      { namespace: 'shop', names: ['shop-tls', 'api-tls'] },
      { namespace: 'blog', names: ['blog-tls'] },
      { namespace: 'shop', names: ['api-tls', 'old-tls'] },
    ];
    const render = (settings: JsonObject) => {
      const values = { enabled: true, ingress: { class: false, secrets }, settings };
      return helm({ ...SETTINGS, cloudControllerManager: values }, { namespace: 'network' });
    };
    const objects = render({ 'load-balancers': 'clb', ingress: 'clb' });
    const inNamespace = (kind: string, namespace: string) =>
      objects.find((one) => one['kind'] === kind && at(one, 'metadata', 'namespace') === namespace);
    const rules = (namespace: string) => at(inNamespace('Role', namespace), 'rules');
    const rule = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] };
    t.deepEqual(rules('shop'), [{ ...rule, resourceNames: ['shop-tls', 'api-tls', 'old-tls'] }]);
    t.deepEqual(rules('blog'), [{ ...rule, resourceNames: ['blog-tls'] }]);
    const binding = inNamespace('RoleBinding', 'shop');
    const subject = { kind: 'ServiceAccount', name: 'tke-cloud-controller-manager', namespace: 'network' };
    t.deepEqual(at(binding, 'subjects'), [subject]);
    t.is(at(binding, 'roleRef', 'name'), 'tke-eni-ingress-certificates');
    const ours = byName(objects);
    t.false(ours.has('IngressClass qcloud'));
    t.true(ours.has('ClusterRole tke-eni-ingresses') && ours.has('ClusterRole tke-eni-load-balancers'));
    const without = byName(render({ 'load-balancers': 'clb' }));
    t.deepEqual(
      [...without.keys()].filter((name) => name.includes('ingress')),
      [],
    );
  },
);

/** Values of the webhook and the cloud controller manager, the server, and the settings of the entry of load balancers; undefined: no entry. */
const GATES: readonly (readonly [
  title: string,
  values: JsonObject,
  server: string,
  settings: JsonObject | undefined,
])[] = [
  ['no cloud controller manager', {}, 'v1.34.1', undefined],
  ['one without load balancers', { cloudControllerManager: { enabled: true } }, 'v1.34.1', undefined],
  ['load balancers', withBalancers({}), 'v1.34.1', gateSettings('true', undefined)],
  [
    'load balancers of a class',
    withBalancers({ 'load-balancer-class': 'a.com/clb' }),
    'v1.30.0',
    gateSettings('true', 'a.com/clb'),
  ],
  ['load balancers, and a server without the sleep', withBalancers({}), 'v1.29.9', gateSettings('false', undefined)],
  [
    'load balancers of another installation',
    { webhook: { loadBalancers: { enabled: true, preStopSleep: false } } },
    'v1.34.1',
    gateSettings('false', undefined),
  ],
  [
    'load balancers, and no gates',
    { ...withBalancers({}), webhook: { loadBalancers: { enabled: false } } },
    'v1.34.1',
    undefined,
  ],
];

function withBalancers(settings: JsonObject): JsonObject {
  return { cloudControllerManager: { enabled: true, settings: { 'load-balancers': 'clb', ...settings } } };
}

function gateSettings(sleep: string, served: string | undefined): JsonObject {
  const own = { TKE_ENI_READINESS_GATES: 'true', TKE_ENI_PRE_STOP_SLEEP: sleep };
  return served === undefined ? own : { ...own, TKE_ENI_LOAD_BALANCER_CLASS: served };
}

for (const [title, values, server, settings] of GATES) {
  run(`chart: has the webhook's entry of load balancers as kustomize has it, or not, with ${title}`, (t) => {
    const webhook = { enabled: true, caBundle: AUTHORITY, ...((values['webhook'] as JsonObject | undefined) ?? {}) };
    const ours = byName(helm({ ...SETTINGS, ...values, webhook }, { server }));
    const patches = [authorityPatch(AUTHORITY)];
    const theirs = byName(
      renderExample(['webhook', ...(settings === undefined ? [] : ['load-balancer-gate'])], { patches }),
    );
    const [hooks, expected] = [ours, theirs].map((all) =>
      listOf(at(all.get('MutatingWebhookConfiguration tke-eni-ip-webhook'), 'webhooks')).map((hook) => ({
        ...hook,
        clientConfig: at(hook, 'clientConfig', 'service'),
      })),
    );
    t.deepEqual(hooks, expected);
    for (const kind of ['ClusterRole', 'ClusterRoleBinding']) {
      const name = `${kind} tke-eni-ip-webhook-gate`;
      t.deepEqual(ours.get(name), theirs.get(name));
      t.is(ours.has(name), settings !== undefined);
    }
    const data = at(ours.get('ConfigMap tke-eni-ip-webhook-settings'), 'data');
    t.deepEqual(data, { TKE_ENI_LOG_LEVEL: 'info', ...settings });
    const args = at(theirs.get('Deployment tke-eni-ip-webhook'), 'spec', 'template', 'spec', 'containers', 0, 'args');
    t.is((args as readonly string[]).includes('--readiness-gates=true'), settings !== undefined);
  });
}

const INJECTED = { 'cert-manager.io/inject-ca-from': 'kube-system/tke-eni-ip-webhook' };

/** The webhook's values, and whether it makes its certificates. */
const WEBHOOKS: readonly (readonly [title: string, values: JsonObject, makes: boolean])[] = [
  ['nothing', {}, true],
  ['an annotation that sets none', { annotations: { team: 'network' } }, true],
  ['an authority', { caBundle: AUTHORITY }, false],
  ['the annotation of cert-manager', { annotations: INJECTED }, false],
];

for (const [title, values, makes] of WEBHOOKS) {
  run(`chart: the webhook ${makes ? 'makes its certificates' : 'reads certificates from files'} with ${title}`, (t) => {
    const { webhook: _, ...others } = SETTINGS;
    const all = byName(helm({ ...others, webhook: values }));
    const pod = at(all.get('Deployment tke-eni-ip-webhook'), 'spec', 'template', 'spec');
    const args = at(pod, 'containers', 0, 'args') as readonly string[];
    t.is(args.includes('--tls-secret=tke-eni-ip-webhook-certificates'), makes);
    t.is(at(pod, 'volumes') === undefined, makes);
    t.is(all.has('Secret tke-eni-ip-webhook-certificates'), makes);
  });
}

/** Values of network, and what is wrong with them. */
const NETWORKS: readonly (readonly [title: string, values: JsonObject, faults: readonly RegExp[]])[] = [
  [
    'networks without a mode',
    { network: { clusterCidrs: ['192.168.0.0/20'] } },
    [/network\.clusterCidrs: expected nothing, as network\.mode is vpc-cni, got \["192\.168\.0\.0\/20"\]/],
  ],
  [
    'subnets in mode gr, and another default',
    { network: { ...NETWORK, mode: 'gr', default: 'tke-route-eni' } },
    [/subnets: expected none, as network\.mode gr has no ENIs/, /network\.default: expected tke-bridge/],
  ],
  ['no subnets in mode hybrid', { network: NETWORK, subnets: [] }, [/at '\/subnets': minItems: got 0, want 1/]],
  [
    'no networks, and two sizes',
    { network: { mode: 'hybrid', maxPodsPerNode: 64, nodeMaskSize: 26 } },
    [
      /network\.clusterCidrs: expected the networks/,
      /network\.serviceCidr: expected the range/,
      /network\.nodeMaskSize/,
    ],
  ],
  [
    'settings that network has',
    {
      network: NETWORK,
      agent: { settings: { 'default-network': 'tke-bridge' } },
      ipamd: { settings: { 'gr-routes': 'none' } },
      webhook: { settings: { 'default-network': 'tke-bridge' } },
    },
    [
      /agent\.settings\.default-network: exp/,
      /ipamd\.settings\.gr-routes: exp/,
      /webhook\.settings\.default-network: exp/,
    ],
  ],
  [
    'routes by a cloud controller manager that is not installed',
    { network: { ...NETWORK, routes: 'ccm' } },
    [/network\.routes: expected ipamd or none, as cloudControllerManager\.enabled is false/],
  ],
  [
    'an unknown mode',
    { network: { mode: 'eni' } },
    [/at '\/network\/mode': value must be one of 'vpc-cni', 'gr', 'hybrid'/],
  ],
];

for (const [title, values, faults] of NETWORKS) {
  run(`chart: refuses ${title}, all of it in one error`, (t) => {
    const args = [...TEMPLATE, '--kube-version', 'v1.34.1', '-f', '-'];
    const input = stringify({ ...SETTINGS, ...values });
    const { status, stderr } = spawnSync(HELM, args, { input, encoding: 'utf8', maxBuffer: MOST_BYTES });
    t.not(status, 0);
    t.is(stderr.match(/: expected|^- at /gm)?.length, faults.length, stderr);
    for (const fault of faults) t.regex(stderr, fault);
  });
}

run('chart: gives the default network to agent, ipamd and webhook alike, and rolls all three', (t) => {
  const webhook = { enabled: true, caBundle: AUTHORITY };
  const rendered = (network: JsonObject) => helm({ ...SETTINGS, webhook, network });
  const render = (network: JsonObject) => byName(rendered(network));
  const names = ['tke-eni-agent', 'tke-eni-ipamd', 'tke-eni-ip-webhook'];
  const defaults = (objects: ReadonlyMap<string, JsonObject>) =>
    names.map((name) => at(objects.get(`ConfigMap ${name}-settings`), 'data', 'TKE_ENI_DEFAULT_NETWORK'));
  const before = render({ mode: 'vpc-cni' });
  t.deepEqual(defaults(before), [undefined, undefined, undefined]);
  const bridge = render(NETWORK);
  t.deepEqual(defaults(bridge), ['tke-bridge', 'tke-bridge', 'tke-bridge']);
  const routeEni = render({ ...NETWORK, default: 'tke-route-eni' });
  t.deepEqual(defaults(routeEni), ['tke-route-eni', 'tke-route-eni', 'tke-route-eni']);
  const networks = [{ mode: 'vpc-cni' }, NETWORK, { ...NETWORK, default: 'tke-route-eni' }];
  const settings = networks.map((network) => settingsOfPods(rendered(network)));
  for (const name of names) t.is(new Set(settings.map((of) => of[name])).size, 3, name);
});

run('chart: its programs take the settings of each mode', (t) => {
  for (const network of [NETWORK, { ...NETWORK, default: 'tke-route-eni', routes: 'none', allocateNodeCidrs: false }]) {
    const ours = byName(helm({ ...SETTINGS, network }));
    const env = (name: string) => at(ours.get(`ConfigMap ${name}-settings`), 'data') as Record<string, string>;
    const container = (kind: string, name: string) =>
      at(ours.get(`${kind} ${name}`), 'spec', 'template', 'spec', 'containers', 0);
    const ipamd = readIpamdConfig(settingsInput(container('Deployment', IPAMD), env(IPAMD)));
    const agent = readAgentConfig(settingsInput(container('DaemonSet', AGENT), { ...env(AGENT), NODE_NAME: 'n1' }));
    if (ipamd.kind !== 'run' || agent.kind !== 'run') return t.fail('not to be run');
    t.deepEqual([agent.config.defaultNetwork], [ipamd.config.defaultNetwork]);
    t.deepEqual(ipamd.config.clusterCidrs, ['192.168.0.0/20']);
    t.is(ipamd.config.serviceCidr, '192.168.12.0/22');
    t.is(ipamd.config.maxPodsPerNode, 64);
    t.is(ipamd.config.allocateNodeCidrs, network === NETWORK);
    t.is(ipamd.config.grRoutes, network === NETWORK ? 'ipamd' : 'none');
  }
});

run('chart: takes the values of docs/cilium.md, and its agent takes what comes of them', (t) => {
  const blocks = readFileSync('docs/cilium.md', 'utf8').matchAll(/^```yaml\n(agent:\n[\s\S]*?)^```/gm);
  const configs = [...blocks].map(([, text = '']) => {
    const ours = byName(helm({ ...SETTINGS, ...(parse(text) as object) }));
    const env = at(ours.get(`ConfigMap ${AGENT}-settings`), 'data') as Record<string, string>;
    const container = at(ours.get(`DaemonSet ${AGENT}`), 'spec', 'template', 'spec', 'containers', 0);
    const outcome = readAgentConfig(settingsInput(container, { ...env, NODE_NAME: 'n1' }));
    return outcome.kind === 'run' ? outcome.config : undefined;
  });
  t.like(configs[0], { supplySource: 'cluster', chainedPlugins: [{ type: 'cilium-cni' }] });
  t.like(configs[1], { supplySource: 'cilium-node', reserveNodeAddresses: true });
  t.is(configs.length, 2);
});

run('chart: refuses a setting that its program would refuse, and takes one at its bound', (t) => {
  const render = (text: string) =>
    spawnSync(HELM, [...TEMPLATE, '--kube-version', 'v1.34.1', '-f', '-'], {
      input: stringify({ ...SETTINGS, ipamd: { settings: { 'claim-expired-duration': text } } }),
      encoding: 'utf8',
    });
  const refused = render('1s');
  t.not(refused.status, 0);
  t.regex(refused.stderr, /claim-expired-duration/);
  t.is(render('300s').status, 0);
});

run('chart: labels what the Prometheus operator selects, and nothing else', (t) => {
  const labels = { release: 'kube-prometheus-stack', team: '007' };
  const rendered = helm({ ...SETTINGS, monitoring: { enabled: true, labels } });
  const labelled = rendered.filter((object) => at(object, 'metadata', 'labels', 'team') === '007');
  t.deepEqual(
    labelled.map(({ kind }) => kind),
    ['PodMonitor', 'PodMonitor', 'PodMonitor', 'PodMonitor', 'PodMonitor', 'PrometheusRule'],
  );
  for (const object of labelled) {
    t.is(at(object, 'metadata', 'labels', 'release'), 'kube-prometheus-stack');
    t.is(at(object, 'metadata', 'labels', 'app.kubernetes.io/name'), 'tke-eni');
  }
});

run('chart: renders into another namespace, and nothing into kube-system', (t) => {
  const values = { ...SETTINGS, monitoring: { enabled: true }, agent: { ownNodeOnly: true } };
  const rendered = stringify(
    helm(values, { namespace: 'network' }).filter(({ kind }) => kind !== 'CustomResourceDefinition'),
  );
  t.deepEqual(
    rendered.match(/.*kube-system.*/g)?.filter((line) => !/runbook|#|description|kubectl/.test(line)) ?? [],
    [],
  );
});

run('chart: rolls the Pods whose settings change, and no others', (t) => {
  const settings = (values: JsonObject) => settingsOfPods(helm({ ...SETTINGS, ...values }));
  const before = settings({});
  t.regex(String(before[AGENT]), /^tke-eni-agent-settings-[0-9a-f]{10}$/);
  const otherAgent = settings({ agent: { settings: { 'rule-mode': 'compact' } } });
  t.not(otherAgent[AGENT], before[AGENT]);
  t.is(otherAgent[IPAMD], before[IPAMD]);
  const otherIpamd = settings({ region: 'ap-shanghai' });
  t.is(otherIpamd[AGENT], before[AGENT]);
  t.not(otherIpamd[IPAMD], before[IPAMD]);
  t.deepEqual(settings({ subnets: ['subnet-other'] }), before);
});

run('chart: settings cannot change, and the Pods of every component name those that are there', (t) => {
  const { webhook: _, ...others } = SETTINGS;
  const objects = helm({ ...others, scheduler: { enabled: true }, cloudControllerManager: { enabled: true } });
  const made = objects.filter(({ kind, immutable }) => kind === 'ConfigMap' && immutable === true);
  const named = Object.values(settingsOfPods(objects));
  t.is(named.length, 5);
  t.deepEqual(made.map((object) => at(object, 'metadata', 'name')).toSorted(), named.toSorted());
});

run(
  'chart: the folder of the repository, without what is made, is refused by one error that names the command',
  (t) => {
    const byHand = new URL('../../conf/helm/tke-eni', import.meta.url).pathname;
    const { status, stderr } = spawnSync(HELM, ['template', 'tke-eni', byHand, '--kube-version', 'v1.34.1'], {
      encoding: 'utf8',
    });
    t.not(status, 0);
    t.regex(stderr, /lacks the files that are made of the manifests: run `make chart`.* give helm dist\/helm\/tke-eni/);
  },
);

run('chart: writes settings as the variables that programs read', (t) => {
  const settings = {
    workers: 10_000,
    'record-pods': false,
    'sync-interval': '10m',
    'enable-security-groups': true,
    'security-groups': ['sg-1', 'sg-2'],
  };
  const rendered = byName(helm({ ...SETTINGS, region: '', endpoint: '', ipamd: { settings } }));
  t.deepEqual((rendered.get('ConfigMap tke-eni-ipamd-settings') as JsonObject)['data'], {
    TKE_ENI_CLUSTERID: 'cls-a1b2c3d4',
    TKE_ENI_ENABLE_SECURITY_GROUPS: 'true',
    TKE_ENI_LOG_LEVEL: 'info',
    TKE_ENI_RECORD_PODS: 'false',
    TKE_ENI_SECURITY_GROUPS: 'sg-1,sg-2',
    TKE_ENI_SYNC_INTERVAL: '10m',
    TKE_ENI_WORKERS: '10000',
  });
});

run('chart: passes helm lint --strict, and is refused without a cluster id and subnets', (t) => {
  t.regex(
    execFileSync(HELM, ['lint', '--strict', CHART, '-f', '-'], { input: stringify(SETTINGS), encoding: 'utf8' }),
    /1 chart\(s\) linted, 0 chart\(s\) failed/,
  );
  const refused = spawnSync(HELM, ['template', 'tke-eni', CHART], { encoding: 'utf8' });
  t.not(refused.status, 0);
  t.regex(refused.stderr, /clusterId/);
  t.regex(refused.stderr, /subnets/);
});

function helm(
  values: JsonObject,
  { namespace = 'kube-system', server = 'v1.34.1' }: { readonly namespace?: string; readonly server?: string } = {},
): readonly JsonObject[] {
  const args = [...TEMPLATE, '--include-crds', '--namespace', namespace, '--kube-version', server, '-f', '-'];
  const text = execFileSync(HELM, args, { input: stringify(values), encoding: 'utf8', maxBuffer: MOST_BYTES });
  return objectsOf(text);
}

/**
 * Kustomize and the chart roll Pods by a hash in the name of a ConfigMap, each by a hash of its own, which is taken off here.
 */
function byName(objects: readonly JsonObject[]): ReadonlyMap<string, JsonObject> {
  const plain = JSON.parse(
    JSON.stringify(objects, (_key, value: unknown) => {
      return typeof value === 'string'
        ? value.replace(
            /^(tke-(?:eni-(?:agent|ipamd|ip-scheduler|ip-webhook)|cloud-controller-manager)-settings)-[0-9a-z]{10}$/,
            '$1',
          )
        : value;
    }),
  ) as readonly JsonObject[];
  return new Map(plain.map((object) => [`${object['kind']} ${(object['metadata'] as JsonObject)['name']}`, object]));
}

/** The ConfigMap of settings that the Pods of each workload name, by the workload's name. */
function settingsOfPods(objects: readonly JsonObject[]): Readonly<Record<string, unknown>> {
  const workloads = objects.filter(({ kind }) => kind === 'DaemonSet' || kind === 'Deployment');
  const container = (object: JsonObject) => at(object, 'spec', 'template', 'spec', 'containers', 0);
  return Object.fromEntries(
    workloads.map((object) => [
      String(at(object, 'metadata', 'name')),
      at(container(object), 'envFrom', 0, 'configMapRef', 'name'),
    ]),
  );
}

run('chart: tells ipamd and the cloud controller manager alike who keeps the routes', (t) => {
  const cloudControllerManager = { enabled: true };
  const objects = byName(helm({ ...SETTINGS, cloudControllerManager, network: { ...NETWORK, routes: 'ccm' } }));
  const of = (name: string) => at(objects.get(`ConfigMap ${name}-settings`), 'data') as Record<string, string>;
  t.is(of(IPAMD)['TKE_ENI_GR_ROUTES'], 'ccm');
  const { TKE_ENI_ROUTES, TKE_ENI_CLUSTER_CIDR, TKE_ENI_CLUSTERID } = of('tke-cloud-controller-manager');
  t.deepEqual([TKE_ENI_ROUTES, TKE_ENI_CLUSTER_CIDR], ['global', '192.168.0.0/20']);
  t.is(TKE_ENI_CLUSTERID, of(IPAMD)['TKE_ENI_CLUSTERID']);
});
