/** One line of a benchmark: ours and a peer, measured side by side in the same run. */
export type BenchRow = {
  readonly suite: string;
  readonly case: string;
  /** Median of ours, in `unit`. */
  readonly ours: number;
  /** Median of the peer, or the bound that stands in for one. */
  readonly peer: number;
  /** What the peer is: `ip -batch`, `ptp + host-local`, `bound`. */
  readonly peerName: string;
  /** `ops/s` or `packets/s`: more is better; the others: less is better. */
  readonly unit: BenchUnit;
  /** Above 1 means that ours is better, whatever the unit. */
  readonly ratio: number;
  /** What a reader should know beside the numbers: runs, sizes, other readings. */
  readonly extra?: string;
};

/** Units of a benchmark, and with them the direction of better. */
type BenchUnit = 'ops/s' | 'packets/s' | 'us' | 'ms' | 's' | 'MiB' | 'calls' | 'writes' | '%';

/** Makes a row; derives the ratio, so that its direction follows the unit. Nothing against a bound of nothing is level. */
export function benchRow(row: Omit<BenchRow, 'ratio'>): BenchRow {
  const moreIsBetter = row.unit === 'ops/s' || row.unit === 'packets/s';
  if (row.ours === row.peer) return { ...row, ratio: 1 };
  return { ...row, ratio: moreIsBetter ? row.ours / row.peer : row.peer / row.ours };
}

/** Computes the median. `values` must not be empty. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle];
  const lower = sorted[sorted.length % 2 === 0 ? middle - 1 : middle];
  if (upper === undefined || lower === undefined) throw new RangeError('median of nothing');
  return (lower + upper) / 2;
}

/** Computes the quartiles: a quarter of the values is below the first, half below the second. `values` must not be empty. */
export function quartiles(values: readonly number[]): readonly [number, number, number] {
  const sorted = values.toSorted((a, b) => a - b);
  const half = Math.ceil(sorted.length / 2);
  return [median(sorted.slice(0, half)), median(sorted), median(sorted.slice(-half))];
}
