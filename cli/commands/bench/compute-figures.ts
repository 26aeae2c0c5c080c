/** Summary of measured durations, in milliseconds to the microsecond. */
export type Figures = {
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
