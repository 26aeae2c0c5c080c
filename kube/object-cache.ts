import { keptBytes } from './kept-bytes.ts';
import type { KubeObject } from './kube-client.ts';

/** A change of one object; `before` absent: new, `after` absent: deleted. */
export type ObjectChange<T> = { readonly key: string; readonly before?: T; readonly after?: T };

type Indexers<T> = Readonly<Record<string, (value: T, key: string) => readonly string[]>>;

/**
 * Bounds what a cache keeps of objects whose size their authors choose, in bytes as `keptBytes` estimates them. No honest object
 * reaches them.
 */
export type CacheBounds<T> = {
  readonly objectBytes: number;
  /** For all objects of a namespace together that are not small. */
  readonly namespaceBytes: number;
  /** Smaller objects are always kept, and take nothing of the namespace's; default 2 KiB. */
  readonly smallBytes?: number;
  /**
   * Returns what is kept in place of an object that is too large; undefined: nothing, as if there were no such object.
   * @param why for people: `more than 64 KiB`
   */
  readonly instead?: (object: KubeObject, key: string, why: string) => T | undefined;
};

/** Receives the errors of a cache. */
type CacheReports = {
  /** An object is too large to be kept; called once for each of its versions. */
  readonly onTooLarge?: (key: string, why: string) => void;
  readonly onUndecodable: (key: string, error: unknown) => void;
  readonly onListenerError: (key: string, error: unknown) => void;
};

/** Returns the key of an object: `namespace/name`, or `name`. */
function keyOf({ metadata }: Pick<KubeObject, 'metadata'>): string {
  return metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;
}

const SMALL_BYTES = 2_048;
/** The text of an index, its Map, and the entries in both. */
const INDEX_KEY_BYTES = 256;

function namespaceOf(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf('/')));
}

function kibibytes(bytes: number): string {
  return `${Math.round(bytes / 1_024)} KiB of memory`;
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
  readonly #bounds: CacheBounds<T> | undefined;
  /** Bytes of objects that are not small, by key, and of those of each namespace together. */
  readonly #large = new Map<string, number>();
  readonly #used = new Map<string, number>();
  /** Versions that are too large, by key: each is reported once. */
  readonly #tooLarge = new Map<string, string>();
  /** Namespaces of objects that were not kept for lack of capacity. */
  readonly #crowded = new Set<string>();
  #hasFreedCapacity = false;
  /** Versions that could not be decoded, by key: each is reported once. */
  readonly #undecodable = new Map<string, string>();

  constructor(
    decode: (object: KubeObject, key: string) => T | undefined,
    indexers: Indexers<T>,
    reports: CacheReports,
    bounds?: CacheBounds<T>,
  ) {
    this.#decode = decode;
    this.#bounds = bounds;
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

  /** Reports whether an index has a value under a text. */
  hasAny(name: string, text: string): boolean {
    return this.#indexes.get(name)?.has(text) === true;
  }

  /** Reports, once, that a namespace has capacity again in which objects were not kept for lack of it: a new list brings them. */
  takeFreedCapacity(): boolean {
    const hasCapacity = this.#hasFreedCapacity;
    this.#hasFreedCapacity = false;
    return hasCapacity;
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
    if (entry === undefined) {
      this.#keep(key, 0);
      this.#drop(key);
    } else this.#set(key, entry);
    return key;
  }

  /** Removes an object. */
  remove(object: KubeObject): void {
    const key = keyOf(object);
    this.#undecodable.delete(key);
    this.#tooLarge.delete(key);
    this.#keep(key, 0);
    this.#drop(key);
  }

  /** Removes all objects except the given ones. */
  retainOnly(keys: ReadonlySet<string>): void {
    for (const key of [...this.#large.keys()]) if (!keys.has(key)) this.#keep(key, 0);
    for (const key of [...this.#values.keys()]) if (!keys.has(key)) this.#drop(key);
    for (const versions of [this.#undecodable, this.#tooLarge]) {
      for (const key of [...versions.keys()]) if (!keys.has(key)) versions.delete(key);
    }
  }

  /** Calls `listener` with each change. Returns a function that ends this. */
  subscribe(listener: (change: ObjectChange<T>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #entryOf(key: string, object: KubeObject): Entry<T> | undefined | 'undecodable' {
    try {
      const value = this.#decode(object, key);
      const entry = value === undefined ? undefined : this.#indexed(value, key);
      return entry === undefined || this.#bounds === undefined
        ? entry
        : this.#bounded(entry, key, object, this.#bounds);
    } catch (error) {
      const version = object.metadata.resourceVersion ?? '';
      if (this.#undecodable.get(key) !== version) {
        this.#undecodable.set(key, version);
        this.#reports.onUndecodable(key, error);
      }
      return 'undecodable';
    }
  }

  #indexed(value: T, key: string): Entry<T> {
    const indexKeys = this.#indexers.flatMap(([index, textsOf]) =>
      textsOf(value, key).map((text) => [index, text] as const),
    );
    return { value, indexKeys };
  }

  /** Returns the entry if it is within the bounds, else what is kept in its place. */
  #bounded(entry: Entry<T>, key: string, object: KubeObject, bounds: CacheBounds<T>): Entry<T> | undefined {
    const { objectBytes, namespaceBytes, smallBytes = SMALL_BYTES, instead } = bounds;
    const bytes = keptBytes(entry.value, objectBytes) + entry.indexKeys.length * INDEX_KEY_BYTES;
    const namespace = namespaceOf(key);
    const used = (this.#used.get(namespace) ?? 0) - (this.#large.get(key) ?? 0);
    const isTooLarge = bytes > objectBytes;
    if (!isTooLarge && (bytes <= smallBytes || used + bytes <= namespaceBytes)) {
      this.#tooLarge.delete(key);
      this.#keep(key, bytes <= smallBytes ? 0 : bytes);
      return entry;
    }
    this.#keep(key, 0);
    if (!isTooLarge) this.#crowded.add(namespace);
    const why = isTooLarge
      ? `more than ${kibibytes(objectBytes)}`
      : `more than ${kibibytes(namespaceBytes)} together with other objects of its namespace`;
    const version = object.metadata.resourceVersion ?? '';
    if (this.#tooLarge.get(key) !== version) this.#reports.onTooLarge?.(key, why);
    this.#tooLarge.set(key, version);
    const value = instead?.(object, key, why);
    return value === undefined ? undefined : this.#indexed(value, key);
  }

  /** Notes how many bytes of its namespace's an object takes; 0: none. */
  #keep(key: string, bytes: number): void {
    const before = this.#large.get(key) ?? 0;
    if (before === bytes) return;
    const namespace = namespaceOf(key);
    const used = (this.#used.get(namespace) ?? 0) - before + bytes;
    if (used > 0) this.#used.set(namespace, used);
    else this.#used.delete(namespace);
    if (bytes > 0) this.#large.set(key, bytes);
    else this.#large.delete(key);
    if (bytes < before && this.#crowded.delete(namespace)) this.#hasFreedCapacity = true;
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
