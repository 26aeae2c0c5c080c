import test from 'ava';
import { blockSettingsOf, podRecordsOf, readIpamdConfig } from '../../../ipamd/config/ipamd-config.ts';
import { IPAMD_OPTIONS, IPAMD_PROGRAM } from '../../../ipamd/config/options.ts';
import { ConfigError } from '../../../runtime/decode.ts';
import { META_FLAGS, renderConfigDoc, renderHelp, variableOf } from '../../../runtime/settings/render-options.ts';

const CLUSTER = '--clusterid=cls-3x5v7b9d';

function configOf(...argv: readonly string[]) {
  const outcome = readIpamdConfig({ argv: [CLUSTER, ...argv], env: {}, readFile: () => '' });
  if (outcome.kind !== 'run') throw new Error(`got ${outcome.kind}`);
  return outcome.config;
}

function faultsOf(argv: readonly string[], env: Readonly<Record<string, string>> = {}): readonly string[] {
  try {
    readIpamdConfig({ argv, env, readFile: () => '' });
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.faults.map((fault) => `${fault.path}: expected ${fault.expected}, got ${fault.got}`);
  }
}

test('readIpamdConfig: has a default for every setting but the cluster', (t) => {
  t.deepEqual(Object.keys(configOf()), Object.keys(IPAMD_OPTIONS));
  t.like(configOf(), {
    clusterId: 'cls-3x5v7b9d',
    endpoints: { domain: 'tencentcloudapi.com', host: undefined },
    ipMinWarmTarget: 5,
    ipMaxWarmTarget: 5,
    eniMinWarmTarget: 1,
    eniMaxWarmTarget: 1,
    enableDirectEni: false,
    enableSecurityGroups: false,
    enableNodeCondition: false,
    enableNodeTaint: false,
    leaderElectLock: 'configmap',
    configMap: 'tke-eni-ipamd',
    productQps: 50,
  });
});

test('readIpamdConfig: renews a ConfigMap no more often than every ten seconds by default', (t) => {
  t.true(configOf().leaderElectRenewMs >= 10_000);
});

test('podRecordsOf: settings of 0.1.0 mean what they did, but for claims; the new flag counts otherwise', (t) => {
  t.is(podRecordsOf(configOf()), 'addresses');
  t.is(podRecordsOf(configOf('--record-pods=true')), 'addresses');
  t.is(podRecordsOf(configOf('--record-pods=false')), 'none');
  t.is(podRecordsOf(configOf('--record-pods=false', '--pod-records=all')), 'none');
  for (const mode of ['all', 'addresses', 'none'] as const) t.is(podRecordsOf(configOf(`--pod-records=${mode}`)), mode);
  const outcome = readIpamdConfig({ argv: [CLUSTER], env: { TKE_ENI_RECORD_PODS: 'false' }, readFile: () => '' });
  t.is(outcome.kind === 'run' && podRecordsOf(outcome.config), 'none');
});

test('readIpamdConfig: asks for the cluster id', (t) => {
  t.deepEqual(faultsOf([]), ['--clusterid: expected the id of the cluster, such as cls-3x5v7b9d, got nothing']);
});

test('readIpamdConfig: takes the variable of the cluster id', (t) => {
  t.deepEqual(faultsOf([], { TKE_ENI_CLUSTERID: 'cls-a' }), []);
});

const reads = test.macro((t, argv: readonly string[], want: object) => t.like(configOf(...argv), want));
test('readIpamdConfig: reads one host for all products', reads, ['--endpoint=127.0.0.1:8080', '--protocol=http'], {
  endpoints: { domain: undefined, host: '127.0.0.1:8080', hosts: {} },
  protocol: 'http',
});
test(
  'readIpamdConfig: reads a domain and hosts of single products',
  reads,
  ['--endpoint=*.internal.tencentcloudapi.com', '--endpoint', 'vpc=10.0.0.1:443,sts=sts.example'],
  {
    endpoints: {
      domain: 'internal.tencentcloudapi.com',
      host: undefined,
      hosts: { vpc: '10.0.0.1:443', sts: 'sts.example' },
    },
  },
);
test(
  'readIpamdConfig: keeps the order of security groups',
  reads,
  ['--enable-security-groups', '--security-groups=sg-b,sg-a'],
  { enableSecurityGroups: true, securityGroups: ['sg-b', 'sg-a'] },
);

