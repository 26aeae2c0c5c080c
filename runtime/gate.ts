import { onAbort } from './on-abort.ts';

/** A condition of work: while it does not hold, work that needs it has ended and waits. */
export class Gate {
  #opened = Promise.withResolvers<void>();
  #closed = new AbortController();
  #isOpen = true;

  constructor() {
    this.#opened.resolve();
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Aborted when the gate closes; another signal once it is open again. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** Resolves when it is open. Rejects with the signal's reason. */
  async untilOpen(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const aborted = Promise.withResolvers<never>();
    const leave = onAbort(signal, () => aborted.reject(signal.reason));
    try {
      await Promise.race([this.#opened.promise, aborted.promise]);
    } finally {
      leave();
    }
  }

  /** Ends the work, for this reason. Idempotent: returns whether it was open. */
  close(why: string): boolean {
    if (!this.#isOpen) return false;
    this.#isOpen = false;
    this.#opened = Promise.withResolvers();
    this.#closed.abort(new Error(why));
    return true;
  }

  /** Lets work begin. Idempotent: returns whether it was closed. */
  open(): boolean {
    if (this.#isOpen) return false;
    this.#isOpen = true;
    this.#closed = new AbortController();
    this.#opened.resolve();
    return true;
  }
}
