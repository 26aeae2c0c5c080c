import type { Clock } from './clock.ts';
import { onAbort } from './on-abort.ts';

/** Notifies all waiters that something changed. The signal carries no value: each waiter reads the new state itself. */
export class ChangeSignal {
  readonly #waiting = new Set<() => void>();
  #count = 0;
  readonly #clock: Pick<Clock, 'sleep'>;

  constructor(clock: Pick<Clock, 'sleep'>) {
    this.#clock = clock;
  }

  /** How often it has notified. */
  get count(): number {
    return this.#count;
  }

  /** Resolves all pending waits. */
  notify(): void {
    this.#count += 1;
    for (const resolve of this.#waiting) resolve();
  }

  /** Resolves at the next `notify`, after `ms`, or when `signal` aborts, whichever is first. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const over = new AbortController();
    const resolve = (): void => over.abort('changed');
    this.#waiting.add(resolve);
    const leave = onAbort(signal, resolve);
    try {
      await this.#clock.sleep(ms, over.signal);
    } catch (error) {
      if (!over.signal.aborted) throw error;
    } finally {
      leave();
      this.#waiting.delete(resolve);
    }
  }
}
