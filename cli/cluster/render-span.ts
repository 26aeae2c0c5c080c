const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Longer is no forecast any more. */
const MOST_MS = 3_650 * DAY_MS;

/** Writes a span in its largest unit with two digits at least: '90s', '45m', '36h', '12d'; ten years is the most. Never more than it is. Pure. */
export function spanText(ms: number): string {
  if (ms < 120_000) return `${Math.floor(ms / 1_000)}s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / 60_000)}m`;
  if (ms === HOUR_MS) return '1h';
  if (ms < 2 * HOUR_MS) return `${Math.floor(ms / 60_000)}m`;
  if (ms === DAY_MS) return '1d';
  if (ms < 2 * DAY_MS) return `${Math.floor(ms / HOUR_MS)}h`;
  return ms > MOST_MS ? '10y+' : `${Math.floor(ms / DAY_MS)}d`;
}
