import { plainText } from '../../runtime/plain-text.ts';
import { cutText, padText, textWidth } from './cell-text.ts';
import { type Color, paint } from './color.ts';

/**
 * Renders rows in columns, one line for each row, below a line of titles; never wraps. Where the width does not
 * suffice, columns with a priority are dropped, the lowest first; then the widest cells are cut with '…'. Ends with a
 * newline.
 */
export function renderTable<T>(rows: readonly T[], columns: readonly Column<T>[], options: TableOptions): string {
  const { width = Number.POSITIVE_INFINITY, isColored, hasTitles = true } = options;
  const laid = columns.map((column) => layColumn(rows, column, hasTitles));
  const shown = dropColumns(laid, width);
  const widths = shrink(shown, width);
  const lines: string[] = [];
  if (hasTitles)
    lines.push(renderLine(shown, widths, (column) => ({ text: column.column.title, color: 'bold' }), isColored));
  for (const [index, row] of rows.entries()) {
    lines.push(
      renderLine(
        shown,
        widths,
        ({ cells, column }) => ({ text: cells[index] ?? '', color: column.color?.(row) }),
        isColored,
      ),
    );
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

/** One column of a table. */
export type Column<T> = {
  /** As printed, in capitals: POD, IP. */
  readonly title: string;
  readonly text: (row: T) => string;
  /** Alignment; numbers are right-aligned. Default left. */
  readonly align?: 'left' | 'right';
  /**
   * The column with the lowest priority is dropped first when the table is too wide; without a priority it always
   * stays.
   */
  readonly priority?: number;
  readonly color?: (row: T) => Color | undefined;
};

/** How a table is laid out. */
type TableOptions = {
  /** Columns of the terminal; Infinity (the default) for `-o wide`: nothing is dropped or cut. */
  readonly width?: number;
  readonly isColored: boolean;
  /** False leaves out the line of titles. */
  readonly hasTitles?: boolean;
};

const GAP = 2;
/** Minimum width of a column: less is not readable. */
const MIN_WIDTH = 6;

type Laid<T> = { readonly column: Column<T>; readonly cells: readonly string[]; readonly width: number };

function layColumn<T>(rows: readonly T[], column: Column<T>, hasTitle: boolean): Laid<T> {
  const cells = rows.map((row) => plainText(column.text(row)));
  const width = cells.reduce((max, cell) => Math.max(max, textWidth(cell)), hasTitle ? textWidth(column.title) : 0);
  return { column, cells, width };
}

function totalOf(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, 0) + GAP * Math.max(0, widths.length - 1);
}

/** Drops columns by priority until the rest fits without cuts. */
function dropColumns<T>(columns: readonly Laid<T>[], width: number): readonly Laid<T>[] {
  let remaining = columns;
  while (totalOf(remaining.map((column) => column.width)) > width) {
    const lowest = remaining.reduce<Laid<T> | undefined>((found, column) => {
      const priority = column.column.priority;
      return priority !== undefined && priority < (found?.column.priority ?? Number.POSITIVE_INFINITY) ? column : found;
    }, undefined);
    if (lowest === undefined) break;
    remaining = remaining.filter((column) => column !== lowest);
  }
  return remaining;
}

/** Takes the excess width from the widest columns, evenly. */
function shrink<T>(columns: readonly Laid<T>[], width: number): readonly number[] {
  const widths = columns.map((column) => column.width);
  let excess = totalOf(widths) - width;
  while (excess > 0) {
    const widest = Math.max(...widths);
    if (widest <= MIN_WIDTH) break;
    const at = widths.indexOf(widest);
    const next = Math.max(MIN_WIDTH, ...widths.filter((_, index) => index !== at));
    const cut = Math.max(1, Math.min(excess, widest - next));
    widths[at] = widest - cut;
    excess -= cut;
  }
  return widths;
}

type Cell = { readonly text: string; readonly color: Color | undefined };

function renderLine<T>(
  columns: readonly Laid<T>[],
  widths: readonly number[],
  cellOf: (column: Laid<T>) => Cell,
  isColored: boolean,
): string {
  let line = '';
  for (const [index, column] of columns.entries()) {
    const width = widths[index] ?? 0;
    const { text, color } = cellOf(column);
    const cut = cutText(text, width);
    const padded = padText(cut, width, column.column.align);
    // Colour covers the text alone, so that blanks are never underlined or inverted, and the end can be trimmed.
    line += padded.replace(cut, () => paint(cut, color, isColored));
    if (index < columns.length - 1) line += ' '.repeat(GAP);
  }
  return line.trimEnd();
}
