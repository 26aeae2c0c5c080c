import { type Color, paint } from '../../output/color.ts';

/** One segment of a bar. */
export type BarSegment = { readonly count: number; readonly char: string; readonly color?: Color | undefined };

/**
 * Renders a bar of `width` columns for `total`: the segments in their order, the rest blank. A segment above zero gets
 * at least one column, as long as there is space: one address in use must not look like none.
 */
export function renderBar(segments: readonly BarSegment[], total: number, width: number, isColored: boolean): string {
  const widths = barWidths(
    segments.map(({ count }) => count),
    total,
    width,
  );
  const body = segments
    .map(({ char, color }, index) => paint(char.repeat(widths[index] ?? 0), color, isColored))
    .join('');
  const used = widths.reduce((sum, part) => sum + part, 0);
  return `${body}${' '.repeat(Math.max(0, width - used))}`;
}

function barWidths(counts: readonly number[], total: number, width: number): readonly number[] {
  if (total <= 0) return counts.map(() => 0);
  const widths = counts.map((count) => (count <= 0 ? 0 : Math.max(1, Math.round((count * width) / total))));
  // The sum of rounded widths may exceed the bar: the widest segments shrink.
  for (let excess = widths.reduce((sum, part) => sum + part, 0) - width; excess > 0; excess--) {
    const widest = widths.indexOf(Math.max(...widths));
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}
