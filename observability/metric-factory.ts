import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Creates metrics in one registry; every name gets the prefix of the program. */
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

/** Milliseconds in a second: metrics are in seconds, everything else is in milliseconds. */
export const MS_PER_S = 1000;

/** Creates metrics with a prefix such as `tke_eni_ipamd_`, in a registry of their own unless one is given. */
export function createMetricFactory(prefix: string, registry: Registry = new Registry()): MetricFactory {
  const registers = [registry];
  return {
    registry,
    counter: (name, help, labelNames = []) => new Counter({ name: `${prefix}${name}`, help, labelNames, registers }),
    gauge: (name, help, labelNames = [], collect) =>
      new Gauge({
        name: `${prefix}${name}`,
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
      new Histogram({ name: `${prefix}${name}`, help, labelNames, buckets: [...buckets], registers }),
  };
}
