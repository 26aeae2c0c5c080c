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

/** By what a value is found: names of indexes, and texts. */
type IndexKeys = readonly (readonly [index: string, text: string])[];

type Entry<T> = { readonly value: T; readonly indexKeys: IndexKeys };

/** Cache of the objects of a collection, found by key and by index; notifies its listeners of every change. */
export class ObjectCache<T> {
  readonly #decode: (object: KubeObject, key: string) => T | undefined;
  readonly #indexers: readonly (readonly [string, Indexers<T>[string]])[];
  readonly #reports: CacheReports;
  /** Apart from what they are found by, which most have not: of a hundred thousand Pods each object more counts. */
  readonly #values = new Map<string, T>();
  readonly #indexKeys = new Map<string, IndexKeys>();
  readonly #indexes = new Map<string, Map<string, Map<string, T>>>();
  readonly #listeners = new Set<(change: ObjectChange<T>) => void>();
  /** Versions that could not be decoded, by key: each is reported once. */
  readonly #undecodable = new Map<string, string>();

  constructor(
    decode: (object: KubeObject, key: string) => T | undefined,
    indexers: Indexers<T>,
    reports: CacheReports,
  ) {
    this.#decode = decode;
    this.#indexers = Object.entries(indexers);
    this.#reports = reports;
    for (const [name] of this.#indexers) this.#indexes.set(name, new Map());
  }

  /** Number of cached objects. */
  get size(): number {
    return this.#values.size;
  }

  /** Returns the value of a key; undefined when it is not cached. */
  get(key: string): T | undefined {
    return this.#values.get(key);
  }

  keys(): Iterable<string> {
    return this.#values.keys();
  }

  values(): Iterable<T> {
    return this.#values.values();
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
    for (const key of [...this.#values.keys()]) if (!keys.has(key)) this.#drop(key);
    for (const key of [...this.#undecodable.keys()]) if (!keys.has(key)) this.#undecodable.delete(key);
  }

  /** Calls `listener` with each change. Returns a function that ends this. */
  subscribe(listener: (change: ObjectChange<T>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #entryOf(key: string, object: KubeObject): Entry<T> | undefined | 'undecodable' {
    try {
      const value = this.#decode(object, key);
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
    const before = this.#values.get(key);
    this.#unindex(key);
    this.#values.set(key, entry.value);
    if (entry.indexKeys.length > 0) this.#indexKeys.set(key, entry.indexKeys);
    for (const [index, text] of entry.indexKeys) {
      const texts = this.#indexes.get(index);
      const found = texts?.get(text) ?? new Map<string, T>();
      texts?.set(text, found.set(key, entry.value));
    }
    this.#notify({ key, ...(before === undefined ? {} : { before }), after: entry.value });
  }

  #drop(key: string): void {
    const before = this.#values.get(key);
    if (before === undefined) return;
    this.#unindex(key);
    this.#values.delete(key);
    this.#notify({ key, before });
  }

  #unindex(key: string): void {
    for (const [index, text] of this.#indexKeys.get(key) ?? []) {
      const texts = this.#indexes.get(index);
      const found = texts?.get(text);
      found?.delete(key);
      if (found?.size === 0) texts?.delete(text);
    }
    this.#indexKeys.delete(key);
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
