import { setTimeout as delay } from 'node:timers/promises';

/** Tells time and waits; the port that keeps `Date.now()` and `setTimeout` out of decisions, so that tests own time. */
export type Clock = {
  /** Wall clock, milliseconds since the epoch: for what people read and other programs wrote. May jump. */
  nowMs(): number;
  /** Monotonic milliseconds, comparable within one process only: for durations. */
  monotonicMs(): number;
  /**
   * Whole milliseconds since the machine started, suspended time left out: for deadlines that outlive this process and
   * not this boot. Never jumps, and all processes agree on it. @see clock_gettime(2) CLOCK_MONOTONIC
   */
  bootMs(): number;
  /** Resolves after `ms` milliseconds. Rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
};

/** The machine's own clock. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  bootMs: () => Number(process.hrtime.bigint() / 1_000_000n),
  sleep: async (ms, signal) => {
    try {
      await delay(ms, undefined, signal === undefined ? {} : { signal });
    } catch (error) {
      // `timers/promises` wraps the reason in an AbortError of its own; callers compare reasons, so hand it on bare.
      throw signal?.aborted ? signal.reason : error;
    }
  },
};
