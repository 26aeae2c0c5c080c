/** What one test file cost. */
export type FileCost = {
  /** URL of the test file. */
  readonly file: string;
  /** From the start of its process to its end. */
  readonly wallSeconds: number;
  /** User and system time of its process, and of all processes below it that were waited for. */
  readonly cpuSeconds: number;
};

/** How many files a table of the dearest has. */
const MOST_ROWS = 10;

/**
 * Renders a table of the files that took longest, with the sum over all files above it; no line where there is none.
 */
export function renderCosts(costs: readonly FileCost[], root: string): readonly string[] {
  if (costs.length === 0) return [];
  const sum = (pick: (cost: FileCost) => number): number => costs.reduce((total, cost) => total + pick(cost), 0);
  const row = (wall: number, cpu: number, what: string): string =>
    `  ${wall.toFixed(1).padStart(7)} ${cpu.toFixed(1).padStart(7)}  ${what}`;
  const dearest = [...costs].sort((a, b) => b.wallSeconds - a.wallSeconds).slice(0, MOST_ROWS);
  return [
    '   wall s   CPU s',
    row(
      sum((cost) => cost.wallSeconds),
      sum((cost) => cost.cpuSeconds),
      `all ${costs.length} files, one after the other`,
    ),
    ...dearest.map(({ file, wallSeconds, cpuSeconds }) => row(wallSeconds, cpuSeconds, file.replace(root, ''))),
  ];
}

/** Reads what `recordCost` wrote, a JSON document a line. */
export function parseCosts(text: string): readonly FileCost[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line): FileCost => JSON.parse(line));
}

/**
 * Reads from a process's `stat` how long its children ran: ticks in user and in system mode of those it waited for, with
 * theirs. @see proc(5), `cutime` and `cstime` of /proc/pid/stat
 */
export function childTicks(stat: string): number {
  // The second field, the name, may hold blanks and brackets: count behind its last bracket.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[13]) + Number(fields[14]);
}
