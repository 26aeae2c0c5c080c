/**
 * An entry of the queue. Higher `rank` is served first; owners of equal rank in turn; entries of one owner in order of
 * arrival.
 */
export type QueueEntry<T> = {
  readonly item: T;
  readonly rank: number;
  readonly owner: string;
  /** Increases with each arrival. */
  readonly serial: number;
};

/** Every so many-th turn goes to the oldest entry, whatever its rank, so that no entry waits for ever. */
const OLDEST_EVERY = 16;

/**
 * A queue that is fair in two ways. Owners of equal rank take turns, so that one node with a thousand requests does not
 * delay the first request of another. Every 16th turn goes to the oldest entry, so that a stream of high rank does not
 * starve the low ranks. It uses neither time nor chance. Every operation takes constant time, except that `take` of the
 * oldest entry looks at one entry per owner.
 */
export class FairQueue<T> {
  /** For each rank, highest first, the owners in the order of their next turn. */
  #ranks = new Map<number, Map<string, QueueEntry<T>[]>>();
  #serial = 0;
  #taken = 0;
  #size = 0;

  /** Number of items that wait. */
  get size(): number {
    return this.#size;
  }

  /** Queues an item. `remove` takes the returned entry out again. */
  add(item: T, rank: number, owner: string): QueueEntry<T> {
    this.#serial += 1;
    const entry: QueueEntry<T> = { item, rank, owner, serial: this.#serial };
    let owners = this.#ranks.get(rank);
    if (owners === undefined) {
      owners = new Map();
      this.#ranks = new Map([...this.#ranks, [rank, owners] as const].sort(([a], [b]) => b - a));
    }
    const entries = owners.get(owner);
    if (entries === undefined) owners.set(owner, [entry]);
    else entries.push(entry);
    this.#size += 1;
    return entry;
  }

  /** Returns the entry whose turn is next; undefined when the queue is empty. */
  peek(): QueueEntry<T> | undefined {
    if (this.#size === 0) return undefined;
    return (this.#taken + 1) % OLDEST_EVERY === 0 ? this.#oldest() : this.#nextInRotation();
  }

  /** Takes the entry whose turn is next, and gives its owner the last turn of its rank. */
  take(): QueueEntry<T> | undefined {
    const entry = this.peek();
    if (entry === undefined) return undefined;
    this.#taken += 1;
    this.remove(entry);
    return entry;
  }

  /** Removes an entry from any position. Returns whether it was queued. */
  remove(entry: QueueEntry<T>): boolean {
    const owners = this.#ranks.get(entry.rank);
    const entries = owners?.get(entry.owner);
    const index = entries?.indexOf(entry) ?? -1;
    if (owners === undefined || entries === undefined || index < 0) return false;
    entries.splice(index, 1);
    owners.delete(entry.owner);
    if (entries.length > 0) owners.set(entry.owner, entries);
    this.#size -= 1;
    return true;
  }

  #nextInRotation(): QueueEntry<T> | undefined {
    for (const owners of this.#ranks.values()) {
      for (const entries of owners.values()) return entries[0];
    }
    return undefined;
  }

  #oldest(): QueueEntry<T> | undefined {
    let oldest: QueueEntry<T> | undefined;
    for (const owners of this.#ranks.values()) {
      for (const [first] of owners.values()) {
        if (first !== undefined && (oldest === undefined || first.serial < oldest.serial)) oldest = first;
      }
    }
    return oldest;
  }
}
