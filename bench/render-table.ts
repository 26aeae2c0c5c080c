import type { BenchRow } from './row.ts';

/** Renders rows as a table of aligned columns, 80 columns wide where the names allow it; `extra` goes below. */
export function renderTable(rows: readonly BenchRow[]): string {
  const header = ['case', 'ours', 'peer', 'unit', 'ratio', 'peer is'];
  const cells = rows.map((row) => [
    `${row.suite}/${row.case}`,
    readable(row.ours),
    readable(row.peer),
    row.unit,
    row.ratio.toFixed(2),
    row.peerName,
  ]);
  const widths = header.map((title, column) =>
    Math.max(title.length, ...cells.map((line) => line[column]?.length ?? 0)),
  );
  const lines = [header, ...cells].map((line) =>
    line
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return column === 0 || column === header.length - 1 ? cell.padEnd(width) : cell.padStart(width);
      })
      .join('  ')
      .trimEnd(),
  );
  const notes = rows.flatMap((row) => (row.extra === undefined ? [] : [`  ${row.suite}/${row.case}: ${row.extra}`]));
  return [...lines, ...notes].join('\n');
}

function readable(value: number): string {
  if (value >= 10_000) return `${(value / 1000).toFixed(1)}k`;
  return value >= 100 ? value.toFixed(0) : value.toFixed(2);
}
