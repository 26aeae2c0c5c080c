/** First word of a line of a guest's console that is a report. */
export const REPORT = 'GUEST-REPORT ';

/** Reports what a script in a guest saw; the test outside reads it. */
export function report(name: string, seen: unknown): void {
  process.stdout.write(`\n${REPORT}${JSON.stringify({ name, seen })}\n`);
}

/** First word of each line of operations, `flowtable` for those on its table. */
export function summary(lines: readonly string[]): readonly string[] {
  return lines.map((line) => (line.includes('tke_eni_flows') ? 'flowtable' : (line.split(' ')[0] ?? '')));
}
