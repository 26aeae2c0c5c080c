import type { LockRecord } from './lock-record.ts';

/** A lock as it was read; absent when there is none. */
export type LockSeen = { readonly resourceVersion: string; readonly record: LockRecord } | undefined;

/** What a candidate has seen of a lock. Times are its own monotonic clock's, in milliseconds. */
export type Sight = {
  readonly seen: LockSeen;
  /** Since when it is known to be unchanged. */
  readonly sinceMs: number;
  /** When the last look was begun. */
  readonly lastMs: number;
  /** It is free beyond doubt: no holder can believe that it still has it. */
  readonly isFree: boolean;
};

/**
 * Adds a look at the lock to what was seen before (undefined: nothing, this process has just started). Pure.
 *
 * Only what was in sight without a gap counts as unchanged: behind a gap the server may have been restored to an older
 * state, with a leader at work whom that state does not know.
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
  // A release keeps the count of terms: one with another count is an older one, brought back by a restore.
  const isReleasedNow = isReleased && before.seen?.record.transitions === seen.record.transitions;
  return { ...first, isFree: isReleasedNow };
}

/** When a look was begun, and when it was answered. */
export type LookTimes = { readonly lookedMs: number; readonly nowMs: number };

/** What is seen after a term of one's own: nothing that counts. */
export const BLIND: Sight = {
  seen: undefined,
  sinceMs: Number.NEGATIVE_INFINITY,
  lastMs: Number.NEGATIVE_INFINITY,
  isFree: false,
};

/** No lease is that long; a larger number in a record is a mistake, which must not keep everybody out for ever. */
const LONGEST_LEASE_MS = 600_000;

/** Decides whether a candidate may take the lock now; else how long it still has to see it unchanged. Pure. */
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
  // Two histories of a restored server may use one revision twice.
  return a.resourceVersion === b.resourceVersion && JSON.stringify(a.record) === JSON.stringify(b.record);
}
