/**
 * An entry of the queue. Higher `rank` is served first; owners of equal rank in turn; entries of one owner in order of
 * arrival.
 */
export type Place<T> = {
  readonly item: T;
  readonly rank: number;
  readonly owner: string;
  /** Increases with each arrival. */
  readonly serial: number;
};

/** Every so many-th turn goes to the oldest entry, whatever its rank, so that no entry waits for ever. */
const ELDEST_EACH = 16;

/**
 * A queue that is fair in two ways. Owners of equal rank take turns, so that one node with a thousand requests does not
 * delay the first request of another. Every 16th turn goes to the oldest entry, so that a stream of high rank does not
 * starve the low ranks. It uses neither time nor chance. Every operation takes constant time, except that `take` of the
 * oldest entry looks at one entry per owner.
 */
export class FairQueue<T> {
  /** For each rank, highest first, the owners in the order of their next turn. */
  #ranks = new Map<number, Map<string, Place<T>[]>>();
  #serial = 0;
  #turns = 0;
  #size = 0;

  /** Number of items that wait. */
  get size(): number {
    return this.#size;
  }

  /** Queues an item. `remove` takes the returned entry out again. */
  add(item: T, rank: number, owner: string): Place<T> {
    this.#serial += 1;
    const place: Place<T> = { item, rank, owner, serial: this.#serial };
    let owners = this.#ranks.get(rank);
    if (owners === undefined) {
      owners = new Map();
      this.#ranks = new Map([...this.#ranks, [rank, owners] as const].sort(([a], [b]) => b - a));
    }
    const places = owners.get(owner);
    if (places === undefined) owners.set(owner, [place]);
    else places.push(place);
    this.#size += 1;
    return place;
  }

  /** Returns the entry whose turn is next; undefined when the queue is empty. */
  peek(): Place<T> | undefined {
    if (this.#size === 0) return undefined;
    return (this.#turns + 1) % ELDEST_EACH === 0 ? this.#eldest() : this.#firstInTurn();
  }

  /** Takes the entry whose turn is next, and gives its owner the last turn of its rank. */
  take(): Place<T> | undefined {
    const place = this.peek();
    if (place === undefined) return undefined;
    this.#turns += 1;
    this.remove(place);
    return place;
  }

  /** Removes an entry from any position. Returns whether it was queued. */
  remove(place: Place<T>): boolean {
    const owners = this.#ranks.get(place.rank);
    const places = owners?.get(place.owner);
    const index = places?.indexOf(place) ?? -1;
    if (owners === undefined || places === undefined || index < 0) return false;
    places.splice(index, 1);
    owners.delete(place.owner);
    if (places.length > 0) owners.set(place.owner, places);
    this.#size -= 1;
    return true;
  }

  #firstInTurn(): Place<T> | undefined {
    for (const owners of this.#ranks.values()) {
      for (const places of owners.values()) return places[0];
    }
    return undefined;
  }

  #eldest(): Place<T> | undefined {
    let eldest: Place<T> | undefined;
    for (const owners of this.#ranks.values()) {
      for (const [first] of owners.values()) {
        if (first !== undefined && (eldest === undefined || first.serial < eldest.serial)) eldest = first;
      }
    }
    return eldest;
  }
}
