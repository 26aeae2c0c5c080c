import type { LockRecord } from './lock-record.ts';

/** A lock as it was read; undefined when it does not exist. */
export type LockSeen = { readonly resourceVersion: string; readonly record: LockRecord } | undefined;

/** What a candidate has observed of a lock. Times are on its own monotonic clock, in milliseconds. */
export type Sight = {
  readonly seen: LockSeen;
  /** Time since which the lock is known to be unchanged. */
  readonly sinceMs: number;
  /** Time at which the last read began. */
  readonly lastMs: number;
  /** True when the lock is certainly free: no holder can consider itself the leader. */
  readonly isFree: boolean;
};

/**
 * Adds a read of the lock to earlier observations (undefined: none, this process has just started).
 *
 * Only an observation without a gap proves that the lock is unchanged. During a gap the server may have been restored
 * to an older state, and a leader may be active that this state does not contain.
 */
export function lookAgain(
  before: Sight | undefined,
  seen: LockSeen,
  { lookedMs, nowMs }: LookTimes,
  longestGapMs: number,
): Sight {
  const first = { seen, sinceMs: nowMs, lastMs: lookedMs };
  const isReleased = seen !== undefined && seen.record.holder === '';
  if (before === undefined) return { ...first, isFree: seen === undefined || isReleased };
  if (nowMs - before.lastMs > longestGapMs) return { ...first, isFree: false };
  if (isSame(before.seen, seen)) return { ...before, lastMs: lookedMs };
  // A release leaves the count of terms unchanged. A release with another count is an older state that a restore
  // brought back.
  const isReleasedNow = isReleased && before.seen?.record.transitions === seen.record.transitions;
  return { ...first, isFree: isReleasedNow };
}

/** Times at which a read began and at which it was answered. */
type LookTimes = { readonly lookedMs: number; readonly nowMs: number };

/** The observation after a term of this process. Observations made as the leader do not count. */
export const BLIND: Sight = {
  seen: undefined,
  sinceMs: Number.NEGATIVE_INFINITY,
  lastMs: Number.NEGATIVE_INFINITY,
  isFree: false,
};

/**
 * Longest lease that is honoured. No lease is that long; a larger number is a mistake and must not block all candidates
 * for ever.
 */
const LONGEST_LEASE_MS = 600_000;

/** Decides whether a candidate may take the lock now, or how much longer it must observe the lock unchanged. */
export function decideCandidacy(
  sight: Sight,
  nowMs: number,
  leaseMs: number,
): { readonly kind: 'take' } | { readonly kind: 'wait'; readonly ms: number } {
  if (sight.isFree) return { kind: 'take' };
  const theirsMs = Math.min((sight.seen?.record.leaseSeconds ?? 0) * 1000, LONGEST_LEASE_MS);
  const leftMs = sight.sinceMs + Math.max(leaseMs, theirsMs) - nowMs;
  return leftMs <= 0 ? { kind: 'take' } : { kind: 'wait', ms: leftMs };
}

function isSame(a: LockSeen, b: LockSeen): boolean {
  if (a === undefined || b === undefined) return a === b;
  // A restored server may use one resourceVersion twice, so compare the record as well.
  return a.resourceVersion === b.resourceVersion && JSON.stringify(a.record) === JSON.stringify(b.record);
}
