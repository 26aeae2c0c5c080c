import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Creates metrics of ipamd in one registry; every name gets ipamd's prefix. */
export type MetricFactory = {
  readonly registry: Registry;
  counter<L extends string>(name: string, help: string, labelNames?: readonly L[]): Counter<L>;
  /** `collect` sets the values at each scrape; nothing is counted in between. */
  gauge<L extends string>(
    name: string,
    help: string,
    labelNames?: readonly L[],
    collect?: (gauge: Gauge<L>) => void,
  ): Gauge<L>;
  histogram<L extends string>(
    name: string,
    help: string,
    buckets: readonly number[],
    labelNames?: readonly L[],
  ): Histogram<L>;
};

/** Prefix of every metric of ipamd. */
const METRIC_PREFIX = 'tke_eni_ipamd_';

/** Milliseconds in a second: metrics are in seconds, everything else is in milliseconds. */
export const MS_PER_S = 1000;

/** Creates a registry of its own, so that several ipamds in one process count separately. */
export function createMetricFactory(): MetricFactory {
  const registry = new Registry();
  const registers = [registry];
  return {
    registry,
    counter: (name, help, labelNames = []) =>
      new Counter({ name: `${METRIC_PREFIX}${name}`, help, labelNames, registers }),
    gauge: (name, help, labelNames = [], collect) =>
      new Gauge({
        name: `${METRIC_PREFIX}${name}`,
        help,
        labelNames,
        registers,
        ...(collect && {
          collect() {
            this.reset();
            collect(this);
          },
        }),
      }),
    histogram: (name, help, buckets, labelNames = []) =>
      new Histogram({ name: `${METRIC_PREFIX}${name}`, help, labelNames, buckets: [...buckets], registers }),
  };
}
