import { Histogram, type Metric, Registry } from 'prom-client';
import { createMetrics } from '../../agent/observability/metrics.ts';
import { createCcmMetrics } from '../../cloud-controller-manager/observability/metrics.ts';
import { createIpamdMetrics } from '../../ipamd/observability/metrics.ts';
import { systemClock } from '../../runtime/clock.ts';
import { collectNodeMetrics } from '../../runtime/metrics/metric-table.ts';
import { createSchedulerMetrics } from '../../scheduler/observability/metrics.ts';
import { createWebhookMetrics } from '../../webhook/metrics.ts';

/** Each series name that a scrape of one of our processes may have, with its labels. */
type MetricTable = ReadonlyMap<string, ReadonlySet<string>>;

type Known = { readonly name: string; readonly labelNames: readonly string[] };

/** Makes everybody's metrics, and looks at what they put into a registry: names, kinds, labels. */
export function metricTables(): MetricTable {
  const table = new Map<string, ReadonlySet<string>>();
  const register = Registry.prototype.registerMetric;
  Registry.prototype.registerMetric = function observed(metric: Metric): void {
    for (const [name, labels] of seriesOf(metric)) table.set(name, new Set(labels));
    register.call(this, metric);
  };
  try {
    collectNodeMetrics(createMetrics().registry);
    const about = { release: 'test', usage: () => ({ residentBytes: 1, heapBytes: 1, cpuSeconds: 1 }) };
    createIpamdMetrics(systemClock, about);
    createSchedulerMetrics(systemClock, about);
    createWebhookMetrics(about);
    createCcmMetrics(systemClock, about);
  } finally {
    Registry.prototype.registerMetric = register;
  }
  return table;
}

/** A histogram has three series; only its buckets have `le`. */
function seriesOf(metric: Metric): readonly (readonly [string, readonly string[]])[] {
  const { name, labelNames } = metric as Metric & Known;
  if (!(metric instanceof Histogram)) return [[name, labelNames]];
  return [
    [`${name}_bucket`, [...labelNames, 'le']],
    [`${name}_sum`, labelNames],
    [`${name}_count`, labelNames],
  ];
}
