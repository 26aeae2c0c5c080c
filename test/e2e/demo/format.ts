/** Widest line that the demo prints. */
const WIDTH = 80;

/** Lays cells out in columns, two spaces apart, cut at the width of a terminal. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
    .map((line) => `  ${line}`.trimEnd())
    .map(cut)
    .join('\n');
}

/** A heading with a line of space before it. */
export function heading(text: string): string {
  return `\n${text}\n${'-'.repeat(text.length)}`;
}

/** What a command printed, indented, cut at the width of a terminal, without empty lines. */
export function quote(command: string, output: string): string {
  const lines = output
    .replaceAll('\t', '  ')
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '');
  return [`  # ${command}`, ...lines.map((line) => cut(`  ${line}`))].join('\n');
}

function cut(line: string): string {
  return line.length <= WIDTH ? line : `${line.slice(0, WIDTH - 1)}…`;
}
