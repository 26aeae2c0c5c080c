/**
 * Sets of names by key. Most keys have one name, which is stored as it is: a Set takes 300 bytes, and a large cluster has a
 * hundred thousand keys.
 */
export class NamesByKey {
  readonly #names = new Map<string, string | Set<string>>();

  /** Reports whether a key has a name. */
  has(key: string): boolean {
    return this.#names.has(key);
  }

  /** Returns the names of a key: none, one, or all in the order in which they were added. The result does not change. */
  get(key: string): readonly string[] {
    const found = this.#names.get(key);
    if (found === undefined) return NONE;
    return typeof found === 'string' ? [found] : [...found];
  }

  keys(): Iterable<string> {
    return this.#names.keys();
  }

  /** Adds a name to a key. Idempotent. */
  add(key: string, name: string): void {
    const found = this.#names.get(key);
    if (found === undefined) this.#names.set(key, name);
    else if (typeof found !== 'string') found.add(name);
    else if (found !== name) this.#names.set(key, new Set([found, name]));
  }

  /** Removes a name from a key. Idempotent. */
  remove(key: string, name: string): void {
    const found = this.#names.get(key);
    if (found === name) this.#names.delete(key);
    if (found === undefined || typeof found === 'string') return;
    found.delete(name);
    const [last] = found;
    if (found.size === 1 && last !== undefined) this.#names.set(key, last);
  }
}

const NONE: readonly string[] = [];