const refuses = test.macro((t, argv: readonly string[], want: readonly string[]) =>
  t.deepEqual(
    faultsOf([CLUSTER, ...argv]).map((fault) => fault.split(': ')[0]),
    want,
  ),
);
test(
  'readIpamdConfig: refuses a warm minimum above its maximum',
  refuses,
  ['--ip-min-warm-target=6'],
  ['--ip-min-warm-target'],
);
test(
  'readIpamdConfig: refuses a lease that leaves no room for a second try at its renewal',
  refuses,
  ['--leader-elect-renew=20s'],
  ['--leader-elect-renew'],
);
test(
  'readIpamdConfig: refuses security groups that nothing would set',
  refuses,
  ['--security-groups=sg-a'],
  ['--enable-security-groups'],
);
test(
  'readIpamdConfig: asks for the file of --credentials=file',
  refuses,
  ['--credentials=file'],
  ['--credentials-file'],
);
test('readIpamdConfig: refuses a burst below the rate', refuses, ['--kube-client-burst=5'], ['--kube-client-burst']);

const PODS = ['--allocate-node-cidrs', '--cluster-cidr=192.168.0.0/20'];
const blocks = test.macro((t, argv: readonly string[], want: ReturnType<typeof blockSettingsOf>) => {
  t.deepEqual(blockSettingsOf(configOf(...argv)), want);
});
test('blockSettingsOf: gives no blocks by default', blocks, ['--cluster-cidr=10.4.0.0/16'], undefined);
test('blockSettingsOf: a block has 256 addresses', blocks, PODS, {
  clusterCidrs: ['192.168.0.0/20'],
  serviceCidr: '',
  maskSize: 24,
});
test(
  'blockSettingsOf: rounds the Pods of a node up to a power of two',
  blocks,
  [...PODS, '--cluster-cidr=10.9.0.0/16', '--service-cluster-ip-range=192.168.12.0/22', '--max-pods-per-node=60'],
  { clusterCidrs: ['192.168.0.0/20', '10.9.0.0/16'], serviceCidr: '192.168.12.0/22', maskSize: 26 },
);

const refusesBlocks = test.macro((t, argv: readonly string[], want: readonly string[]) => {
  t.deepEqual(faultsOf([CLUSTER, ...argv]), want);
});
test(
  'readIpamdConfig: wants networks to allocate from',
  refusesBlocks,
  ['--allocate-node-cidrs'],
  ['--cluster-cidr: expected the networks of Pods, as --allocate-node-cidrs is set, got nothing'],
);
test(
  'readIpamdConfig: refuses a block that is larger than its network',
  refusesBlocks,
  [...PODS, '--node-cidr-mask-size=19'],
  ['--node-cidr-mask-size: expected at least 20, as a block must fit into 192.168.0.0/20, got 19'],
);
test(
  'readIpamdConfig: refuses networks of Pods that overlap',
  refusesBlocks,
  [...PODS, '--cluster-cidr=192.168.8.0/24'],
  ['--cluster-cidr: expected networks that do not overlap, as 192.168.0.0/20 does, got "192.168.8.0/24"'],
);
test(
  'readIpamdConfig: refuses Services that leave no block',
  refusesBlocks,
  [...PODS, '--service-cluster-ip-range=192.168.0.0/16'],
  [
    '--service-cluster-ip-range: expected a network that leaves blocks of --cluster-cidr for nodes, got "192.168.0.0/16"',
  ],
);
test(
  'readIpamdConfig: refuses more Pods than a block has addresses',
  refusesBlocks,
  ['--node-cidr-mask-size=26', '--max-pods-per-node=65'],
  ['--max-pods-per-node: expected at most 64, as a block of --node-cidr-mask-size=26 has, got 65'],
);
test(
  'readIpamdConfig: refuses a block without an address for a Pod',
  refusesBlocks,
  ['--max-pods-per-node=4'],
  ['--max-pods-per-node: expected at least 8, or 0, got 4'],
);

