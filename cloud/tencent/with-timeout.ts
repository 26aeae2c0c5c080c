import type { Clock } from '../../runtime/clock.ts';

/**
 * Runs `work` with a signal of its own that aborts after `ms` with `reason()`, or with `signal`. Settles then at the
 * latest, whether `work` heeds its signal or not.
 */
export async function withTimeout<T>(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  reason: () => Error,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const own = new AbortController();
  const timer = new AbortController();
  const aborted = Promise.withResolvers<never>();
  // Nobody may be left to hear it once `work` is done.
  aborted.promise.catch(() => undefined);
  const abort = (why: unknown): void => {
    own.abort(why);
    aborted.reject(why);
  };
  const onAbort = (): void => abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  clock.sleep(ms, timer.signal).then(
    () => abort(reason()),
    () => undefined,
  );
  try {
    return await Promise.race([work(own.signal), aborted.promise]);
  } finally {
    timer.abort();
    signal.removeEventListener('abort', onAbort);
  }
}
