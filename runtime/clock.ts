import { onAbort } from './on-abort.ts';

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
      const timer = startTimer(() => {
        leave?.();
        resolve();
      }, ms);
      const leave =
        signal &&
        onAbort(signal, () => {
          timer.cancel();
          reject(signal.reason);
        });
    }),
};

/**
 * Calls `run` once, after `ms` milliseconds however many they are: a timer of Node that is asked for 2^31 or more, or for no
 * number, ends after one. `Infinity` never ends.
 */
export function startTimer(run: () => void, ms: number): Timer {
  return openTimer(ms, () => {
    run();
    return undefined;
  });
}

/** Calls `run` again and again, `everyMs` milliseconds apart, as `startTimer` counts them; at least one. */
export function startInterval(run: () => void, everyMs: number): Timer {
  return openTimer(everyMs, () => {
    run();
    return everyMs;
  });
}

/**
 * Returns a signal that aborts with a TimeoutError after `ms` milliseconds, however many they are. It does not keep the process
 * alive. `AbortSignal.timeout` throws for a part of a millisecond, and ends after one when it is asked for 2^31 or more.
 */
export function timeoutSignal(ms: number): AbortSignal {
  const wholeMs = Math.ceil(delayOf(ms));
  if (wholeMs <= MAX_TIMER_MS) return AbortSignal.timeout(wholeMs);
  const late = new AbortController();
  startTimer(() => late.abort(new DOMException('the time is over', 'TimeoutError')), wholeMs).unref();
  return late.signal;
}

/** A timer that was started. */
export type Timer = {
  /** Ends it; nothing is called any more. Idempotent. */
  cancel(): void;
  /** Lets the process end while the timer waits. */
  unref(): Timer;
};

/** The longest delay of a timer of Node, milliseconds. @see https://nodejs.org/api/timers.html#settimeoutcallback-delay-args */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** @param onDue returns the delay until the next call; undefined: there is none. */
function openTimer(firstMs: number, onDue: () => number | undefined): Timer {
  let isOver = false;
  let isReferenced = true;
  const arm = (leftMs: number): NodeJS.Timeout => {
    const ms = Math.min(leftMs, MAX_TIMER_MS);
    const armed = setTimeout(() => {
      const nextMs = leftMs > MAX_TIMER_MS ? leftMs - MAX_TIMER_MS : onDue();
      if (nextMs !== undefined && !isOver) current = arm(delayOf(nextMs));
    }, ms);
    return isReferenced ? armed : armed.unref();
  };
  let current = arm(delayOf(firstMs));
  const timer: Timer = {
    cancel: () => {
      isOver = true;
      clearTimeout(current);
    },
    unref: () => {
      isReferenced = false;
      current.unref();
      return timer;
    },
  };
  return timer;
}

/** Returns the delay that counts, milliseconds: one that is no number, or negative, is none. */
export function delayOf(ms: number): number {
  return ms > 0 ? ms : 0;
}
