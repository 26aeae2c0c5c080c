import { openChildSignal } from './child-signal.ts';
import type { Clock, Timer } from './clock.ts';

type Sleeper = Pick<Clock, 'sleep'>;
/** A timer of a clock. Unlike `startTimer`, which is of the process, it waits as its clock goes. */
export type ClockTimer = Pick<Timer, 'cancel'>;

/** The reason for which a cancelled timer ends: it is dropped, and one for each timer would cost more than the timer. */
const CANCELLED = new Error('the timer was cancelled');

/** Calls `run` once, after `ms` milliseconds of a clock; `Infinity` never ends. */
export function timerOn(clock: Sleeper, run: () => void, ms: number): ClockTimer {
  const over = new AbortController();
  const ended = (): void => {
    if (!over.signal.aborted) run();
  };
  clock.sleep(ms, over.signal).then(ended, (error: unknown) => {
    if (!over.signal.aborted) throw error;
  });
  return { cancel: () => over.abort(CANCELLED) };
}

/** Calls `run` again and again, `everyMs` milliseconds of a clock apart; at least one. */
export function intervalOn(clock: Sleeper, run: () => void, everyMs: number): ClockTimer {
  let current: ClockTimer;
  let isOver = false;
  const arm = (): ClockTimer =>
    timerOn(
      clock,
      () => {
        run();
        if (!isOver) current = arm();
      },
      Math.max(1, everyMs),
    );
  current = arm();
  return {
    cancel: () => {
      isOver = true;
      current.cancel();
    },
  };
}

/**
 * Does work with a signal that aborts with a TimeoutError after `ms` milliseconds of a clock, or as `outer` does. Resolves
 * and rejects as the work does; nothing waits any more then.
 */
export async function inTime<T>(
  clock: Sleeper,
  ms: number,
  work: (signal: AbortSignal) => Promise<T>,
  outer?: AbortSignal,
): Promise<T> {
  const { signal, abort, close } = outer === undefined ? openChildSignal() : openChildSignal(outer);
  const timer = timerOn(clock, () => abort(new DOMException('the time is over', 'TimeoutError')), ms);
  try {
    return await work(signal);
  } finally {
    timer.cancel();
    close();
  }
}
