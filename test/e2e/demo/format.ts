/** Widest line that the demo prints. */
const WIDTH = 80;
/** Where remarks begin. */
const REMARK_COLUMN = 62;

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

/** What a command printed, indented, long lines continued on the next, without empty lines. */
export function quote(command: string, output: string): string {
  const lines = output
    .split('\n')
    .map((line) => expandTabs(line.trimEnd()))
    .filter((line) => line !== '');
  return [`  # ${command}`, ...lines.flatMap((line) => wrap(`  ${line}`))].join('\n');
}

/** Lays a sentence out in indented lines. */
export function wrapText(text: string, indent: string): string {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= WIDTH) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(cut(`${indent}${word}`));
  }
  return lines.join('\n');
}

/** Puts a remark behind a line, where all remarks stand, if there is room. */
export function remark(line: string, text: string): string {
  const remarked = `${line.padEnd(REMARK_COLUMN)}# ${text}`;
  return remarked.length + 2 <= WIDTH ? remarked : line;
}

/** Leading tabs are two spaces each. */
function expandTabs(line: string): string {
  return line.replaceAll('\t', '  ');
}

/** Breaks a line at a space; what follows is indented further. */
function wrap(line: string): readonly string[] {
  if (line.length <= WIDTH) return [line];
  const at = line.lastIndexOf(' ', WIDTH);
  const indent = line.length - line.trimStart().length;
  if (at <= indent) return [cut(line)];
  return [line.slice(0, at), ...wrap(`${' '.repeat(indent + 4)}${line.slice(at + 1)}`)];
}

function cut(line: string): string {
  return line.length <= WIDTH ? line : `${line.slice(0, WIDTH - 1)}…`;
}
