/** Tells time and waits; the port that keeps `Date.now()` and `setTimeout` out of decisions, so tests can own time. */
export type Clock = {
  /** Wall clock, milliseconds since the epoch. For deadlines that must survive a restart. */
  nowMs(): number;
  /** Monotonic milliseconds, comparable within one process only. For durations. */
  monotonicMs(): number;
  /** Resolves after `ms` milliseconds. Rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
};
