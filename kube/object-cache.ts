import type { KubeObject } from './kube-client.ts';

/** A change of one object; `before` absent: new, `after` absent: deleted. */
export type ObjectChange<T> = { readonly key: string; readonly before?: T; readonly after?: T };

type Indexers<T> = Readonly<Record<string, (value: T, key: string) => readonly string[]>>;

/** Receives the errors of a cache. */
type CacheReports = {
  readonly onUndecodable: (key: string, error: unknown) => void;
  readonly onListenerError: (key: string, error: unknown) => void;
};

/** Returns the key of an object: `namespace/name`, or `name`. */
function keyOf({ metadata }: Pick<KubeObject, 'metadata'>): string {
  return metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;
}

type Entry<T> = { readonly value: T; readonly indexKeys: readonly (readonly [index: string, text: string])[] };

/** Cache of the objects of a collection, found by key and by index; notifies its listeners of every change. */
export class ObjectCache<T> {
  readonly #decode: (object: KubeObject) => T | undefined;
  readonly #indexers: readonly (readonly [string, Indexers<T>[string]])[];
  readonly #reports: CacheReports;
  readonly #entries = new Map<string, Entry<T>>();
  readonly #indexes = new Map<string, Map<string, Map<string, T>>>();
  readonly #listeners = new Set<(change: ObjectChange<T>) => void>();
  /** Versions that could not be decoded, by key: each is reported once. */
  readonly #undecodable = new Map<string, string>();

  constructor(decode: (object: KubeObject) => T | undefined, indexers: Indexers<T>, reports: CacheReports) {
    this.#decode = decode;
    this.#indexers = Object.entries(indexers);
    this.#reports = reports;
    for (const [name] of this.#indexers) this.#indexes.set(name, new Map());
  }

  /** Number of cached objects. */
  get size(): number {
    return this.#entries.size;
  }

  /** Returns the value of a key; undefined when it is not cached. */
  get(key: string): T | undefined {
    return this.#entries.get(key)?.value;
  }

  keys(): Iterable<string> {
    return this.#entries.keys();
  }

  *values(): Iterable<T> {
    for (const entry of this.#entries.values()) yield entry.value;
  }

  /** Returns the values that an index has under a text. */
  byIndex(name: string, text: string): readonly T[] {
    return [...(this.#indexes.get(name)?.get(text)?.values() ?? [])];
  }

  /**
   * Adds or updates an object and returns its key. Never throws: an object that cannot be decoded is reported and
   * skipped.
   */
  put(object: KubeObject): string {
    const key = keyOf(object);
    const entry = this.#entryOf(key, object);
    if (entry === 'undecodable') return key;
    this.#undecodable.delete(key);
    if (entry === undefined) this.#drop(key);
    else this.#set(key, entry);
    return key;
  }

  /** Removes an object. */
  remove(object: KubeObject): void {
    const key = keyOf(object);
    this.#undecodable.delete(key);
    this.#drop(key);
  }

  /** Removes all objects except the given ones. */
  retainOnly(keys: ReadonlySet<string>): void {
    for (const key of [...this.#entries.keys()]) if (!keys.has(key)) this.#drop(key);
    for (const key of [...this.#undecodable.keys()]) if (!keys.has(key)) this.#undecodable.delete(key);
  }

  /** Calls `listener` with each change. Returns a function that ends this. */
  subscribe(listener: (change: ObjectChange<T>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #entryOf(key: string, object: KubeObject): Entry<T> | undefined | 'undecodable' {
    try {
      const value = this.#decode(object);
      if (value === undefined) return undefined;
      const indexKeys = this.#indexers.flatMap(([index, textsOf]) =>
        textsOf(value, key).map((text) => [index, text] as const),
      );
      return { value, indexKeys };
    } catch (error) {
      const version = object.metadata.resourceVersion ?? '';
      if (this.#undecodable.get(key) !== version) {
        this.#undecodable.set(key, version);
        this.#reports.onUndecodable(key, error);
      }
      return 'undecodable';
    }
  }

  #set(key: string, entry: Entry<T>): void {
    const before = this.#entries.get(key);
    if (before !== undefined) this.#unindex(key, before);
    this.#entries.set(key, entry);
    for (const [index, text] of entry.indexKeys) {
      const texts = this.#indexes.get(index);
      const found = texts?.get(text) ?? new Map<string, T>();
      texts?.set(text, found.set(key, entry.value));
    }
    this.#notify({ key, ...(before === undefined ? {} : { before: before.value }), after: entry.value });
  }

  #drop(key: string): void {
    const before = this.#entries.get(key);
    if (before === undefined) return;
    this.#unindex(key, before);
    this.#entries.delete(key);
    this.#notify({ key, before: before.value });
  }

  #unindex(key: string, { indexKeys }: Entry<T>): void {
    for (const [index, text] of indexKeys) {
      const texts = this.#indexes.get(index);
      const found = texts?.get(text);
      found?.delete(key);
      if (found?.size === 0) texts?.delete(text);
    }
  }

  #notify(change: ObjectChange<T>): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(change);
      } catch (error) {
        this.#reports.onListenerError(change.key, error);
      }
    }
  }
}
