import { spawnSync } from 'node:child_process';
import test from 'ava';
import { stringify } from 'yaml';
import { AGENT_PROGRAM, readAgentConfig } from '../../agent/config/agent-config.ts';
import { readCcmConfig } from '../../cloud-controller-manager/config/ccm-config.ts';
import { CCM_PROGRAM } from '../../cloud-controller-manager/config/options.ts';
import { readIpamdConfig } from '../../ipamd/config/ipamd-config.ts';
import { IPAMD_PROGRAM } from '../../ipamd/config/options.ts';
import { ConfigError, type Fault } from '../../runtime/decode.ts';
import type { SettingsInput } from '../../runtime/settings/read-settings.ts';
import { readSchedulerConfig, SCHEDULER_PROGRAM } from '../../scheduler/config/options.ts';
import type { JsonObject } from '../../sim/kube-api/object.ts';
import { makeChart } from '../../tools/chart.ts';
import { readWebhookConfig, WEBHOOK_PROGRAM } from '../../webhook/options.ts';
import { createTempDir } from '../support/temp-dir.ts';

// Combinations of settings that a program refuses when it starts, and the chart refuses before it is installed: each is tried in both.

const HELM = process.env['HELM'] ?? 'helm';
const hasHelm = spawnSync(HELM, ['version', '--short']).status === 0;
const place = createTempDir('combinations');
test.after.always(() => place.close());
const CHART = makeChart(place.join('tke-eni'));

const AGENT_ARGV = ['--supply-source=cluster', '--node-name=n1', '--metrics-address=127.0.0.1:61680'];
/** What the manifests give each program besides, and the values that switch it on. */
const COMPONENTS = {
  agent: { program: AGENT_PROGRAM, read: readAgentConfig, argv: AGENT_ARGV },
  ipamd: { program: IPAMD_PROGRAM, read: readIpamdConfig, argv: ['--clusterid=cls-a1b2c3d4'] },
  scheduler: {
    program: SCHEDULER_PROGRAM,
    read: readSchedulerConfig,
    argv: ['--listen-address=0.0.0.0:1', '--tls-cert-file=/c', '--tls-private-key-file=/k'],
  },
  webhook: {
    program: WEBHOOK_PROGRAM,
    read: readWebhookConfig,
    argv: ['--tls-cert-file=/c', '--tls-private-key-file=/k'],
  },
  cloudControllerManager: { program: CCM_PROGRAM, read: readCcmConfig, argv: [] },
} as const;
type Component = keyof typeof COMPONENTS;

const VALUES = {
  clusterId: 'cls-a1b2c3d4',
  subnets: ['subnet-a1b2c3d4'],
  scheduler: { enabled: true, tlsSecret: 'own' },
  webhook: { caBundle: '-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n' },
  cloudControllerManager: { enabled: true },
};
/** Of certificates that the webhook makes. */
const MADE = { values: { caBundle: '' }, argv: ['--tls-secret=made'] };

type Case = {
  readonly of: Component;
  readonly settings: JsonObject;
  /** Flags that both refuse; none: both take it. */
  readonly refused: readonly string[];
  /** The chart gives what is missing. */
  readonly isGivenByChart?: true;
  /** Values of the component besides, and what they come to as flags. */
  readonly values?: JsonObject;
  readonly argv?: readonly string[];
};

const BLOCKS = { 'allocate-node-cidrs': true, 'gr-routes': 'none' } as const;
const NETWORK = { ...BLOCKS, 'cluster-cidr': '192.168.0.0/20' } as const;
const TABLE = { routes: 'table', 'cluster-cidr': '192.168.0.0/20', clusterid: 'cls-a1b2c3d4' } as const;

const TAINTS = Array.from({ length: 32 }, (_, at) => `example.com/${at}`);

