const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Writes a duration in its largest unit, as kubectl does: '0s', '59s', '12m', '5h', '3d'. */
export function ageText(ms: number): string {
  const elapsed = Math.max(0, ms);
  if (elapsed < MINUTE) return `${Math.floor(elapsed / SECOND)}s`;
  if (elapsed < HOUR) return `${Math.floor(elapsed / MINUTE)}m`;
  if (elapsed < DAY) return `${Math.floor(elapsed / HOUR)}h`;
  return `${Math.floor(elapsed / DAY)}d`;
}

/** Writes a short duration with two or three digits: '850us', '1.3ms', '24ms', '1.2s'. */
export function latencyText(us: number): string {
  if (us < 1_000) return `${Math.round(us)}us`;
  if (us < 10_000) return `${(us / 1_000).toFixed(1)}ms`;
  if (us < 1_000_000) return `${Math.round(us / 1_000)}ms`;
  return `${(us / 1_000_000).toFixed(1)}s`;
}

/** Writes the time of day in UTC with milliseconds: '18:25:20.123'. */
export function timeText(unixMs: number): string {
  const ofDay = ((unixMs % DAY) + DAY) % DAY;
  const two = (value: number) => `${Math.floor(value)}`.padStart(2, '0');
  const ms = `${Math.floor(ofDay % SECOND)}`.padStart(3, '0');
  return `${two(ofDay / HOUR)}:${two((ofDay % HOUR) / MINUTE)}:${two((ofDay % MINUTE) / SECOND)}.${ms}`;
}

/** Writes month, day and time of day in UTC: '11-21 18:25:20'. */
export function dateTimeText(unixMs: number): string {
  return new Date(unixMs).toISOString().slice(5, 19).replace('T', ' ');
}
