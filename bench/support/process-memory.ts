import { readFileSync } from 'node:fs';

/** Reads a field of /proc/PID/status that is a size, such as VmRSS, RssAnon or VmHWM. MiB; NaN when there is none. */
export function readStatusMib(pid: number, field: string): number {
  const line = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1]) / 1024;
}
