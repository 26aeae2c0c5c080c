import { type Clock, systemClock } from './clock.ts';

/** Wakes everybody who waits, whenever something changed; carries no value, for the waiter looks for itself. */
export class ChangeSignal {
  readonly #waiting = new Set<() => void>();
  readonly #clock: Clock;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /** Wakes all who wait now. */
  notify(): void {
    for (const wake of this.#waiting) wake();
  }

  /** Resolves at the next `notify`, after `ms`, or when `signal` aborts, whichever is first. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const over = new AbortController();
    const wake = (): void => over.abort();
    this.#waiting.add(wake);
    signal.addEventListener('abort', wake, { once: true });
    try {
      await this.#clock.sleep(ms, over.signal);
    } catch (error) {
      if (!over.signal.aborted) throw error;
    } finally {
      // A signal may live as long as the process: what is left on it is never given back.
      signal.removeEventListener('abort', wake);
      this.#waiting.delete(wake);
    }
  }
}
