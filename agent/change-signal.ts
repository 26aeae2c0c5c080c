/** Wakes everybody who waits, whenever something changed; carries no value, for the waiter looks for itself. */
export class ChangeSignal {
  readonly #waiting = new Set<() => void>();

  /** Wakes all who wait now. */
  notify(): void {
    for (const wake of this.#waiting) wake();
  }

  /** Resolves at the next `notify`, after `ms`, or when `signal` aborts, whichever is first. Never rejects. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const over = Promise.withResolvers<void>();
    const wake = (): void => over.resolve();
    const timer = setTimeout(wake, ms);
    this.#waiting.add(wake);
    signal.addEventListener('abort', wake, { once: true });
    try {
      await over.promise;
    } finally {
      // A signal may live as long as the process: what is left on it is never given back.
      signal.removeEventListener('abort', wake);
      this.#waiting.delete(wake);
      clearTimeout(timer);
    }
  }
}
