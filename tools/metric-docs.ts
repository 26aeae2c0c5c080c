import type { Registry } from 'prom-client';
import { createMetrics } from '../agent/observability/metrics.ts';
import { createIpamdMetrics } from '../ipamd/observability/metrics.ts';
import { systemClock } from '../runtime/clock.ts';
import { createSchedulerMetrics } from '../scheduler/observability/metrics.ts';
import { createWebhookMetrics } from '../webhook/metrics.ts';

/** Renders `docs/reference/metrics.md` of the registries themselves. */
export function renderMetricDocs(): string {
  const agent = createMetrics({ processMetrics: false }).registry;
  const usage = () => ({ residentBytes: 0, heapBytes: 0, cpuSeconds: 0 });
  const ipamd = createIpamdMetrics(systemClock, { release: '', usage }).registry;
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
    ...table(agent),
    '',
    '## tke-eni-ipamd',
    '',
    'Port 61681 of each replica (`--metrics-address`). What only a leader knows, only the leader has.',
    '',
    ...table(ipamd),
    '',
    '## tke-eni-ip-scheduler',
    '',
    'Port 61691 of each replica (`--metrics-address`).',
    '',
    ...table(createSchedulerMetrics(systemClock, { release: '', usage }).registry),
    '',
    '## tke-eni-ip-webhook',
    '',
    'Port 61693 of each replica (`--metrics-address`).',
    '',
    ...table(createWebhookMetrics({ release: '', usage }).registry),
    '',
  ].join('\n');
}

function table(registry: Registry): readonly string[] {
  const rows = registry.getMetricsAsArray().map((metric) => {
    const { name, help } = metric;
    const labels = labelsOf(metric).map((label) => `\`${label}\``);
    return `| \`${name}\` | ${kindOf(metric)} | ${labels.join(', ')} | ${help} |`;
  });
  return ['| metric | type | labels | tells |', '|---|---|---|---|', ...rows.toSorted()];
}

/** The library has them on each metric and not in its types. */
function labelsOf(metric: object): readonly string[] {
  const names = 'labelNames' in metric ? metric.labelNames : [];
  return Array.isArray(names) ? names.map(String) : [];
}

/** Counter, Gauge or Histogram: the class that the metric was made of. */
function kindOf(metric: object): string {
  return metric.constructor.name.toLowerCase();
}