/** Texts that each kind of value refuses. */
const REFUSED: Readonly<Record<string, readonly string[]>> = {
  region: ['guangzhou', 'AP-guangzhou'],
  endpoint: ['', 'https://vpc.example', 'tke=10.0.0.1', 'a.example,b.example', 'vpc=a,vpc=b', '*.'],
  'sts-role-arn': ['role/x', 'qcs::cam::uin/x:roleName/y'],
  'metadata-url': ['metadata', 'http://a/b/', 'ftp://a'],
  master: ['10.0.0.1:6443', 'https://a/b'],
  'only-nominated-eni-subnets': ['sub-a', 'subnet-A'],
  'security-groups': ['default'],
  'product-qps': ['0', '1.5', '-1', 'many'],
  namespace: ['', 'Kube'],
  'metrics-address': ['61681'],
  'cluster-cidr': ['192.168.0.1/20', '192.168.0.0', 'fd00::/64', '10.0.0.0/33'],
  'service-cluster-ip-range': ['fd00::/108', '10.0.0.0/16,10.1.0.0/16'],
  'node-cidr-mask-size': ['30', '-1'],
  'pod-cidr-hold': ['59s', '0s'],
  'default-network': ['bridge'],
};
for (const [flag, texts] of Object.entries(REFUSED)) {
  for (const text of texts) {
    test(`readIpamdConfig: refuses --${flag}=${text}`, refuses, [`--${flag}=${text}`], [`--${flag}`]);
  }
}

test('IPAMD_OPTIONS: have flags of their own, and variables that no Service makes', (t) => {
  const flags = Object.values(IPAMD_OPTIONS).map((option) => option.flag);
  t.is(new Set(flags).size, flags.length);
  t.deepEqual(
    flags.filter((flag) => /_SERVICE_(HOST|PORT)|_PORT$|_PORT_\d/.test(variableOf(flag))),
    [],
  );
});

test('renderHelp: names every flag of ipamd, what is required, and fits 80 columns', (t) => {
  const help = renderHelp(IPAMD_PROGRAM);
  for (const { flag } of [...Object.values(IPAMD_OPTIONS), ...META_FLAGS]) t.true(help.includes(`  --${flag}`), flag);
  t.deepEqual(
    help.split('\n').filter((line) => line.length > 80),
    [],
  );
  t.is([...help.matchAll(/Required\./g)].length, 1);
});

test('renderConfigDoc: has one row for every setting of ipamd', (t) => {
  const rows = renderConfigDoc(IPAMD_PROGRAM)
    .split('\n')
    .filter((line) => line.startsWith('| `--'));
  t.is(rows.length, Object.keys(IPAMD_OPTIONS).length);
});
test(
  'readIpamdConfig: refuses to keep addresses for less than five minutes',
  refuses,
  ['--claim-expired-duration=4m59s'],
  ['--claim-expired-duration'],
);
test('readIpamdConfig: reads how long addresses are kept', reads, ['--claim-expired-duration=1h30m'], {
  claimExpiredDurationMs: 5_400_000,
});

test('readIpamdConfig: refuses startup taints that Kubernetes and autoscalers put on and take off', (t) => {
  const key = 'node-role.kubernetes.io/control-plane';
  t.deepEqual(faultsOf([CLUSTER, `--startup-taints=example.com/boot,${key}:NoSchedule`]), [
    `--startup-taints: expected taints of node pools; Kubernetes puts this one on and takes it off, got "${key}:NoSchedule"`,
  ]);
  t.deepEqual(configOf('--startup-taints=').startupTaints, []);
});

test('readIpamdConfig: takes a number for what it is in combinations', (t) => {
  t.deepEqual(faultsOf([CLUSTER, '--max-pods-per-node=00']), []);
  t.deepEqual(faultsOf([CLUSTER, '--max-pods-per-node=007']), [
    '--max-pods-per-node: expected at least 8, or 0, got 7',
  ]);
  t.deepEqual(faultsOf([CLUSTER, '--ip-min-warm-target=9', '--ip-max-warm-target=008']), [
    '--ip-min-warm-target: expected at most --ip-max-warm-target, 8, got 9',
  ]);
});
