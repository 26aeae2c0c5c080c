/**
 * Parses a Go duration of whole numbers, such as `30m` or `1h30m`; returns milliseconds, undefined for any other text.
 * @see https://pkg.go.dev/time#ParseDuration
 */
export function parseGoDuration(text: string): number | undefined {
  if (text.length > MAX_CHARS || !/^(\d+(ms|s|m|h))+$/.test(text)) return undefined;
  const parts = [...text.matchAll(/(\d+)(ms|s|m|h)/g)];
  const ms = parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNIT_MS[unit ?? ''] ?? 0), 0);
  return Number.isSafeInteger(ms) ? ms : undefined;
}

const MAX_CHARS = 32;
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
