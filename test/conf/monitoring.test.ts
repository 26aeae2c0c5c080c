import { spawnSync } from 'node:child_process';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import { parse, parseAllDocuments } from 'yaml';
import { AGENT_PROGRAM } from '../../agent/config/agent-config.ts';
import { OPTIONS as CLUSTER_OPTIONS } from '../../cli/commands/cluster/arguments.ts';
import { CCM_PROGRAM } from '../../cloud-controller-manager/config/options.ts';
import { IPAMD_PROGRAM } from '../../ipamd/config/options.ts';
import { SCHEDULER_PROGRAM } from '../../scheduler/config/options.ts';
import { WEBHOOK_PROGRAM } from '../../webhook/options.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { productSources } from '../support/product-sources.ts';
import { metricTables } from './metric-tables.ts';
import { readPromql } from './promql.ts';
import { renderExample } from './render-example.ts';

type Alert = {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
};

const ROOT = new URL('../../', import.meta.url).pathname;
const read = (path: string): string => readFileSync(`${ROOT}${path}`, 'utf8');
const rule = parse(read('conf/monitoring/alerts.yaml')) as {
  readonly spec: { readonly groups: readonly { readonly name: string; readonly rules: readonly Alert[] }[] };
};
const ALERTS = rule.spec.groups.flatMap(({ rules }) => rules);
const RUNBOOKS = readdirSync(`${ROOT}docs/runbooks`).filter((name) => name !== 'README.md');
/** What Prometheus itself writes. */
const OF_PROMETHEUS = new Map([
  ['up', new Set<string>()],
  ['ALERTS', new Set(['alertname', 'alertstate', 'severity', 'reason'])],
]);
/** The PodMonitors set job and node, Prometheus the rest. */
const OF_TARGETS = new Set(['job', 'node', 'instance', 'namespace', 'pod', 'container', 'endpoint']);
const METRICS = new Map([...metricTables(), ...OF_PROMETHEUS]);

/** What is wrong with an expression: its grammar, its metrics, their labels. */
function faultsOf(expression: string): readonly string[] {
  const { faults, selectors, grouping } = readPromql(expression);
  const labelsOf = (metric: string): ReadonlySet<string> => METRICS.get(metric) ?? new Set();
  const known = new Set(selectors.flatMap(({ metric }) => [...labelsOf(metric), ...OF_TARGETS]));
  return [
    ...faults,
    ...(selectors.length === 0 ? ['reads no metric'] : []),
    ...selectors.filter(({ metric }) => !METRICS.has(metric)).map(({ metric }) => `no metric ${metric}`),
    ...selectors.flatMap(({ metric, labels }) =>
      labels
        .filter((label) => !OF_TARGETS.has(label) && !labelsOf(metric).has(label))
        .map((label) => `${metric} has no label ${label}`),
    ),
    ...grouping.filter((label) => !known.has(label)).map((label) => `groups by ${label}, which no metric has`),
  ];
}

test('metricTables: knows names, kinds and labels', (t) => {
  t.deepEqual([...(METRICS.get('tke_eni_request_seconds_bucket') ?? [])].sort(), ['code', 'le', 'verb']);
  t.deepEqual([...(METRICS.get('tke_eni_ipamd_nodes') ?? [])].sort(), ['ready', 'reason']);
  t.true(METRICS.has('process_start_time_seconds'));
});

test('faultsOf: sees what is no PromQL, an unknown metric, an unknown label', (t) => {
  t.deepEqual(faultsOf('sum(tke_eni_leases'), ['at 18: "eni_leases"']);
  t.deepEqual(faultsOf('tke_eni_lease > 0'), ['no metric tke_eni_lease']);
  t.deepEqual(faultsOf('tke_eni_fights_total{sort="rule"}'), ['tke_eni_fights_total has no label sort']);
  t.deepEqual(faultsOf('sum by (verb) (tke_eni_leases)'), ['groups by verb, which no metric has']);
});

for (const { alert, expr, annotations, labels } of ALERTS) {
  test(`alerts.yaml: ${alert} reads metrics that exist and shows labels that it has`, (t) => {
    t.deepEqual(faultsOf(expr), []);
    const { selectors, grouping } = readPromql(expr);
    // An aggregation keeps what it groups by; without one, all labels of the metric are there.
    const isAggregated = /\b(sum|max|min|count|avg)\b/.test(expr);
    const kept = new Set(
      isAggregated ? grouping : selectors.flatMap(({ metric }) => [...(METRICS.get(metric) ?? []), ...OF_TARGETS]),
    );
    const shown = [...`${annotations['summary']} ${annotations['description']}`.matchAll(/\$labels\.(\w+)/g)].map(
      ([, label = '']) => label,
    );
    t.deepEqual(
      shown.filter((label) => !kept.has(label)),
      [],
    );
    t.true(['critical', 'warning'].includes(labels['severity'] ?? ''));
    t.is(annotations['runbook'], `docs/runbooks/${alert}.md`);
  });
}

