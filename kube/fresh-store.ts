import { compareRevisions } from './compare-versions.ts';
import type { Informer } from './informer.ts';

type Cache<T> = Pick<Informer<T>, 'get' | 'keys' | 'progress'>;

type Note<T> = {
  /** The object after the write; undefined: deleted. */
  readonly value: T | undefined;
  /** Of the value; of a deleted object its last one. */
  readonly revision: string;
  readonly generation: number | undefined;
  /** How many lists the cache had asked for by then. */
  readonly lists: number;
};

/**
 * A cache that is never older than this process's own writes: what a write returned is used until the watch has delivered
 * it. If a list requested after a write lacks that write, the server was restored, and the list counts. Keeps no more than
 * the writes that the cache has not received. @see KEP-5504, KEP-5647
 */
export class FreshStore<T> {
  readonly #cache: Cache<T>;
  readonly #revisionOf: (value: T) => string | undefined;
  readonly #generationOf: (value: T) => number | undefined;
  /** By key, the oldest first. */
  readonly #notes = new Map<string, Note<T>>();

  /**
   * @param generationOf A restored server gives revisions a second time. Two states with one revision and two generations are
   * of two histories, and what was noted is of the later one: a cache has nothing of it before it lists.
   */
  constructor(
    cache: Cache<T>,
    revisionOf: (value: T) => string | undefined,
    generationOf: (value: T) => number | undefined = () => undefined,
  ) {
    this.#cache = cache;
    this.#revisionOf = revisionOf;
    this.#generationOf = generationOf;
  }

  /** Number of writes that are kept. */
  get size(): number {
    return this.#notes.size;
  }

  /** Returns the newest known state of an object; undefined: there is none. */
  get(key: string): T | undefined {
    const note = this.#notes.get(key);
    return note !== undefined && this.isBehind(key) ? note.value : this.#cache.get(key);
  }

  /** Yields the newest known states of all objects, and copies none of them. */
  *values(): Iterable<T> {
    for (const key of this.#cache.keys()) {
      const value = this.get(key);
      if (value !== undefined) yield value;
    }
    for (const [key, { value }] of this.#notes)
      if (value !== undefined && this.#cache.get(key) === undefined && this.isBehind(key)) yield value;
  }

  /** Reports whether the cache has not received the last write of an object yet. */
  isBehind(key: string): boolean {
    const note = this.#notes.get(key);
    if (note === undefined) return false;
    const isBehind = !this.#hasReceived(key, note);
    if (!isBehind) this.#notes.delete(key);
    return isBehind;
  }

  /** Stores the answer to a write, or to a read past the cache, unless a newer one is known. */
  note(key: string, value: T): void {
    const revision = this.#revisionOf(value) ?? '';
    const newest = this.isBehind(key) ? this.#notes.get(key)?.revision : undefined;
    if (newest !== undefined && (compareRevisions(revision, newest) ?? 0) < 0) return;
    this.#add(key, value, revision);
  }

  /** Notes that an object was deleted. @param revision its last one: any later state in the cache counts */
  noteDeleted(key: string, revision: string): void {
    this.#add(key, undefined, revision);
  }

  /** Drops what was noted of an object: the cache counts. */
  forget(key: string): void {
    this.#notes.delete(key);
  }

  #add(key: string, value: T | undefined, revision: string): void {
    this.#notes.delete(key);
    const generation = value === undefined ? undefined : this.#generationOf(value);
    this.#notes.set(key, { value, revision, generation, lists: this.#cache.progress.listsAsked });
    // A cache receives writes in their order. A deletion may not come about for long: a finalizer keeps the object.
    for (const [oldest, { value: its }] of this.#notes) if (this.isBehind(oldest) && its !== undefined) break;
  }

  #hasReceived(key: string, { value, revision, generation, lists }: Note<T>): boolean {
    const { progress } = this.#cache;
    if (progress.listReceived > lists) return true;
    const cached = this.#cache.get(key);
    // An object that is not there is gone since, once the cache is as far as the note.
    const known = cached === undefined ? progress.revision : (this.#revisionOf(cached) ?? '');
    if (known === undefined) return false;
    // Of revisions that are not numbers nothing shows the order: then the cache counts.
    const order = compareRevisions(known, revision);
    if (order === 0 && cached !== undefined && value !== undefined && this.#generationOf(cached) !== generation)
      return false;
    return order === undefined || (cached !== undefined && value === undefined ? order > 0 : order >= 0);
  }
}
