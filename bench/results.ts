import type { BenchRow } from './row.ts';

/** Where and when a suite's rows were measured. */
export type BenchRun = {
  /** Machine of the run. */
  readonly machine: BenchMachine;
  /** Commit of the checkout; `-dirty` follows where tracked files differed from it. */
  readonly commit: string;
  /** When the suite began; RFC 3339, UTC. */
  readonly date: string;
  /** How long the suite took. */
  readonly seconds: number;
};

/** What a machine is, as far as it explains figures. */
export type BenchMachine = {
  readonly kernel: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly node: string;
  /** Load average of the last minute before the suite began: near 0 on a quiet machine. */
  readonly load: number;
};

/** `bench/results.json`: all rows, and by suite the run that measured them. */
type BenchResults = { readonly runs: Readonly<Record<string, BenchRun>>; readonly rows: readonly BenchRow[] };

/** Rows of one suite, with their run. */
export type SuiteResults = { readonly suite: string; readonly run: BenchRun; readonly rows: readonly BenchRow[] };

/** Replaces the rows and the run of each suite that was measured; those of other suites stay. Rows come by suite in the order of `order`. */
export function mergeResults(
  earlier: BenchResults,
  measured: readonly SuiteResults[],
  order: readonly string[],
): BenchResults {
  const own = new Map(measured.map((one) => [one.suite, one]));
  const suites = [...new Set([...order, ...earlier.rows.map(({ suite }) => suite)])];
  const rows = suites.flatMap((suite) => own.get(suite)?.rows ?? earlier.rows.filter((row) => row.suite === suite));
  const runs = suites.flatMap((suite) => {
    const run = own.get(suite)?.run ?? earlier.runs[suite];
    return run === undefined ? [] : [[suite, run] as const];
  });
  return { runs: Object.fromEntries(runs), rows };
}

/** Parses `bench/results.json`. Files of before have no runs. */
export function parseResults(text: string): BenchResults {
  // Written by an earlier run of this very program.
  const { runs = {}, rows } = JSON.parse(text) as Partial<BenchResults> & Pick<BenchResults, 'rows'>;
  return { runs, rows };
}
