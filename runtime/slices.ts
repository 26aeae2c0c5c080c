import type { Clock } from './clock.ts';

/** So long one turn of the event loop may take before others get theirs; milliseconds. */
const SLICE_MS = 10;

/**
 * Divides work into slices: between two of them the event loop serves what waits, as renewals of a lock and probes, however
 * many callers have work at once.
 */
export class Slices {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'sleep'>;
  #startedMs = Number.NEGATIVE_INFINITY;
  #last: Promise<void> = Promise.resolve();

  constructor(clock: Pick<Clock, 'monotonicMs' | 'sleep'>) {
    this.#clock = clock;
  }

  /**
   * Waits for a turn of the event loop whose slice is not used up. The caller then works without waiting for anything: its
   * time counts before the next caller goes on.
   */
  async next(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = this.#last;
    this.#last = promise;
    await before;
    if (this.#clock.monotonicMs() - this.#startedMs >= SLICE_MS) {
      await this.#clock.sleep(0);
      this.#startedMs = this.#clock.monotonicMs();
    }
    // The caller goes on between the two.
    queueMicrotask(() => queueMicrotask(resolve));
  }
}
