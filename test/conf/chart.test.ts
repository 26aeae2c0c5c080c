import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import test from 'ava';
import { parse } from 'yaml';
import type { JsonObject } from '../../sim/kube-api/object.ts';
import { renderChart } from '../../tools/chart/render-chart.ts';
import { renderTemplate, TEMPLATES } from '../../tools/chart/templates.ts';
import { listValues } from '../../tools/chart/values.ts';
import { renderValuesSchema } from '../../tools/chart/values-schema.ts';
import { makeChart } from '../../tools/chart.ts';
import { createTempDir } from '../support/temp-dir.ts';

const CHART = renderChart();
const read = (path: string): string => CHART.get(path) ?? '';
const VALUES = read('values.yaml');
const LISTED = listValues(VALUES);
const PATHS = LISTED.map(({ path }) => path);
const NEEDED = { clusterId: 'cls-a1b2c3d4', subnets: ['subnet-a1b2c3d4'] };

test('Chart.yaml: has the version of package.json', (t) => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    readonly version: string;
  };
  const chart = parse(read('Chart.yaml')) as JsonObject;
  t.is(chart['version'], version);
  t.is(chart['appVersion'], version);
});

test('makeChart: has what is written by hand and what is made, in place of what was there', (t) => {
  const folder = createTempDir('chart');
  try {
    const made = makeChart(folder.join('helm/tke-eni'));
    writeFileSync(`${made}/templates/old.yaml`, 'gone');
    makeChart(made);
    t.deepEqual(readdirSync(folder.join('helm')), ['tke-eni'], 'nothing is left beside it');
    t.false(existsSync(`${made}/templates/old.yaml`));
    for (const path of ['Chart.yaml', '.helmignore', 'templates/settings.yaml', 'templates/agent-daemonset.yaml'])
      t.is(readFileSync(`${made}/${path}`, 'utf8'), read(path), path);
    t.is(read('crds/vpcips.yaml'), readFileSync(new URL('../../conf/crd/vpcips.yaml', import.meta.url), 'utf8'));
    t.is(readdirSync(`${made}/crds`).length, 7);
  } finally {
    folder.close();
  }
});

test('values.yaml: has a comment for each value, and no value that no template uses', (t) => {
  t.deepEqual(
    LISTED.filter(({ isGroup, help }) => !isGroup && help === '').map(({ path }) => path),
    [],
  );
  const templates = [...CHART].flatMap(([path, text]) => (path.startsWith('templates/') ? [text] : [])).join('\n');
  const used = new Set([...templates.matchAll(/\.Values\.([A-Za-z.]+)/g)].map(([, path = '']) => path));
  t.deepEqual(
    [...used].filter((path) => !PATHS.includes(path)),
    [],
    'used, not in values.yaml',
  );
  const unused = LISTED.filter(({ path, isGroup }) => !isGroup && !used.has(path)).map(({ path }) => path);
  t.deepEqual(unused, [], 'in values.yaml, not used');
});

const validate = new Ajv({ allErrors: true, allowUnionTypes: true, strict: true }).compile(
  JSON.parse(read('values.schema.json')) as object,
);

/** Values as Helm checks them: those of values.yaml with somebody's over them. */
function faultsOf(mine: JsonObject): readonly string[] {
  validate(over(parse(VALUES) as JsonObject, mine));
  // `if` only says that its `else` failed, which has an error of its own.
  const faults = (validate.errors ?? []).filter(({ keyword }) => keyword !== 'if');
  return faults.map(({ instancePath, message, params }) =>
    [instancePath, message, params['additionalProperty'] ?? params['allowedValues']?.join(' ')]
      .filter(Boolean)
      .join(' '),
  );
}

function over(below: JsonObject, above: JsonObject): JsonObject {
  const isMap = (value: unknown): value is JsonObject =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  const merged = Object.entries(above).map(([key, value]) => {
    const under = below[key];
    return [key, isMap(value) && isMap(under) ? over(under, value) : value] as const;
  });
  return { ...below, ...Object.fromEntries(merged) };
}

test('values.schema.json: takes what the README sets, and every kind of setting', (t) => {
  t.deepEqual(faultsOf({ ...NEEDED, region: 'ap-guangzhou', image: { registry: 'registry.example.com/tke-eni' } }), []);
  const settings = {
    'rule-mode': 'compact',
    'add-wait': '20s',
    nodeport: false,
    mtu: 1500,
    'vpc-cidr': ['10.0.0.0/8'],
  };
  t.deepEqual(faultsOf({ ...NEEDED, agent: { settings } }), []);
  t.deepEqual(faultsOf({ ...NEEDED, agent: { maxUnavailable: 1 }, ipamd: { resources: { limits: { cpu: 1 } } } }), []);
});

