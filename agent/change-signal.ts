/** Wakes everybody who waits, whenever something changed; carries no value, for the waiter looks for itself. */
export class ChangeSignal {
  #next = Promise.withResolvers<void>();

  /** Wakes all who wait now. */
  notify(): void {
    this.#next.resolve();
    this.#next = Promise.withResolvers<void>();
  }

  /** Resolves at the next `notify`, after `ms`, or when `signal` aborts, whichever is first. Never rejects. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const over = Promise.withResolvers<void>();
    const timer = setTimeout(over.resolve, ms);
    signal.addEventListener('abort', () => over.resolve(), { once: true });
    try {
      await Promise.race([this.#next.promise, over.promise]);
    } finally {
      clearTimeout(timer);
      over.resolve();
    }
  }
}
