/**
 * Calls `listener` once when a signal aborts; never when it has aborted already. Returns a function that ends that, to be
 * called when nothing waits any more. Idempotent.
 *
 * An AbortSignal compares each listener that it gets, or loses, with all that it has. Here it has one while anything waits:
 * on a signal that lives as long as the process each wait costs the same, however many there are.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  if (signal.aborted) return () => undefined;
  const waited: Waited = signal;
  waited[WAITS] ??= new Waits(signal);
  return waited[WAITS].add(listener);
}

const WAITS = Symbol('waits');
/** On the signal itself: a WeakMap costs several times as much for each of the many signals that live for one call. */
type Waited = AbortSignal & { [WAITS]?: Waits };

/** What waits on one signal. */
class Waits {
  readonly #signal: AbortSignal;
  readonly #listeners = new Set<() => void>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  add(listener: () => void): () => void {
    // Of its own: the same function may wait twice.
    const own = (): void => listener();
    if (this.#listeners.size === 0) this.#signal.addEventListener('abort', this, { once: true });
    this.#listeners.add(own);
    return () => {
      if (this.#listeners.delete(own) && this.#listeners.size === 0) this.#signal.removeEventListener('abort', this);
    };
  }

  handleEvent(): void {
    for (const listener of this.#listeners) {
      this.#listeners.delete(listener);
      try {
        listener();
      } catch (error) {
        // As for a listener of its own: the others are called, and the process ends of it.
        process.nextTick(() => {
          throw error;
        });
      }
    }
  }
}