test('docs/runbooks: has one page for each alert, and no other', (t) => {
  const names = ALERTS.map(({ alert }) => alert);
  t.is(new Set(names).size, names.length);
  t.deepEqual(RUNBOOKS.toSorted(), names.map((name) => `${name}.md`).toSorted());
  const listed = [...read('docs/runbooks/README.md').matchAll(/^\| \[(\w+)\]\(\1\.md\) \| (\w+) \|/gm)].map(
    ([, name, severity]) => `${name} ${severity}`,
  );
  t.deepEqual(
    listed,
    ALERTS.map(({ alert, labels }) => `${alert} ${labels['severity']}`),
  );
});

const SOURCES = productSources();
const FLAGS = new Set(
  [AGENT_PROGRAM, IPAMD_PROGRAM, SCHEDULER_PROGRAM, WEBHOOK_PROGRAM, CCM_PROGRAM]
    .flatMap(({ options }) => Object.values(options))
    .map(({ flag }) => `--${flag}`)
    .concat(Object.keys(CLUSTER_OPTIONS).map((name) => `--${name}`)),
);
/** Flags of kubectl and its like, and of helm. */
const FLAGS_OF_TOOLS = new Set([
  '--image',
  '--field-selector',
  '--previous',
  '--profile',
  '--as',
  '--raw',
  '--replicas',
  '--runtime-endpoint',
  '--set',
]);
const PAGES = ['README.md', ...RUNBOOKS];

