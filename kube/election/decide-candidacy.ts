import type { LockRecord } from './lock-record.ts';

/** A lock as it was read; undefined when it does not exist. */
export type ObservedLock = { readonly resourceVersion: string; readonly record: LockRecord } | undefined;

/** What a candidate has observed of a lock. Times are on its own monotonic clock, in milliseconds. */
export type LockObservation = {
  readonly lock: ObservedLock;
  /** Time since which the lock is known to be unchanged. */
  readonly sinceMs: number;
  /** Time at which the last read began. */
  readonly lastReadMs: number;
  /** True when the lock is certainly free: no holder can consider itself the leader. */
  readonly isFree: boolean;
};

/**
 * Adds a read of the lock to earlier observations (undefined: none, this process has just started).
 *
 * Only an observation without a gap proves that the lock is unchanged. During a gap the server may have been restored
 * to an older state, and a leader may be active that this state does not contain.
 */
export function observeLock(
  before: LockObservation | undefined,
  lock: ObservedLock,
  { startedMs, nowMs }: ReadTimes,
  maxGapMs: number,
): LockObservation {
  const first = { lock, sinceMs: nowMs, lastReadMs: startedMs };
  const isReleased = lock !== undefined && lock.record.holder === '';
  if (before === undefined) return { ...first, isFree: lock === undefined || isReleased };
  if (nowMs - before.lastReadMs > maxGapMs) return { ...first, isFree: false };
  if (isSame(before.lock, lock)) return { ...before, lastReadMs: startedMs };
  // A release leaves the count of terms unchanged. A release with another count is an older state that a restore
  // brought back.
  const isReleasedNow = isReleased && before.lock?.record.transitions === lock.record.transitions;
  return { ...first, isFree: isReleasedNow };
}

/** Times at which a read began and at which it was answered. */
type ReadTimes = { readonly startedMs: number; readonly nowMs: number };

/** The observation after a term of this process. Observations made as the leader do not count. */
export const NO_OBSERVATION: LockObservation = {
  lock: undefined,
  sinceMs: Number.NEGATIVE_INFINITY,
  lastReadMs: Number.NEGATIVE_INFINITY,
  isFree: false,
};

/**
 * Longest lease that is honoured. No lease is that long; a larger number is a mistake and must not block all candidates
 * forever.
 */
const MAX_LEASE_MS = 600_000;

/** Decides whether a candidate may take the lock now, or how much longer it must observe the lock unchanged. */
export function decideCandidacy(
  observation: LockObservation,
  nowMs: number,
  leaseMs: number,
): { readonly kind: 'take' } | { readonly kind: 'wait'; readonly ms: number } {
  if (observation.isFree) return { kind: 'take' };
  const holderLeaseMs = Math.min((observation.lock?.record.leaseSeconds ?? 0) * 1000, MAX_LEASE_MS);
  const leftMs = observation.sinceMs + Math.max(leaseMs, holderLeaseMs) - nowMs;
  return leftMs <= 0 ? { kind: 'take' } : { kind: 'wait', ms: leftMs };
}

function isSame(a: ObservedLock, b: ObservedLock): boolean {
  if (a === undefined || b === undefined) return a === b;
  // A restored server may use one resourceVersion twice, so compare the record as well.
  return a.resourceVersion === b.resourceVersion && JSON.stringify(a.record) === JSON.stringify(b.record);
}
