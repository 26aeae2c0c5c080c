import { TurnQueue } from './turn-queue.ts';

/**
 * A mutex for each key: work of one key runs strictly one after the other, work of different keys runs concurrently. Those who
 * wait for a key take turns by their lanes, and within a lane are served in order of arrival. A key uses memory only while it
 * has work.
 */
export class KeyedMutex {
  readonly #waiting = new Map<string, TurnQueue<() => void>>();

  /** Number of keys that have work running or waiting. */
  get size(): number {
    return this.#waiting.size;
  }

  /**
   * Waits for the turn of `lane` at `key`, then runs `work`; resolves or rejects as `work` does. A failure does not block
   * later work.
   */
  async run<T>(key: string, work: () => T | Promise<T>, lane = ''): Promise<T> {
    const turn = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) {
      this.#waiting.set(key, new TurnQueue());
      turn.resolve();
    } else waiting.add(turn.resolve, lane);
    try {
      await turn.promise;
      return await work();
    } finally {
      const next = this.#waiting.get(key)?.take();
      if (next === undefined) this.#waiting.delete(key);
      else next();
    }
  }
}
