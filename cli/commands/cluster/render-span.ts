const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Longest span that is printed exactly: ten years. */
const MAX_MS = 3_650 * DAY_MS;

/**
 * Writes a duration in its largest unit with at least two digits: '90s', '45m', '36h', '12d'. Above ten years it writes
 * '10y+'. It rounds down.
 */
export function spanText(ms: number): string {
  if (ms < 120_000) return `${Math.floor(ms / 1_000)}s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / 60_000)}m`;
  if (ms === HOUR_MS) return '1h';
  if (ms < 2 * HOUR_MS) return `${Math.floor(ms / 60_000)}m`;
  if (ms === DAY_MS) return '1d';
  if (ms < 2 * DAY_MS) return `${Math.floor(ms / HOUR_MS)}h`;
  return ms > MAX_MS ? '10y+' : `${Math.floor(ms / DAY_MS)}d`;
}
