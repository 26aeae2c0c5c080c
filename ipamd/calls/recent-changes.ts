import type { Clock } from '../../runtime/clock.ts';

/** No description is older than this, and no call has its effect so much later than it was sent. */
export const MAX_DESCRIPTION_AGE_MS = 60_000;

/**
 * When own calls changed what. A description may be older: what it shows of an address that comes back, or of an ENI that is
 * attached again, may be of before both changes. Make one for each term: in its first minute what it does not know may have
 * been changed by the former leader.
 */
export class RecentChanges {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #startedMs: number;
  /** In the order of time; monotonic milliseconds. */
  readonly #atMs = new Map<string, number>();

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs();
  }

  /** Notes that something was changed now. */
  note(key: string): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [known, atMs] of this.#atMs) {
      // A description that is under way may have begun a while ago.
      if (nowMs - atMs <= 2 * MAX_DESCRIPTION_AGE_MS) break;
      this.#atMs.delete(known);
    }
    this.#atMs.delete(key);
    this.#atMs.set(key, nowMs);
  }

  /** Forgets a change that was undone. */
  forget(key: string): void {
    this.#atMs.delete(key);
  }

  /** Reports whether a description that began at `sinceMs` may be older than a change, as far as this leader knows. */
  isRecent(key: string, sinceMs: number): boolean {
    return sinceMs - (this.#atMs.get(key) ?? Number.NEGATIVE_INFINITY) <= MAX_DESCRIPTION_AGE_MS;
  }

  /** Reports the same; what is not known was changed by the former leader when the term began. */
  mayBeRecent(key: string, sinceMs: number): boolean {
    return sinceMs - (this.#atMs.get(key) ?? this.#startedMs) <= MAX_DESCRIPTION_AGE_MS;
  }

  /**
   * Reports whether a description that began at `sinceMs` may be older than one of these changes. Of what this leader made in
   * the last two minutes, as `madeKey` notes, it knows all changes.
   */
  mayPrecede(keys: readonly string[], madeKey: string, sinceMs: number): boolean {
    const isMade = this.#atMs.has(madeKey);
    return keys.some((key) => (isMade ? this.isRecent(key, sinceMs) : this.mayBeRecent(key, sinceMs)));
  }
}