test('values.schema.json: takes no subnets in mode gr alone', (t) => {
  t.deepEqual(faultsOf({ clusterId: 'cls-a', network: { mode: 'gr' } }), []);
  for (const mode of ['vpc-cni', 'hybrid']) {
    t.deepEqual(faultsOf({ clusterId: 'cls-a', network: { mode } }), ['/subnets must NOT have fewer than 1 items']);
  }
});

const REFUSED: readonly (readonly [JsonObject, string])[] = [
  [{ subnets: ['subnet-aaaa'] }, '/clusterId must match pattern "^(cls-[a-z0-9]{1,32})$"'],
  [{ clusterId: 'cls-a' }, '/subnets must NOT have fewer than 1 items'],
  [{ ...NEEDED, subnets: ['subnet-aaaa:subnet-bbbb'] }, '/subnets/0 must match pattern "^subnet-[a-z0-9]{4,32}$"'],
  [
    { ...NEEDED, subnets: ['subnet-aaaa', 'subnet-aaaa'] },
    '/subnets must NOT have duplicate items (items ## 1 and 0 are identical)',
  ],
  [{ ...NEEDED, clusterID: 'cls-a' }, 'must NOT have additional properties clusterID'],
  [
    { ...NEEDED, agent: { settings: { 'log-levl': 'info' } } },
    '/agent/settings must NOT have additional properties log-levl',
  ],
  [
    { ...NEEDED, agent: { settings: { 'metrics-address': ':1' } } },
    '/agent/settings must NOT have additional properties metrics-address',
  ],
  [
    { ...NEEDED, agent: { settings: { 'rule-mode': 'fast' } } },
    '/agent/settings/rule-mode must be equal to one of the allowed values auto compact per-pod',
  ],
  [{ ...NEEDED, agent: { settings: { nodeport: 'yes' } } }, '/agent/settings/nodeport must be boolean'],
  [
    { ...NEEDED, network: { mode: 'eni' } },
    '/network/mode must be equal to one of the allowed values vpc-cni gr hybrid',
  ],
  [
    { ...NEEDED, network: { default: 'tke-direct-eni' } },
    '/network/default must be equal to one of the allowed values tke-route-eni tke-bridge',
  ],
  [{ ...NEEDED, network: { maxPodsPerNode: '64' } }, '/network/maxPodsPerNode must be integer'],
  [{ ...NEEDED, network: { clusterCIDRs: [] } }, '/network must NOT have additional properties clusterCIDRs'],
  [{ ...NEEDED, ipamd: { replicas: 0 } }, '/ipamd/replicas must be >= 1'],
  [
    { ...NEEDED, image: { pullPolicy: 'Sometimes' } },
    '/image/pullPolicy must be equal to one of the allowed values Always IfNotPresent Never',
  ],
  [{ ...NEEDED, monitoring: { enabled: 'true' } }, '/monitoring/enabled must be boolean'],
  [
    { ...NEEDED, ipamd: { resources: { limits: { memory: 'much' } } } },
    '/ipamd/resources/limits/memory must match pattern "^[0-9]+(\\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$"',
  ],
];

for (const [mine, fault] of REFUSED) {
  test(`values.schema.json: refuses ${JSON.stringify(mine)} with one error`, (t) => {
    t.deepEqual(faultsOf(mine), [fault]);
  });
}

test('renderValuesSchema: refuses values that it has no rule for', (t) => {
  t.throws(() => renderValuesSchema(`${VALUES}\n# One more.\nmore: 1\n`), { message: /differ in more$/ });
});

test('renderTemplate: refuses a manifest that lacks what it changes', (t) => {
  const [template] = TEMPLATES;
  if (template === undefined) return t.fail('no templates');
  t.throws(() => renderTemplate(template, () => 'kind: ServiceAccount\n'), {
    message: /has no "kube-system" any more/,
  });
});

test('values.schema.json: refuses settings that the manifests give as flags, which would go before them', (t) => {
  for (const [component, file] of [
    ['agent', 'agent-daemonset'],
    ['ipamd', 'ipamd-deployment'],
    ['scheduler', 'scheduler-deployment'],
    ['webhook', 'webhook-deployment'],
    ['cloudControllerManager', 'cloud-controller-manager-deployment'],
  ] as const) {
    const given = [...read(`templates/${file}.yaml`).matchAll(/^ +- --([a-z-]+)=/gm)].map(([, flag = '']) => flag);
    t.true(given.length >= 2);
    for (const flag of given) {
      const refused = `/${component}/settings must NOT have additional properties ${flag}`;
      t.deepEqual(faultsOf({ ...NEEDED, [component]: { settings: { [flag]: 'x' } } }), [refused]);
    }
  }
});
