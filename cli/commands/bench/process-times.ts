import { readFileSync, readlinkSync } from 'node:fs';

/** Clock ticks per second: the unit of times in /proc, the same on all architectures. @see proc(5), sysconf(3) */
const TICKS_PER_SECOND = 100;

/** Returns this process's id in the PID namespace that /proc shows. */
export function ownPid(): number {
  return Number(readlinkSync('/proc/self'));
}

/** Returns whether a process with this id exists. */
export function isAlive(pid: number): boolean {
  try {
    readFileSync(`/proc/${pid}/stat`);
    return true;
  } catch {
    return false;
  }
}

/** Returns the CPU time of a process, user and system, in milliseconds in steps of 10; undefined when it has ended. */
export function cpuMs(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, in parentheses, may contain blanks and parentheses. Fields 14 and 15 are the 12th and 13th after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS_PER_SECOND;
  } catch {
    return undefined;
  }
}
