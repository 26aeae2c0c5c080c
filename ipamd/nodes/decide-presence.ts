import type { Instance } from '../../cloud/cloud.ts';
import type { EniLimits } from '../../cloud/eni-limits.ts';

/** What is known of an instance. */
export type InstanceRecord = {
  /** As last described; of a gone one, the last that was seen. */
  readonly instance?: Instance;
  readonly limits?: EniLimits;
  /** Descriptions in a row in which it was absent; those within a moment count as one. */
  readonly missed: number;
  /** When the last of them was counted; monotonic milliseconds. */
  readonly missedAtMs?: number;
  /** Since when it is seen STOPPED without a break; monotonic milliseconds. */
  readonly stoppedSinceMs?: number;
};

/**
 * What became of an instance.
 * - `unknown`: not described yet, or absent for the first time: nothing is decided on it.
 * - `running`: may take ENIs. `idle`: it is there, but takes none now (starting, stopping, stopped for less than the grace).
 * - `stopped`: for longer than the grace; nothing on it is in use.
 * - `gone`: does not exist any more, or is being destroyed.
 */
export type Presence = 'unknown' | 'running' | 'idle' | 'stopped' | 'gone';

/** One description can miss what is there; two in a row, minutes or an express repeat apart, do not. */
const MISSES_UNTIL_GONE = 2;
/** A description that is behind is so for some seconds, and for everybody who asks in them. */
const MISSES_APART_MS = 10_000;
const RUNNING: readonly string[] = ['RUNNING', 'STARTING', 'REBOOTING'];
const ENDING: readonly string[] = ['SHUTDOWN', 'TERMINATING', 'LAUNCH_FAILED'];

/** Adds one description to what is known; `seen` is undefined when the instance was not in the answer. Pure. */
export function recordSight(
  before: InstanceRecord | undefined,
  seen: Instance | undefined,
  nowMs: number,
): InstanceRecord {
  if (seen === undefined) {
    const isOfOneMoment = before?.missedAtMs !== undefined && nowMs - before.missedAtMs < MISSES_APART_MS;
    if (before !== undefined && isOfOneMoment) return before;
    return { ...before, missed: (before?.missed ?? 0) + 1, missedAtMs: nowMs };
  }
  // Another size: the limits of the old one do not hold any more.
  const isResized = before?.instance?.instanceType !== seen.instanceType || before.instance.cores !== seen.cores;
  const limits = isResized ? undefined : before?.limits;
  const stoppedSinceMs = seen.state === 'STOPPED' ? (before?.stoppedSinceMs ?? nowMs) : undefined;
  return {
    instance: seen,
    missed: 0,
    ...(limits === undefined ? {} : { limits }),
    ...(stoppedSinceMs === undefined ? {} : { stoppedSinceMs }),
  };
}

/** Tells what became of an instance. Pure. */
export function presenceOf(record: InstanceRecord | undefined, nowMs: number, stoppedGraceMs: number): Presence {
  if (record === undefined) return 'unknown';
  const { instance, missed, stoppedSinceMs } = record;
  if (missed >= MISSES_UNTIL_GONE) return 'gone';
  if (instance === undefined) return 'unknown';
  if (ENDING.includes(instance.state)) return 'gone';
  if (RUNNING.includes(instance.state)) return 'running';
  return stoppedSinceMs !== undefined && nowMs - stoppedSinceMs >= stoppedGraceMs ? 'stopped' : 'idle';
}
