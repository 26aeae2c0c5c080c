import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/**
 * The metrics of a program, by the name of their handle. What counts, sets or measures takes the handle of a row; rows
 * that are `collected` are read at each scrape, from a state `S`. The reference of metrics is made from the rows too.
 */
export type MetricRows<S = never> = Readonly<Record<string, MetricRow<S>>>;

type MetricRow<S> = CounterRow<string> | HistogramRow<string> | GaugeRow<string> | SubjectsRow | CollectedRow<S>;

type Row<T extends string, L extends string> = {
  readonly type: T;
  readonly name: string;
  /** In place of the prefix of the program: a metric that has the name of an upstream program. */
  readonly prefix?: string;
  readonly help: string;
  readonly labels: readonly L[];
};
type CounterRow<L extends string> = Row<'counter', L>;
type HistogramRow<L extends string> = Row<'histogram', L> & { readonly buckets: readonly number[] };
/** `isOfTerm`: a leader sets it; it is empty, or 0, after its term. */
type GaugeRow<L extends string> = Row<'gauge', L> & { readonly isOfTerm?: true };
type SubjectsRow = Row<'gauge', string> & { readonly of: 'subjects' };
type CollectedRow<S> = Row<'gauge', string> & { readonly collect: (state: S) => Samples };

/** The value of a gauge without labels, `true` for 1, undefined for none; or a value for each set of labels. */
type Samples = number | boolean | undefined | Iterable<readonly [labels: Labels, value: number]>;
type Labels = Readonly<Record<string, string | number>>;

/** Makes the row of a counter. */
export function counter<L extends readonly string[]>(name: string, help: string, ...labels: L): CounterRow<L[number]> {
  return { type: 'counter', name, help, labels };
}

/** Makes the row of a histogram; buckets in seconds. */
export function histogram<L extends readonly string[]>(
  name: string,
  help: string,
  buckets: readonly number[],
  ...labels: L
): HistogramRow<L[number]> {
  return { type: 'histogram', name, help, labels, buckets };
}

/** Makes the row of a gauge that shows what was set last. */
export function gauge<L extends readonly string[]>(name: string, help: string, ...labels: L): GaugeRow<L[number]> {
  return { type: 'gauge', name, help, labels };
}

/** Makes the row of a gauge that a leader sets: it is empty, or 0, after its term. */
export function termGauge<L extends readonly string[]>(name: string, help: string, ...labels: L): GaugeRow<L[number]> {
  return { ...gauge(name, help, ...labels), isOfTerm: true };
}

/**
 * Makes the row of a gauge that counts subjects, such as nodes, by label value; each subject has the values set last. A
 * leader sets it: it is empty after its term.
 */
export function subjects(name: string, help: string, label: string): SubjectsRow {
  return { type: 'gauge', name, help, labels: [label], of: 'subjects' };
}

/** Makes the row of a gauge that is read at each scrape. */
export function collected<S>(
  name: string,
  help: string,
  labels: readonly string[],
  collect: (state: S) => Samples,
): CollectedRow<S> {
  return { type: 'gauge', name, help, labels, collect };
}

/** The handles of rows. One that is collected has none. */
export type MetricsOf<R extends MetricRows> = {
  readonly [K in keyof R as R[K] extends CollectedRow<never> ? never : K]: HandleOf<R[K]>;
};

type HandleOf<R> = R extends SubjectsRow
  ? SubjectsHandle
  : R extends HistogramRow<infer L>
    ? HistogramHandle<L>
    : R extends CounterRow<infer L>
      ? CounterHandle<L>
      : R extends GaugeRow<infer L>
        ? GaugeHandle<L>
        : never;
type LabelsOf<L extends string> = Readonly<Record<L, string | number>>;
/** What comes first where a metric has labels. */
type Labelled<L extends string, Rest extends readonly unknown[]> = [L] extends [never]
  ? Rest
  : [labels: LabelsOf<L>, ...Rest];

type CounterHandle<L extends string> = { inc(...args: Labelled<L, [by?: number]>): void };
/** The time is in milliseconds, as everywhere; the metric has seconds. */
type HistogramHandle<L extends string> = { observeMs(...args: Labelled<L, [ms: number]>): void };
type GaugeHandle<L extends string> = { set(...args: Labelled<L, [value: number]>): void } & ([L] extends [never]
  ? unknown
  : SeriesHandle<L>);
