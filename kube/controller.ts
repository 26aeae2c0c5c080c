import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import type { WorkQueue } from './work-queue.ts';

/** What happens to a key after a reconcile: nothing, or another reconcile after a delay. */
export type ReconcileResult = { readonly kind: 'done' } | { readonly kind: 'again'; readonly afterMs: number };

/** Receives every reconcile, for metrics. */
export type ControllerObserver = {
  readonly onReconcile?: (reconcile: {
    readonly controller: string;
    readonly outcome: 'done' | 'again' | 'failed';
    readonly ms: number;
  }) => void;
};

/** A controller: its reconcile function, and how many keys it works on at once. */
type ControllerOptions = {
  /** Name in logs and metrics. */
  readonly name: string;
  readonly queue: WorkQueue;
  readonly workers: number;
  /**
   * Brings the state behind a key closer to the desired state. An error is logged, and the key is retried with backoff.
   */
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<ReconcileResult>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly observer?: ControllerObserver;
};

/**
 * Works on a queue of keys until aborted, and resolves when the last running reconcile has ended. A failure affects
 * only its own key; the promise never rejects.
 */
export async function runController(options: ControllerOptions, signal: AbortSignal): Promise<void> {
  await Promise.all(Array.from({ length: options.workers }, () => runWorker(options, signal)));
}

async function runWorker(options: ControllerOptions, signal: AbortSignal): Promise<void> {
  const { queue } = options;
  for (;;) {
    // Aborted or closed: there will be no more work.
    const key = await queue.take(signal).catch(() => undefined);
    if (key === undefined) return;
    try {
      await runOnce(options, key, signal);
    } finally {
      queue.done(key);
    }
  }
}

async function runOnce(options: ControllerOptions, key: string, signal: AbortSignal): Promise<void> {
  const { name, queue, clock, log, observer } = options;
  const startedMs = clock.monotonicMs();
  const report = (outcome: 'done' | 'again' | 'failed') =>
    observer?.onReconcile?.({ controller: name, outcome, ms: clock.monotonicMs() - startedMs });
  try {
    const result = await options.reconcile(key, signal);
    queue.forget(key);
    if (result.kind === 'again') queue.addAfter(key, result.afterMs);
    report(result.kind);
  } catch (error) {
    if (signal.aborted) return;
    report('failed');
    log.warn('reconcile failed, will try again', { controller: name, key, error });
    queue.addRateLimited(key);
  }
}