const CASES: readonly Case[] = [
  { of: 'agent', settings: { 'force-reuse-after': '6s', 'add-wait': '5s' }, refused: ['force-reuse-after'] },
  { of: 'agent', settings: { 'force-reuse-after': '5s', 'add-wait': '5000ms' }, refused: [] },
  { of: 'agent', settings: { 'reserve-node-addresses': true }, refused: ['reserve-node-addresses'] },
  {
    of: 'agent',
    settings: { role: 'uplinks', 'default-network': 'tke-bridge' },
    ...{ values: { ciliumNode: true }, argv: ['--supply-source=cilium-node'] },
    refused: ['role', 'default-network'],
  },
  {
    of: 'agent',
    settings: { role: 'uplinks', 'rule-mode': 'compact', egress: 'node', 'default-network': 'tke-bridge' },
    refused: ['rule-mode', 'egress', 'default-network'],
  },
  {
    of: 'agent',
    settings: { 'chained-plugins': 'tuning,cilium-cni', 'default-network': 'tke-bridge' },
    refused: ['default-network'],
  },
  {
    of: 'agent',
    settings: { 'chained-plugins': '[{"mtu": 1400, "type": "cilium-cni"}]', 'default-network': 'tke-bridge' },
    refused: ['default-network'],
  },
  {
    of: 'agent',
    settings: { 'chained-plugins': ' ["tuning", "cilium-cni"]', 'default-network': 'tke-bridge' },
    refused: ['default-network'],
  },
  ...[
    'tuning',
    'tuning,my-cilium-cni',
    '[]',
    // What another plugin has in its configuration is not chained.
    '[{"type":"x","waitFor":["a","cilium-cni"]}, "tuning"]',
    '[{"type":"x","delegate":{"type":"cilium-cni"}}]',
  ].map((plugins) => ({
    ...({ of: 'agent', refused: [] } as const),
    settings: { 'chained-plugins': plugins, 'default-network': 'tke-bridge' },
  })),
  { of: 'agent', settings: { 'listen-address': '127.0.0.1:61680' }, refused: ['listen-address'] },
  { of: 'agent', settings: { 'listen-address': '127.0.0.1:61677' }, refused: [] },
  { of: 'agent', settings: { 'kube-client-qps': 50, 'kube-client-burst': 49 }, refused: ['kube-client-burst'] },
  { of: 'agent', settings: { 'kube-client-qps': 50, 'kube-client-burst': 50 }, refused: [] },
  { of: 'ipamd', settings: { 'ip-min-warm-target': 50, 'ip-max-warm-target': 8 }, refused: ['ip-min-warm-target'] },
  { of: 'ipamd', settings: { 'ip-min-warm-target': 200 }, refused: ['ip-min-warm-target'] },
  { of: 'ipamd', settings: { 'ip-min-warm-target': 8, 'ip-max-warm-target': 8 }, refused: [] },
  { of: 'ipamd', settings: { 'eni-min-warm-target': 9, 'eni-max-warm-target': 1 }, refused: ['eni-min-warm-target'] },
  { of: 'ipamd', settings: { 'max-pods-per-node': 7 }, refused: ['max-pods-per-node'] },
  { of: 'ipamd', settings: { 'max-pods-per-node': 8 }, refused: [] },
  { of: 'ipamd', settings: { credentials: 'file' }, refused: ['credentials-file'] },
  { of: 'ipamd', settings: { credentials: 'file', 'credentials-file': '/key' }, refused: [] },
  { of: 'ipamd', settings: { 'gr-routes': 'ipamd' }, refused: ['cluster-cidr'] },
  {
    of: 'ipamd',
    settings: { 'leader-elect-lease': '20s', 'leader-elect-renew': '14s', 'leader-elect-retry': '2s' },
    refused: ['leader-elect-renew'],
  },
  {
    of: 'ipamd',
    settings: { 'leader-elect-lease': '20s', 'leader-elect-renew': '13s', 'leader-elect-retry': '2s' },
    refused: [],
  },
  { of: 'ipamd', settings: { 'kube-client-qps': 500, 'kube-client-burst': 100 }, refused: ['kube-client-burst'] },
  { of: 'ipamd', settings: { 'security-groups': ['sg-a1b2c3d4'] }, refused: ['enable-security-groups'] },
  { of: 'ipamd', settings: { 'security-groups': ['sg-a1b2c3d4'], 'enable-security-groups': true }, refused: [] },
  { of: 'ipamd', settings: { 'security-groups': ',' }, refused: [] },
  { of: 'ipamd', settings: { 'security-groups': ['', 'sg-a1b2c3d4'] }, refused: ['enable-security-groups'] },
  { of: 'ipamd', settings: { 'gr-routes': 'ipamd', 'cluster-cidr': ',' }, refused: ['cluster-cidr'] },
  ...[
    'node.kubernetes.io/not-ready:NoSchedule',
    'node-role.kubernetes.io/control-plane',
    'node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule',
    'kubernetes.io/x',
    'a.k8s.io/x',
    'ToBeDeletedByClusterAutoscaler',
    'DeletionCandidateOfClusterAutoscaler=1:PreferNoSchedule',
    'status-taint.cluster-autoscaler.kubernetes.io/x',
    'cluster-autoscaler.kubernetes.io/x',
    'karpenter.sh/unregistered:NoExecute',
  ].map((taint) => ({
    ...({ of: 'ipamd', refused: ['startup-taints'] } as const),
    settings: { 'startup-taints': ['example.com/boot', taint] },
  })),
  {
    of: 'ipamd',
    settings: {
      'startup-taints': [
        ...['startup-taint.cluster-autoscaler.kubernetes.io/x', 'ignore-taint.cluster-autoscaler.kubernetes.io/x=y'],
        ...['tke.cloud.tencent.com/eni-ip-unavailable', 'notkubernetes.io/x', 'ToBeDeletedByClusterAutoscalers'],
        ...['example.com/a=kubernetes.io', 'notkarpenter.sh/x'],
      ],
    },
    refused: [],
  },
  { of: 'ipamd', settings: { 'startup-taints': `,${TAINTS.join(',,')}` }, refused: [] },
  { of: 'ipamd', settings: { 'startup-taints': [...TAINTS, 'example.com/32'] }, refused: ['startup-taints'] },
  // Networks.
  { of: 'ipamd', settings: { ...BLOCKS, 'cluster-cidr': ',' }, refused: ['cluster-cidr'] },
  {
    of: 'ipamd',
    settings: { ...BLOCKS, 'service-cluster-ip-range': '192.168.0.0/16' },
    refused: ['cluster-cidr'],
  },
  { of: 'ipamd', settings: BLOCKS, refused: ['cluster-cidr'] },
  { of: 'ipamd', settings: NETWORK, refused: [] },
  { of: 'ipamd', settings: { ...NETWORK, 'cluster-cidr': '10.8.0.0/16,10.8.9.0/24' }, refused: ['cluster-cidr'] },
  { of: 'ipamd', settings: { ...NETWORK, 'cluster-cidr': '10.8.0.0/16,10.9.0.0/24' }, refused: [] },
  { of: 'ipamd', settings: { ...NETWORK, 'max-pods-per-node': 8192 }, refused: ['node-cidr-mask-size'] },
  { of: 'ipamd', settings: { ...NETWORK, 'node-cidr-mask-size': 19 }, refused: ['node-cidr-mask-size'] },
  {
    of: 'ipamd',
    settings: { ...NETWORK, 'cluster-cidr': '10.0.0.0/8', 'node-cidr-mask-size': 25 },
    refused: ['node-cidr-mask-size'],
  },
  { of: 'ipamd', settings: { ...NETWORK, 'cluster-cidr': '10.0.0.0/8', 'node-cidr-mask-size': 24 }, refused: [] },
  {
    of: 'ipamd',
    settings: { 'max-pods-per-node': 64, 'node-cidr-mask-size': 27 },
    refused: ['max-pods-per-node'],
  },
  { of: 'ipamd', settings: { 'max-pods-per-node': 64, 'node-cidr-mask-size': 26 }, refused: [] },
  {
    of: 'ipamd',
    settings: { ...NETWORK, 'service-cluster-ip-range': '192.168.0.0/16' },
    refused: ['service-cluster-ip-range'],
  },
  {
    of: 'ipamd',
    settings: { ...NETWORK, 'service-cluster-ip-range': '192.168.4.0/22', 'node-cidr-mask-size': 20 },
    refused: ['service-cluster-ip-range'],
  },
  { of: 'ipamd', settings: { ...NETWORK, 'service-cluster-ip-range': '192.168.12.0/22' }, refused: [] },
  {
    of: 'ipamd',
    settings: {
      ...NETWORK,
      'cluster-cidr': '192.168.0.0/20,10.9.0.0/24',
      'service-cluster-ip-range': '192.168.0.0/16',
    },
    refused: [],
  },
  { of: 'scheduler', settings: { 'client-ca-file': '' }, refused: ['client-ca-file'] },
  { of: 'scheduler', settings: { 'client-ca-file': '', 'client-allowed-names': ',' }, refused: ['client-ca-file'] },
  { of: 'scheduler', settings: { 'tls-names': ',' }, refused: [] },
  { of: 'scheduler', settings: { 'tls-names': '10.96.0.61' }, refused: ['tls-secret'] },
  {
    of: 'scheduler',
    settings: { 'leader-elect-lease': '20s', 'leader-elect-renew': '19s' },
    refused: ['leader-elect-renew'],
  },
  { of: 'scheduler', settings: { 'kube-client-qps': 500, 'kube-client-burst': 100 }, refused: ['kube-client-burst'] },
  { of: 'webhook', settings: { 'client-ca-file': '/ca' }, ...MADE, refused: ['client-ca-file'] },
  { of: 'webhook', settings: { 'client-ca-file': '/ca' }, refused: [] },
  { of: 'webhook', settings: { 'client-allowed-names': ['api'] }, refused: ['client-ca-file'] },
  { of: 'webhook', settings: { 'client-allowed-names': ',', 'tls-names': ['', ''] }, refused: [] },
  { of: 'webhook', settings: { 'tls-names': ['10.96.0.61'] }, refused: ['tls-secret'] },
  { of: 'webhook', settings: { 'tls-names': ['10.96.0.61'] }, ...MADE, refused: [] },
  { of: 'cloudControllerManager', settings: { credentials: 'file' }, refused: ['credentials-file'] },
  {
    of: 'cloudControllerManager',
    settings: { 'route-tables': ['rtb-a1b2c3d4'], 'cluster-route-table': 'cls' },
    refused: ['route-tables', 'cluster-route-table'],
  },
  {
    of: 'cloudControllerManager',
    settings: { routes: 'table' },
    refused: ['cluster-cidr', 'route-tables', 'clusterid'],
  },
  { of: 'cloudControllerManager', settings: { controllers: '-service' }, refused: ['controllers'] },
  { of: 'cloudControllerManager', settings: { controllers: ['-route', '-service'] }, refused: ['controllers'] },
  { of: 'cloudControllerManager', settings: { controllers: ['*', '-service'] }, refused: [] },
  { of: 'cloudControllerManager', settings: { controllers: '-service,cloud-node' }, refused: [] },
  { of: 'cloudControllerManager', settings: { 'route-tables': ',' }, refused: [] },
  {
    of: 'cloudControllerManager',
    settings: { ...TABLE, 'route-tables': ',', 'cluster-cidr': ',' },
    refused: ['route-tables', 'cluster-cidr'],
  },
  { of: 'cloudControllerManager', settings: { ...TABLE, 'route-tables': ['rtb-a1b2c3d4'] }, refused: [] },
  { of: 'cloudControllerManager', settings: { 'ingress-without-class': true }, refused: ['ingress-without-class'] },
  { of: 'cloudControllerManager', settings: { ingress: 'clb' }, refused: ['load-balancers'] },
  {
    of: 'cloudControllerManager',
    settings: { 'load-balancers': 'clb' },
    refused: ['clusterid'],
    isGivenByChart: true,
  },
  {
    of: 'cloudControllerManager',
    settings: { ingress: 'clb', 'load-balancers': 'clb', clusterid: 'cls-a1b2c3d4' },
    refused: [],
  },
  {
    of: 'cloudControllerManager',
    settings: { 'kube-api-qps': 500, 'kube-api-burst': 100 },
    refused: ['kube-api-burst'],
  },
  {
    of: 'cloudControllerManager',
    settings: { 'leader-elect-lease-duration': '8s', 'leader-elect-retry-period': '3s' },
    refused: [],
  },
  {
    of: 'cloudControllerManager',
    settings: { 'leader-elect-lease-duration': '8s', 'leader-elect-retry-period': '3001ms' },
    refused: ['leader-elect-retry-period'],
  },
];

