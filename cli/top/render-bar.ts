import { type Color, paint } from '../output/color.ts';

/** One part of a bar. */
export type BarPart = { readonly count: number; readonly char: string; readonly color?: Color | undefined };

/**
 * Renders a bar of `width` columns that stands for `total`; parts in their order, what they leave is blank. A part that
 * is not zero has at least one column, as long as there is room: one address in use must not look like none. Pure.
 */
export function renderBar(parts: readonly BarPart[], total: number, width: number, isColored: boolean): string {
  const widths = barWidths(
    parts.map(({ count }) => count),
    total,
    width,
  );
  const body = parts.map(({ char, color }, index) => paint(char.repeat(widths[index] ?? 0), color, isColored)).join('');
  const used = widths.reduce((sum, part) => sum + part, 0);
  return `${body}${' '.repeat(Math.max(0, width - used))}`;
}

function barWidths(counts: readonly number[], total: number, width: number): readonly number[] {
  if (total <= 0) return counts.map(() => 0);
  const widths = counts.map((count) => (count <= 0 ? 0 : Math.max(1, Math.round((count * width) / total))));
  // Rounding up may ask for more than there is: the widest gives.
  for (let excess = widths.reduce((sum, part) => sum + part, 0) - width; excess > 0; excess--) {
    const widest = widths.indexOf(Math.max(...widths));
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}
