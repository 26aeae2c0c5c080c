import test from 'ava';
import { readCcmConfig } from '../../../cloud-controller-manager/config/ccm-config.ts';
import { CCM_PROGRAM } from '../../../cloud-controller-manager/config/options.ts';
import { ConfigError } from '../../../runtime/decode.ts';
import { renderConfigDoc, renderHelp, variableOf } from '../../../runtime/settings/render-options.ts';

function configOf(...argv: readonly string[]) {
  const outcome = readCcmConfig({ argv, env: {}, readFile: () => '' });
  if (outcome.kind !== 'run') throw new Error(`got ${outcome.kind}`);
  return outcome.config;
}

function faultsOf(...argv: readonly string[]): readonly string[] {
  try {
    readCcmConfig({ argv, env: {}, readFile: () => '' });
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.faults.map((fault) => fault.path);
  }
}

test('readCcmConfig: has a default for every setting, and upstream’s for the lock', (t) => {
  t.deepEqual(Object.keys(configOf()), Object.keys(CCM_PROGRAM.options));
  t.like(configOf(), {
    leaderElect: true,
    leaderElectLock: 'endpoints',
    leaderElectName: 'cloud-controller-manager',
    namespace: 'kube-system',
    leaderElectLeaseMs: 15_000,
    leaderElectRetryMs: 2_000,
    kubeClientQps: 20,
    kubeClientBurst: 30,
  });
});

const NODE = 'cloud-node-controller';
const LIFECYCLE = 'cloud-node-lifecycle-controller';
const ROUTE = 'node-route-controller';
const SERVICE = 'service-lb-controller';
/** As upstream reads them: k8s.io/controller-manager app.IsControllerEnabled. */
const CONTROLLERS: Readonly<Record<string, readonly string[]>> = {
  '*': [NODE, LIFECYCLE, ROUTE, SERVICE],
  [NODE]: [NODE],
  [`-${NODE},*`]: [LIFECYCLE, ROUTE, SERVICE],
  [`*,-${NODE}`]: [LIFECYCLE, ROUTE, SERVICE],
  [`${NODE},-${NODE}`]: [NODE],
  [`-${NODE},${NODE},${LIFECYCLE}`]: [LIFECYCLE],
  [`${NODE},${LIFECYCLE}`]: [NODE, LIFECYCLE],
  'cloud-node,-cloud-node-lifecycle': [NODE],
  route: [ROUTE],
  service: [SERVICE],
};
for (const [text, names] of Object.entries(CONTROLLERS)) {
  test(`controllersValue: reads ${text}`, (t) => {
    t.deepEqual([...configOf(`--controllers=${text}`).controllers], names);
  });
}

/** Flags that are refused, and the one that the fault names. */
const REFUSED: readonly (readonly [readonly string[], string])[] = [
  [['--controllers='], '--controllers'],
  [['--controllers=nodes'], '--controllers'],
  [['--controllers=*,-serviceaccount'], '--controllers'],
  [['--controllers=services'], '--controllers'],
  [[`--controllers=-${NODE}`], '--controllers'],
  [['--controllers=*,-cloud-node,-cloud-node-lifecycle,-route,-service'], '--controllers'],
  [[`--controllers=${NODE},`], '--controllers'],
  [['--controllers=--cloud-node'], '--controllers'],
  [['--controllers=-*'], '--controllers'],
  [['--routes=global'], '--cluster-cidr --clusterid'],
  [['--routes=global', '--clusterid=cls-a', '--cluster-cidr=10.0.0.1/8'], '--cluster-cidr'],
  [['--routes=vpc'], '--routes'],
  [['--load-balancers=clb'], '--clusterid'],
  [['--load-balancers=yes'], '--load-balancers'],
  [['--load-balancer-class=clb'], '--load-balancer-class'],
  [['--routes=table', '--clusterid=cls-a', '--cluster-cidr=10.0.0.0/8'], '--route-tables'],
  [['--routes=table', '--route-tables=vpc-1', '--clusterid=cls-a', '--cluster-cidr=10.0.0.0/8'], '--route-tables'],
  [['--route-tables=rtb-azd4dt1c'], '--route-tables'],
  [['--cluster-route-table=cls-a'], '--cluster-route-table'],
  [['--leader-elect-resource-lock=lease'], '--leader-elect-resource-lock'],
  [['--leader-elect-retry-period=6s'], '--leader-elect-retry-period'],
  [['--leader-elect-lease-duration=1s'], '--leader-elect-lease-duration'],
  [['--kube-api-qps=40', '--kube-api-burst=30'], '--kube-api-burst'],
  [['--credentials=file'], '--credentials-file'],
  [['--metrics-address=61694'], '--metrics-address'],
  [['--region=Guangzhou'], '--region'],
  [['--vpc-id=guangzhou'], '--vpc-id'],
  [['--provider-id-form=aws'], '--provider-id-form'],
  [['--zone-labels=names'], '--zone-labels'],
  [['--expect-routes=perhaps'], '--expect-routes'],
  [['--node-release-percent=101'], '--node-release-percent'],
  [['--node-release-percent=ten'], '--node-release-percent'],
  [['--node-monitor-period=500ms'], '--node-monitor-period'],
  [['--node-monitor-period=5'], '--node-monitor-period'],
  [['--node-status-update-frequency=0s'], '--node-status-update-frequency'],
  [['--cloud-provider=tencent'], '--cloud-provider=tencent'],
];
for (const [argv, path] of REFUSED) {
  test(`readCcmConfig: refuses ${argv.join(' ')}`, (t) => {
    t.deepEqual(faultsOf(...argv), path.split(' '));
  });
}

test('CCM_PROGRAM: has flags of its own, variables that no Service makes, help within 80 columns, and a page', (t) => {
  const options = Object.values(CCM_PROGRAM.options);
  const flags = options.map((option) => option.flag);
  t.is(new Set(flags).size, flags.length);
  t.deepEqual(
    flags.filter((flag) => /_SERVICE_(HOST|PORT)|_PORT$|_PORT_\d/.test(variableOf(flag))),
    [],
  );
  const help = renderHelp(CCM_PROGRAM);
  for (const { flag } of options) t.true(help.includes(`  --${flag}`), flag);
  t.deepEqual(
    help.split('\n').filter((line) => line.length > 80),
    [],
  );
  const rows = renderConfigDoc(CCM_PROGRAM)
    .split('\n')
    .filter((line) => line.startsWith('| `--'));
  t.is(rows.length, options.length);
});
