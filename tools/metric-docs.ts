import { AGENT_METRICS } from '../agent/observability/metrics.ts';
import { CCM_METRICS } from '../cloud-controller-manager/observability/metrics.ts';
import { IPAMD_METRICS } from '../ipamd/observability/metrics.ts';
import { type MetricTable, nameOf } from '../runtime/metrics/metric-table.ts';
import { SCHEDULER_METRICS } from '../scheduler/observability/metrics.ts';
import { WEBHOOK_METRICS } from '../webhook/metrics.ts';

/** One metric of an executable. */
type MetricDoc = {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly help: string;
};

/** An executable that serves metrics. */
type Program =
  | 'tke-eni-agent'
  | 'tke-eni-ipamd'
  | 'tke-eni-ip-scheduler'
  | 'tke-eni-ip-webhook'
  | 'tke-cloud-controller-manager';

/** Lists the metrics that each executable registers, in the order of their names; those of Node.js itself are left out. */
export function metricRows(): Readonly<Record<Program, readonly MetricDoc[]>> {
  return {
    'tke-eni-agent': rowsOf(AGENT_METRICS),
    'tke-eni-ipamd': rowsOf(IPAMD_METRICS),
    'tke-eni-ip-scheduler': rowsOf(SCHEDULER_METRICS),
    'tke-eni-ip-webhook': rowsOf(WEBHOOK_METRICS),
    'tke-cloud-controller-manager': rowsOf(CCM_METRICS),
  };
}

/** Renders `docs/reference/metrics.md` from the tables of metrics. */
export function renderMetricDocs(): string {
  const rows = metricRows();
  return [
    '<!-- Written by `make gen` from what the observability folders and webhook/metrics.ts register. -->',
    '# Metrics',
    '',
    'Times are in seconds, sizes in bytes. Alerts on them, and a runbook for each alert, are in `conf/monitoring/`.',
    '',
    '## tke-eni-agent',
    '',
    '`http://127.0.0.1:61680/metrics` of each node (`--metrics-address`). Beside these it has the usual ones of a Node.js',
    'process (`process_…`, `nodejs_…`).',
    '',
    ...table(rows['tke-eni-agent']),
    '',
    '## tke-eni-ipamd',
    '',
    'Port 61681 of each replica (`--metrics-address`). Metrics of the work of a leader exist on the leader only.',
    '',
    ...table(rows['tke-eni-ipamd']),
    '',
    '## tke-eni-ip-scheduler',
    '',
    'Port 61691 of each replica (`--metrics-address`).',
    '',
    ...table(rows['tke-eni-ip-scheduler']),
    '',
    '## tke-eni-ip-webhook',
    '',
    'Port 61693 of each replica (`--metrics-address`).',
    '',
    ...table(rows['tke-eni-ip-webhook']),
    '',
    '## tke-cloud-controller-manager',
    '',
    'Port 61694 of each replica (`--metrics-address`).',
    '',
    ...table(rows['tke-cloud-controller-manager']),
    '',
  ].join('\n');
}

function table(rows: readonly MetricDoc[]): readonly string[] {
  const lines = rows.map(({ name, type, labels, help }) => {
    const shown = labels.map((label) => `\`${label}\``).join(', ');
    return `| \`${name}\` | ${type} | ${shown} | ${help} |`;
  });
  return ['| metric | type | labels | meaning |', '|---|---|---|---|', ...lines.toSorted()];
}

function rowsOf({ prefix, rows }: MetricTable): readonly MetricDoc[] {
  const all = Object.values(rows).map(({ type, labels, help, ...row }) => ({
    name: nameOf(prefix, row),
    ...{ type, labels, help },
  }));
  return all.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
