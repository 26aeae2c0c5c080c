/** How many tests ended in which way. */
export type TapTotals = { readonly passed: number; readonly failed: number; readonly skipped: number };

/** How one test ended. */
type TapOutcome = { readonly kind: keyof TapTotals; readonly title: string };

const TEST_LINE = /^(not )?ok \d+ - (.*?)(?:\s+# (SKIP|TODO)\b.*)?$/;

const FIGURE = /^# {3}(?: {2})*(figure: .*)$/;

/** Reads a figure that a test logged, `figure: …`; it is printed although the test passed. Undefined for other lines. */
export function parseFigure(line: string): string | undefined {
  return FIGURE.exec(line)?.[1];
}

/** Reads one line of a TAP stream; undefined when it is not the outcome of a test. @see Test Anything Protocol 13 */
export function parseTapLine(line: string): TapOutcome | undefined {
  const match = TEST_LINE.exec(line);
  if (match === null) return undefined;
  const title = match[2] ?? '';
  if (match[3] !== undefined) return { kind: 'skipped', title };
  return { kind: match[1] === undefined ? 'passed' : 'failed', title };
}
