import { startTimer } from './timer.ts';

/** A clock and a timer. This port keeps `Date.now()` and `setTimeout` out of decisions, so that tests control time. */
export type Clock = {
  /** Wall clock, milliseconds since the epoch: for people, and for times that other programs wrote. May jump. */
  nowMs(): number;
  /** Monotonic milliseconds, comparable within one process only: for durations. */
  monotonicMs(): number;
  /**
   * Whole milliseconds since the machine started, without suspended time: for deadlines that outlive this process but
   * not this boot. Never jumps, and all processes read the same value. @see clock_gettime(2) CLOCK_MONOTONIC
   */
  bootMs(): number;
  /** Resolves after `ms` milliseconds, however many they are; `Infinity` never ends. Rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
};

/** The clock of the machine. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  bootMs: () => Number(process.hrtime.bigint() / 1_000_000n),
  // Not by `timers/promises`: for each sleep that is aborted, and most are, it makes an error with a stack trace.
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(signal.reason);
      const abort = (): void => {
        timer.cancel();
        reject(signal?.reason);
      };
      const timer = startTimer(() => {
        signal?.removeEventListener('abort', abort);
        resolve();
      }, ms);
      signal?.addEventListener('abort', abort, { once: true });
    }),
};
