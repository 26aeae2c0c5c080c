import { onAbort } from '../../runtime/on-abort.ts';

/**
 * One piece of work with several waiters. Each waiter leaves by its own signal; when none is left, the work is aborted.
 */
export class SharedRun<T> {
  #controller = new AbortController();
  #result: Promise<T>;
  #waiters = 0;

  /** Starts the work with a signal of its own. */
  constructor(work: (signal: AbortSignal) => Promise<T>) {
    this.#result = work(this.#controller.signal);
    // Each waiter gets a failure through `join`. When all have left, the rejection must still count as handled.
    this.#result.catch(() => undefined);
  }

  /** True when all waiters have left: then the run must not be joined any more. */
  get isAborted(): boolean {
    return this.#controller.signal.aborted;
  }

  /** Resolves when the work has ended, with success or failure. */
  async settled(): Promise<void> {
    await this.#result.catch(() => undefined);
  }

  /** Resolves as the work does, or rejects with the signal's reason. */
  async join(signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    this.#waiters += 1;
    const left = Promise.withResolvers<never>();
    left.promise.catch(() => undefined);
    const leave = onAbort(signal, () => left.reject(signal.reason));
    try {
      return await Promise.race([this.#result, left.promise]);
    } finally {
      leave();
      this.#waiters -= 1;
      if (this.#waiters === 0) this.#controller.abort(new Error('no caller waits for this any more'));
    }
  }
}
