import type { Instance } from '../../cloud/cloud.ts';
import type { EniLimits } from '../../cloud/eni-limits.ts';

/** What is known of an instance. */
export type InstanceRecord = {
  /** As last described; of a deleted one the last description. */
  readonly instance?: Instance;
  readonly limits?: EniLimits;
  /** Number of descriptions in a row without the instance; those within a moment count as one. */
  readonly missed: number;
  /** When the last of them was counted; monotonic milliseconds. */
  readonly missedAtMs?: number;
  /** Since when it is described as STOPPED without interruption; monotonic milliseconds. */
  readonly stoppedSinceMs?: number;
};

/**
 * State of an instance, derived from its descriptions.
 * - `unknown`: not described yet, or missing for the first time: nothing is decided on it.
 * - `running`: may get ENIs. `idle`: it exists, but gets none now (starting, stopping, stopped for less than the
 * grace).
 * - `stopped`: for longer than the grace; nothing on it is in use.
 * - `gone`: does not exist any more, or is being destroyed.
 */
export type Presence = 'unknown' | 'running' | 'idle' | 'stopped' | 'gone';

/** One description can miss an existing instance; two in a row, minutes or a second description apart, do not. */
const MISSES_UNTIL_DELETED = 2;
/** A description that lags does so for some seconds, and for every request in them. */
const MISSES_APART_MS = 10_000;
const RUNNING: readonly string[] = ['RUNNING', 'STARTING', 'REBOOTING'];
const ENDING: readonly string[] = ['SHUTDOWN', 'TERMINATING', 'LAUNCH_FAILED'];

/** Adds one description to the record; `described` is undefined when the instance was not in the answer. */
export function recordDescription(
  before: InstanceRecord | undefined,
  described: Instance | undefined,
  nowMs: number,
): InstanceRecord {
  if (described === undefined) {
    const isSameMoment = before?.missedAtMs !== undefined && nowMs - before.missedAtMs < MISSES_APART_MS;
    if (before !== undefined && isSameMoment) return before;
    return { ...before, missed: (before?.missed ?? 0) + 1, missedAtMs: nowMs };
  }
  // The instance was resized: the limits of the former type do not apply any more.
  const isResized =
    before?.instance?.instanceType !== described.instanceType || before.instance.cores !== described.cores;
  const limits = isResized ? undefined : before?.limits;
  const stoppedSinceMs = described.state === 'STOPPED' ? (before?.stoppedSinceMs ?? nowMs) : undefined;
  return {
    instance: described,
    missed: 0,
    ...(limits === undefined ? {} : { limits }),
    ...(stoppedSinceMs === undefined ? {} : { stoppedSinceMs }),
  };
}

/** Reports whether the descriptions lack an instance: it counts as gone without a word of the cloud about it. */
export function isUnlisted(record: InstanceRecord | undefined): boolean {
  return record !== undefined && record.missed >= MISSES_UNTIL_DELETED;
}

/** Derives the state of an instance from its record. */
export function presenceOf(record: InstanceRecord | undefined, nowMs: number, stoppedGraceMs: number): Presence {
  if (record === undefined) return 'unknown';
  const { instance, missed, stoppedSinceMs } = record;
  if (missed >= MISSES_UNTIL_DELETED) return 'gone';
  if (instance === undefined) return 'unknown';
  if (ENDING.includes(instance.state)) return 'gone';
  if (RUNNING.includes(instance.state)) return 'running';
  return stoppedSinceMs !== undefined && nowMs - stoppedSinceMs >= stoppedGraceMs ? 'stopped' : 'idle';
}
