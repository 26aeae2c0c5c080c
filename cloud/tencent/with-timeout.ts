import type { Clock } from '../../runtime/clock.ts';
import { onAbort } from '../../runtime/on-abort.ts';

/** Nobody reads it. An abort without a reason makes a DOMException with a stack, which costs more than most calls here. */
const DONE = 'the work is done';

/**
 * Runs `work` with a signal of its own that aborts after `ms` with `reason()`, or together with `signal`. Settles at
 * that time at the latest, even if `work` ignores its signal.
 */
export async function withTimeout<T>(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  reason: () => Error,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const inner = new AbortController();
  const timer = new AbortController();
  const aborted = Promise.withResolvers<never>();
  // After `work` is done the rejection may have no handler.
  aborted.promise.catch(() => undefined);
  const abort = (why: unknown): void => {
    inner.abort(why);
    aborted.reject(why);
  };
  const leave = onAbort(signal, () => abort(signal.reason));
  clock.sleep(ms, timer.signal).then(
    () => abort(reason()),
    () => undefined,
  );
  try {
    return await Promise.race([work(inner.signal), aborted.promise]);
  } finally {
    timer.abort(DONE);
    leave();
  }
}