type SeriesHandle<L extends string> = {
  remove(labels: LabelsOf<L>): void;
  /** Sets these samples, and no others. */
  replace(samples: Iterable<readonly [labels: LabelsOf<L>, value: number]>): void;
};
/** Sets the values under which a subject counts; none: it counts no more. */
type SubjectsHandle = { set(subject: string, values: readonly string[]): void };

/** Open metrics: a handle for each row, and the registry that is scraped. */
export type OpenMetrics<R extends MetricRows> = MetricsOf<R> & {
  readonly registry: Registry;
  /** Empties the gauges of a leader: another replica leads now. */
  clearTerm(): void;
};

/** Milliseconds in a second: metrics are in seconds, everything else is in milliseconds. */
export const MS_PER_S = 1000;

/** The metrics of a program; `prefix` begins the name of each, such as `tke_eni_ipamd_`. */
export type MetricTable<R extends MetricRows = MetricRows> = { readonly prefix: string; readonly rows: R };

/** Opens the metrics of a table in a registry of their own. `state` is read at each scrape. */
export function openMetrics<S, R extends MetricRows<S>>({ prefix, rows }: MetricTable<R>, state: S): OpenMetrics<R> {
  const registry = new Registry();
  const resets: (() => void)[] = [];
  const handles = Object.entries(rows).map(([key, row]) => {
    const { help, labels: labelNames } = row;
    const common = { name: nameOf(prefix, row), help, labelNames: [...labelNames], registers: [registry] };
    if (row.type === 'counter') return [key, new Counter(common)];
    if (row.type === 'histogram') return [key, openHistogram(new Histogram({ ...common, buckets: [...row.buckets] }))];
    if ('collect' in row) return [key, openCollected(common, () => row.collect(state))];
    if (!('of' in row)) {
      const made = new Gauge(common);
      if (row.isOfTerm === true) resets.push(() => made.reset());
      return [key, Object.assign(made, { replace: (samples: Samples) => replace(made, samples) })];
    }
    const values = new Map<string, readonly string[]>();
    resets.push(() => values.clear());
    openCollected(common, () => samplesBy(labelNames[0] ?? '', countsOf([...values.values()].flat())));
    return [key, openSubjects(values)];
  });
  const clearTerm = (): void => {
    for (const reset of resets) reset();
  };
  // Each handle is of the type that its row says.
  return { ...Object.fromEntries(handles), registry, clearTerm } as OpenMetrics<R>;
}

/** Returns the whole name of a metric. */
export function nameOf(prefix: string, row: Pick<MetricRow<never>, 'name' | 'prefix'>): string {
  return `${row.prefix ?? prefix}${row.name}`;
}

/** Returns samples of one label: a value for each value of it. */
export function samplesBy(label: string, values: Iterable<readonly [string, number]>): Samples {
  return [...values].map(([value, count]) => [{ [label]: value }, count] as const);
}

/** Counts equal values. */
export function countsOf(values: Iterable<string>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

/** The metrics `nodejs_eventloop_lag_*` are sampled so often, also by an idle process: each 10 ms would be 0.6 % of a core. */
const LAG_PRECISION_MS = 100;

/** Adds the usual metrics of a Node.js process. */
export function collectNodeMetrics(register: Registry): void {
  collectDefaultMetrics({ register, eventLoopMonitoringPrecision: LAG_PRECISION_MS });
}

function openHistogram(made: Histogram): HistogramHandle<string> & HistogramHandle<never> {
  return {
    observeMs: (...args: readonly [number] | readonly [Labels, number]) => {
      const [labels, ms] = args.length === 1 ? [{}, args[0]] : args;
      made.observe(labels, ms / MS_PER_S);
    },
  };
}

type Configuration = ConstructorParameters<typeof Gauge>[0];

function openCollected(configuration: Configuration, collect: () => Samples): void {
  const made: Gauge = new Gauge({ ...configuration, collect: () => replace(made, collect()) });
}

function openSubjects(values: Map<string, readonly string[]>): SubjectsHandle {
  return {
    set: (subject, its) => {
      if (its.length === 0) values.delete(subject);
      else values.set(subject, [...new Set(its)]);
    },
  };
}

function replace(made: Gauge, samples: Samples): void {
  made.reset();
  if (typeof samples === 'number' || typeof samples === 'boolean') made.set(Number(samples));
  else for (const [labels, value] of samples ?? []) made.set({ ...labels }, value);
}
