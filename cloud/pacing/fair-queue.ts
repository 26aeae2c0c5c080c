import { TurnQueue } from '../../runtime/turn-queue.ts';

/**
 * An entry of the queue. Higher `rank` is served first; owners of equal rank in turn; entries of one owner in order of
 * arrival.
 */
export type QueueEntry<T> = {
  readonly item: T;
  readonly rank: number;
  readonly owner: string;
};

/**
 * A queue that is fair in two ways. Owners of equal rank take turns, so that one node with a thousand requests does not
 * delay the first request of another. Every so many-th turn goes to the owner that was served longest ago, and there to the
 * oldest entry, whatever its rank, so that a stream of high rank starves no owner. It uses neither time nor chance.
 */
export class FairQueue<T> {
  readonly #blindEvery: number;
  /** Highest rank first. */
  #ranks = new Map<number, TurnQueue<QueueEntry<T>>>();
  /** All entries, by owner. */
  readonly #all = new TurnQueue<QueueEntry<T>>();
  #taken = 0;

  /** @param blindEvery every so many-th turn is whatever the rank; at least 1 */
  constructor(blindEvery: number) {
    this.#blindEvery = blindEvery;
  }

  /** Number of items that wait. */
  get size(): number {
    return this.#all.size;
  }

  /** Number of owners with items that wait. */
  get ownerCount(): number {
    return this.#all.laneCount;
  }

  /** Number of items of an owner that wait. */
  sizeOf(owner: string): number {
    return this.#all.sizeOf(owner);
  }

  /** Queues an item. `remove` takes the returned entry out again. */
  add(item: T, rank: number, owner: string): QueueEntry<T> {
    const entry: QueueEntry<T> = { item, rank, owner };
    let ofRank = this.#ranks.get(rank);
    if (ofRank === undefined) {
      ofRank = new TurnQueue();
      this.#ranks = new Map([...this.#ranks, [rank, ofRank] as const].sort(([a], [b]) => b - a));
    }
    ofRank.add(entry, owner);
    this.#all.add(entry, owner);
    return entry;
  }

  /** Returns the entry whose turn is next; undefined when the queue is empty. */
  peek(): QueueEntry<T> | undefined {
    if ((this.#taken + 1) % this.#blindEvery === 0) return this.#all.peek();
    for (const ofRank of this.#ranks.values()) if (ofRank.size > 0) return ofRank.peek();
    return undefined;
  }

  /** Takes the entry whose turn is next, and gives its owner the last turn. */
  take(): QueueEntry<T> | undefined {
    const entry = this.peek();
    if (entry === undefined) return undefined;
    this.#taken += 1;
    this.#all.serve(entry);
    this.#ranks.get(entry.rank)?.serve(entry);
    return entry;
  }

  /** Removes an entry from any position. Returns whether it was queued. */
  remove(entry: QueueEntry<T>): boolean {
    this.#ranks.get(entry.rank)?.delete(entry);
    return this.#all.delete(entry);
  }
}
