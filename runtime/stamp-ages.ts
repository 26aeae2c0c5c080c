import type { Clock } from './clock.ts';

/**
 * Ages of times that objects carry, such as `retainedSince`, measured so that a step of the wall clock ends nothing
 * early. An object outlives the process, so its time is one of the wall clock. It is compared with the wall clock where
 * it is first read; from then on the age grows with the monotonic clock. An age is never more than both clocks say:
 * after a step forward the monotonic clock counts, and after the correction of a clock that was ahead the wall clock.
 * A time in the future comes from a wrong clock, so its age begins with 0. While a step back lasts, an age may lack as
 * much as the step.
 */
export class StampAges {
  readonly #clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
  readonly #first = new Map<string, { readonly stamp: string; readonly ageMs: number; readonly readMs: number }>();

  constructor(clock: Pick<Clock, 'nowMs' | 'monotonicMs'>) {
    this.#clock = clock;
  }

  /**
   * Returns the stamp of a key that was read first: the object has had one since, so that another one is an edit.
   * Undefined without a stamp.
   */
  firstOf(key: string, stamp: string | undefined): string | undefined {
    return stamp === undefined ? undefined : (this.#first.get(key)?.stamp ?? stamp);
  }

  /**
   * Returns the milliseconds since `stamp` (RFC 3339), at least 0. `key` names the object; another stamp of it begins
   * again. Without a stamp, or with one that cannot be read, the age is 0 and the key is forgotten: call it so when the
   * object is gone.
   */
  ageMs(key: string, stamp: string | undefined): number {
    const stampMs = stamp === undefined ? Number.NaN : Date.parse(stamp);
    if (stamp === undefined || Number.isNaN(stampMs)) {
      this.#first.delete(key);
      return 0;
    }
    const wallAgeMs = this.#clock.nowMs() - stampMs;
    const nowMs = this.#clock.monotonicMs();
    const known = this.#first.get(key);
    const first = known?.stamp === stamp ? known : { stamp, ageMs: Math.max(0, wallAgeMs), readMs: nowMs };
    if (first !== known) this.#first.set(key, first);
    const ageMs = first.ageMs + nowMs - first.readMs;
    // A wall clock that is before the stamp is wrong, and says nothing of its age.
    return wallAgeMs < 0 ? ageMs : Math.min(ageMs, wallAgeMs);
  }
}
