/**
 * One piece of work that several wait for: each leaves by its own signal, and when nobody waits any more the work is
 * aborted.
 */
export class SharedRun<T> {
  #controller = new AbortController();
  #result: Promise<T>;
  #waiters = 0;

  /** Starts the work, with a signal of its own. */
  constructor(work: (signal: AbortSignal) => Promise<T>) {
    this.#result = work(this.#controller.signal);
    // Each waiter hears of a failure; when all have left, nobody does.
    this.#result.catch(() => undefined);
  }

  /** Whether everybody left: nobody may join any more. */
  get isAborted(): boolean {
    return this.#controller.signal.aborted;
  }

  /** Resolves when the work is over, well or not: for who comes after it. */
  async over(): Promise<void> {
    await this.#result.catch(() => undefined);
  }

  /** Resolves as the work does, or rejects with the signal's reason. */
  async join(signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    this.#waiters += 1;
    const left = Promise.withResolvers<never>();
    left.promise.catch(() => undefined);
    const onAbort = (): void => left.reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      return await Promise.race([this.#result, left.promise]);
    } finally {
      signal.removeEventListener('abort', onAbort);
      this.#waiters -= 1;
      if (this.#waiters === 0) this.#controller.abort(new Error('nobody waits for this any more'));
    }
  }
}
