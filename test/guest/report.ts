/** First word of a line of a guest's console that is a report. */
export const REPORT = 'GUEST-REPORT ';

/** Reports what a script in a guest saw; the test outside reads it. */
export function report(name: string, seen: unknown): void {
  process.stdout.write(`\n${REPORT}${JSON.stringify({ name, seen })}\n`);
}