for (const page of PAGES) {
  test(`docs/runbooks/${page}: names expressions, log messages, flags and pages that exist`, (t) => {
    const text = read(`docs/runbooks/${page}`);
    const code = [...text.matchAll(/`([^`]+)`/g)].map(([, inside = '']) => inside);
    const expressions = code.filter((inside) => /tke_eni_\w*[a-z]/.test(inside) && !inside.startsWith('nft '));
    t.deepEqual(
      expressions.flatMap((inside) => faultsOf(inside).map((fault) => `${inside}: ${fault}`)),
      [],
    );
    const messages = [...text.matchAll(/grep (?:-i )?'([^']+)'/g)].map(([, message = '']) => message);
    t.deepEqual(
      messages.filter((message) => !SOURCES.includes(message)),
      [],
    );
    const flags = [...text.matchAll(/(?<![\w-])--[a-z][a-z-]*[a-z]/g)].map(([flag]) => flag);
    t.deepEqual(
      flags.filter((flag) => !FLAGS.has(flag) && !FLAGS_OF_TOOLS.has(flag)),
      [],
    );
    const links = [...text.matchAll(/\]\(([^)#]+)\)/g)].map(([, link = '']) => link);
    t.deepEqual(
      links.filter((link) => globSync(link, { cwd: `${ROOT}docs/runbooks` }).length === 0),
      [],
    );
    if (page === 'README.md') return;
    t.deepEqual(
      [...text.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading),
      ['Meaning', 'Impact', 'Diagnosis', 'Cure'],
    );
  });
}

type GridPos = { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
type DashboardPanel = {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly gridPos: GridPos;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat?: string }[];
};
const dashboard = JSON.parse(read('conf/monitoring/dashboard.json')) as {
  readonly uid: string;
  readonly templating: { readonly list: readonly { readonly name: string }[] };
  readonly panels: readonly DashboardPanel[];
};

/** Grafana fills variables in before Prometheus sees the text. */
function filledIn(expression: string): string {
  return expression.replaceAll('$__rate_interval', '5m').replaceAll('$node', '.*');
}

test('dashboard.json: reads metrics that exist, and names its lines by labels that they have', (t) => {
  const targets = dashboard.panels.flatMap(({ title, targets: list = [] }) =>
    list.map((target) => ({ title, ...target })),
  );
  t.true(targets.length > 40);
  for (const { title, expr, legendFormat = '' } of targets) {
    t.deepEqual(faultsOf(filledIn(expr)), [], title);
    const { grouping } = readPromql(filledIn(expr));
    const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
    t.deepEqual(
      named.filter((label) => !grouping.includes(label)),
      [],
      title,
    );
  }
});

test('dashboard.json: has panels that do not overlap, ids of their own, and only variables that it declares', (t) => {
  const { panels } = dashboard;
  t.is(new Set(panels.map(({ id }) => id)).size, panels.length);
  const overlaps = panels.flatMap((one, index) =>
    panels
      .slice(index + 1)
      .filter((other) => isOverlap(one.gridPos, other.gridPos))
      .map(({ title }) => `${one.title} and ${title}`),
  );
  t.deepEqual(overlaps, []);
  t.deepEqual(
    panels.filter(({ gridPos: { x, w } }) => x + w > 24).map(({ title }) => title),
    [],
  );
  const declared = dashboard.templating.list.map(({ name }) => name);
  const used = [...read('conf/monitoring/dashboard.json').matchAll(/\$\{?(\w+)\}?/g)].map(([, name = '']) => name);
  t.deepEqual(
    used.filter((name) => !declared.includes(name) && !name.startsWith('__')),
    [],
  );
});

function isOverlap(a: GridPos, b: GridPos): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

test('pod-monitors.yaml: selects each component by the labels of their Pods, and sets what alerts rely on', (t) => {
  const podLabels = new Map(
    [
      'agent/daemonset.yaml',
      ...['ipamd', 'scheduler', 'webhook', 'cloud-controller-manager'].map((part) => `${part}/deployment.yaml`),
    ].map((file) => {
      const { metadata, spec } = parse(read(`conf/kubernetes/${file}`)) as {
        readonly metadata: { readonly name: string };
        readonly spec: {
          readonly template: { readonly metadata: { readonly labels: Readonly<Record<string, string>> } };
        };
      };
      return [metadata.name, spec.template.metadata.labels];
    }),
  );
  const monitors = parseAllDocuments(read('conf/monitoring/pod-monitors.yaml')).map(
    (document) =>
      document.toJS() as {
        readonly metadata: { readonly name: string };
        readonly spec: {
          readonly jobLabel: string;
          readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
          readonly podMetricsEndpoints: readonly {
            readonly relabelings: readonly { readonly targetLabel: string }[];
          }[];
        };
      },
  );
  t.deepEqual(monitors.map(({ metadata }) => metadata.name).toSorted(), [...podLabels.keys()].toSorted());
  for (const { metadata, spec } of monitors) {
    const labels = podLabels.get(metadata.name) ?? {};
    t.is(labels[spec.jobLabel], metadata.name);
    for (const [label, value] of Object.entries(spec.selector.matchLabels)) t.is(labels[label], value);
    const set = spec.podMetricsEndpoints.flatMap(({ relabelings }) =>
      relabelings.map(({ targetLabel }) => targetLabel),
    );
    t.deepEqual(set, ['node']);
  }
  const jobs = [...read('conf/monitoring/alerts.yaml').matchAll(/job="([^"]+)"/g)].map(([, job = '']) => job);
  t.deepEqual(
    jobs.filter((job) => !podLabels.has(job)),
    [],
  );
});

const runKubectl = spawnSync('kubectl', ['version', '--client']).status === 0 ? test : test.skip;

runKubectl('component monitoring: lets Prometheus reach the ports that the PodMonitors name', (t) => {
  const objects = renderExample(['monitoring']);
  const workloads = objects.filter(({ kind }) => kind === 'DaemonSet' || kind === 'Deployment');
  for (const [name, port] of [
    ['tke-eni-agent', 61680],
    ['tke-eni-ipamd', 61681],
  ] as const) {
    const workload = workloads.find((one) => at(one, 'metadata', 'name') === name);
    const container = at(workload, 'spec', 'template', 'spec', 'containers', 0);
    const args = at(container, 'args') as readonly string[];
    t.deepEqual(
      args.filter((arg) => arg.startsWith('--metrics-address')),
      [`--metrics-address=0.0.0.0:${port}`],
    );
    t.deepEqual(at(container, 'ports'), [{ name: 'metrics', containerPort: port, protocol: 'TCP' }]);
    const monitor = objects.find((one) => one['kind'] === 'PodMonitor' && at(one, 'metadata', 'name') === name);
    t.is(at(monitor, 'spec', 'podMetricsEndpoints', 0, 'port'), 'metrics');
  }
  const dashboards = objects.filter((one) => at(one, 'metadata', 'labels', 'grafana_dashboard') === '1');
  t.deepEqual(
    dashboards.map((one) => at(one, 'data', 'tke-eni.json')),
    [read('conf/monitoring/dashboard.json')],
  );
  t.is(objects.filter(({ kind }) => kind === 'PrometheusRule').length, 1);
});
