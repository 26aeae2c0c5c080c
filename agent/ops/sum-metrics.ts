import type { SummaryReplyInit } from '../api/ops-messages.ts';

/** One metric in the form of its registry: a histogram's cumulative buckets, sum and count are values too. */
export type MetricSamples = {
  readonly name: string;
  readonly values: readonly {
    readonly value: number;
    readonly metricName?: string;
    readonly labels: Readonly<Record<string, string | number | undefined>>;
  }[];
};

type CallStats = NonNullable<SummaryReplyInit['calls']>[number];

const REQUESTS = 'tke_eni_request_seconds';
const US_PER_S = 1_000_000;

/** Sums a metric over all its labels; 0 when there is none. */
export function sumMetric(metrics: readonly MetricSamples[], name: string): number {
  const values = metrics.find((metric) => metric.name === name)?.values ?? [];
  return values.reduce((sum, { value }) => sum + value, 0);
}

/** Computes the statistics of calls by verb, all codes together. */
export function computeCallStats(metrics: readonly MetricSamples[]): readonly CallStats[] {
  const values = metrics.find(({ name }) => name === REQUESTS)?.values ?? [];
  const byVerb = Map.groupBy(values, ({ labels }) => String(labels['verb']));
  return [...byVerb].map(([verb, ofVerb]) => {
    const sum = (metric: string, matches: (code: string) => boolean = () => true): number =>
      ofVerb
        .filter(({ metricName, labels }) => metricName === `${REQUESTS}_${metric}` && matches(String(labels['code'])))
        .reduce((all, { value }) => all + value, 0);
    return {
      verb,
      total: sum('count'),
      failed: sum('count', (code) => code !== '0'),
      sumUs: Math.round(sum('sum') * US_PER_S),
      buckets: bucketsOf(ofVerb.filter(({ metricName }) => metricName === `${REQUESTS}_bucket`)),
    };
  });
}

/** Prometheus counts a call in its bucket and in all larger ones; here it is counted once. */
function bucketsOf(values: MetricSamples['values']): CallStats['buckets'] {
  const byBound = Map.groupBy(values, ({ labels }) => (labels['le'] === '+Inf' ? 0 : Number(labels['le'])));
  const cumulative = [...byBound]
    .map(([bound, ofBound]) => ({ bound, count: ofBound.reduce((all, { value }) => all + value, 0) }))
    .toSorted((a, b) => (a.bound === 0 ? 1 : b.bound === 0 ? -1 : a.bound - b.bound));
  return cumulative.map(({ bound, count }, index) => ({
    upToUs: Math.round(bound * US_PER_S),
    count: count - (cumulative[index - 1]?.count ?? 0),
  }));
}
