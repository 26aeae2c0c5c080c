import { compareRevisions } from './compare-versions.ts';
import type { Informer } from './informer.ts';

type Cache<T> = Pick<Informer<T>, 'get' | 'keys' | 'progress'>;

type Note<T> = {
  /** The object after the write; undefined: deleted. */
  readonly value: T | undefined;
  /** Of the value; of a deleted object its last one. */
  readonly revision: string;
  /** How many lists the cache had asked for by then. */
  readonly lists: number;
};

/**
 * A cache that is never behind the own writes: their answers count until the cache has received them. What other clients
 * write or delete later counts once the cache has it. A list that was asked for after a write and does not have it shows a restored
 * server, and counts. Keeps no more than the writes that the cache has not received. @see KEP-5504, KEP-5647
 */
export class FreshStore<T> {
  readonly #cache: Cache<T>;
  readonly #revisionOf: (value: T) => string | undefined;
  /** By key, the oldest first. */
  readonly #notes = new Map<string, Note<T>>();

  constructor(cache: Cache<T>, revisionOf: (value: T) => string | undefined) {
    this.#cache = cache;
    this.#revisionOf = revisionOf;
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

  /** Tells whether the cache has not received the last write of an object yet. */
  isBehind(key: string): boolean {
    const note = this.#notes.get(key);
    if (note === undefined) return false;
    const isBehind = !this.#hasReceived(key, note);
    if (!isBehind) this.#notes.delete(key);
    return isBehind;
  }

  /** Stores the answer to a write, or to a read past the cache. Answers for one object come in the order of their requests. */
  note(key: string, value: T): void {
    this.#add(key, value, this.#revisionOf(value) ?? '');
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
    this.#notes.set(key, { value, revision, lists: this.#cache.progress.listsAsked });
    // A cache receives writes in their order.
    for (const oldest of this.#notes.keys()) if (this.isBehind(oldest)) break;
  }

  #hasReceived(key: string, { value, revision, lists }: Note<T>): boolean {
    const { progress } = this.#cache;
    if (progress.listReceived > lists) return true;
    const cached = this.#cache.get(key);
    // The cache has had what was noted; it is gone since.
    if (cached === undefined) return (compareRevisions(progress.revision ?? '', revision) ?? -1) >= 0;
    // Of revisions that are not numbers nothing shows the order: then the cache counts.
    const order = compareRevisions(this.#revisionOf(cached) ?? '', revision);
    return order === undefined || (value === undefined ? order > 0 : order >= 0);
  }
}