/** Settings of the chart's values, which a case adds to. */
const OF_VALUES: Readonly<Partial<Record<Component, JsonObject>>> = {
  scheduler: { 'client-ca-file': '/etc/tls/ca.crt', 'client-allowed-names': ['system:kube-scheduler'] },
};

function textOf(value: unknown): string {
  return Array.isArray(value) ? value.join(',') : String(value);
}

/** What a program says against its settings, which it gets as variables. */
function faultsOf({ of, settings, argv = [] }: Case): readonly Fault[] {
  const variables = Object.entries({ ...OF_VALUES[of], ...settings }).map(
    ([flag, value]) => [`TKE_ENI_${flag.toUpperCase().replaceAll('-', '_')}`, textOf(value)] as const,
  );
  const { read, argv: given } = COMPONENTS[of];
  const replaced = new Set(argv.map((one) => one.split('=')[0]));
  const input: SettingsInput = {
    argv: [...given.filter((one) => !replaced.has(one.split('=')[0])), ...argv],
    env: Object.fromEntries(variables),
    readFile: () => '',
  };
  try {
    read(input);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
}

const sorted = (flags: readonly string[]): readonly string[] => [...new Set(flags)].toSorted();
const withHelm = hasHelm ? test : test.skip;

for (const one of CASES) {
  const { of, settings, values, refused, isGivenByChart } = one;
  const ofChart = isGivenByChart === true ? [] : refused;
  const title = `${of} ${JSON.stringify(settings)}${values === undefined ? '' : ` with ${JSON.stringify(values)}`}`;
  test(`program: ${title}`, (t) => {
    t.deepEqual(sorted(faultsOf(one).map(({ path }) => path.replace(/^--/, ''))), sorted(refused));
  });
  withHelm(`chart: ${title}`, (t) => {
    const ofComponent = { ...((VALUES as JsonObject)[of] as JsonObject), ...values, settings };
    const input = stringify({ ...VALUES, [of]: ofComponent });
    const argv = ['template', 'tke-eni', CHART, '--kube-version', 'v1.34.1', '-f', '-'];
    const { status, stderr } = spawnSync(HELM, argv, { input, encoding: 'utf8', maxBuffer: 64 << 20 });
    const named = [...stderr.matchAll(/(\w+)\.settings\.([a-z-]+): expected/g)];
    t.deepEqual(sorted(named.map(([, , flag = '']) => flag)), sorted(ofChart), stderr);
    t.true(named.every(([, component]) => component === of));
    t.is(status === 0, ofChart.length === 0, stderr);
  });
}

withHelm('chart: what network says is named as it is there', (t) => {
  const network = { mode: 'hybrid', clusterCidrs: ['192.168.0.0/20'], serviceCidr: '192.168.0.0/16', routes: 'none' };
  const argv = ['template', 'tke-eni', CHART, '--kube-version', 'v1.34.1', '-f', '-'];
  const { stderr } = spawnSync(HELM, argv, { input: stringify({ ...VALUES, network }), encoding: 'utf8' });
  t.regex(stderr, /: network\.serviceCidr: expected a network that leaves blocks .*, got 192\.168\.0\.0\/16\. docs/);
});

test('each rule of a program is broken by a case', (t) => {
  for (const [of, { program }] of Object.entries(COMPONENTS)) {
    const faults = CASES.filter((one) => one.of === of).flatMap(faultsOf);
    for (const { flag, expected } of program.rules ?? [])
      t.true(
        faults.some((fault) => fault.path === `--${flag}` && fault.expected.startsWith(expected.split('{')[0] ?? '')),
        `${of}: --${flag} ${expected}`,
      );
  }
});
