import { latencyText } from '../../agent/duration-text.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import type { RenderOptions } from '../pool/render-pool.ts';

/** Results of a benchmark run. */
export type BenchReport = {
  readonly add?: Figures;
  readonly del?: Figures;
  /** CPU time of the agent for one ADD with its DEL, milliseconds; absent where its process was not found. */
  readonly agentCpuMs?: number;
  /** Total CPU time of this program, milliseconds. */
  readonly ownCpuMs?: number;
  readonly routes: number;
  readonly routeReplace?: Figures;
  readonly routeDump?: Figures;
  /** Time for one route, where all are added in one batch. */
  readonly routeAddMs: number;
  readonly routeDeleteMs: number;
};

type Row = { readonly what: string; readonly figures: Figures };

/** Renders a report: one table row for each measured operation, then batch times and CPU times. */
export function renderBench(report: BenchReport, options: RenderOptions): string {
  const rows: readonly Row[] = [
    ...rowOf('ADD', report.add),
    ...rowOf('DEL', report.del),
    ...rowOf('route replace', report.routeReplace),
    ...rowOf(`dump of ${report.routes} routes`, report.routeDump),
  ];
  const lines = [
    report.routes === 0
      ? ''
      : `batch of ${report.routes} routes: ${ms(report.routeAddMs)} each to add, ${ms(report.routeDeleteMs)} to delete\n`,
    report.agentCpuMs === undefined ? '' : `CPU of the agent: ${ms(report.agentCpuMs)} for one ADD and DEL\n`,
    report.ownCpuMs === undefined ? '' : `CPU of this program: ${ms(report.ownCpuMs)}\n`,
  ];
  return `${renderTable(rows, COLUMNS, options)}\n${lines.join('')}`;
}

function rowOf(what: string, figures: Figures | undefined): readonly Row[] {
  return figures === undefined ? [] : [{ what, figures }];
}

function ms(value: number): string {
  return latencyText(value * 1_000);
}

function column(title: string, of: (figures: Figures) => string): Column<Row> {
  return { title, text: ({ figures }) => of(figures), align: 'right' };
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'WHAT', text: ({ what }) => what },
  column('TIMES', ({ count }) => `${count}`),
  column('MEDIAN', ({ medianMs }) => ms(medianMs)),
  column('P90', ({ p90Ms }) => ms(p90Ms)),
  column('P99', ({ p99Ms }) => ms(p99Ms)),
  column('MAX', ({ maxMs }) => ms(maxMs)),
];

/** Summary of measured durations, in milliseconds to the microsecond. */
type Figures = {
  readonly count: number;
  readonly medianMs: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
};

/**
 * Returns count, quantiles and maximum of durations; undefined for an empty list. A quantile is a measured value: the
 * smallest one such that the given share of all values is at or below it (nearest-rank method).
 */
export function computeFigures(durationsMs: readonly number[]): Figures | undefined {
  const sorted = durationsMs.toSorted((a, b) => a - b);
  const maximum = sorted.at(-1);
  if (maximum === undefined) return undefined;
  const at = (quantile: number) => rounded(sorted[Math.max(0, Math.ceil(quantile * sorted.length) - 1)] ?? maximum);
  return { count: sorted.length, medianMs: at(0.5), p90Ms: at(0.9), p99Ms: at(0.99), maxMs: rounded(maximum) };
}

function rounded(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
