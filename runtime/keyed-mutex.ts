/**
 * A mutex for each key: work of one key runs strictly one after the other, in order of arrival; work of different keys
 * runs concurrently. A key uses memory only while it has work.
 */
export class KeyedMutex {
  readonly #tails = new Map<string, Promise<void>>();

  /** Number of keys that have work running or waiting. */
  get size(): number {
    return this.#tails.size;
  }

  /**
   * Waits for earlier work of `key`, then runs `work`; resolves or rejects as `work` does. A failure does not block
   * later work.
   */
  async run<T>(key: string, work: () => T | Promise<T>): Promise<T> {
    const before = this.#tails.get(key);
    const done = Promise.withResolvers<void>();
    this.#tails.set(key, done.promise);
    try {
      await before;
      return await work();
    } finally {
      done.resolve();
      // Only the last caller may remove the key: a later one has replaced the entry by its own.
      if (this.#tails.get(key) === done.promise) this.#tails.delete(key);
    }
  }
}
