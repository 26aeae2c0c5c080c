/** A place in the queue. Higher `rank` is served first; equals in turn by owner; one owner's in order of arrival. */
export type Place<T> = {
  readonly item: T;
  readonly rank: number;
  readonly owner: string;
  /** Grows with arrival. */
  readonly serial: number;
};

/** Each so many-th turn goes to whoever waits longest, whatever the rank, so that nobody waits for ever. */
const ELDEST_EACH = 16;

/**
 * A queue that is fair in two ways: owners of equal rank take turns, so that one node with a thousand wishes does not
 * keep another from its first; and each 16th turn goes to the eldest, so that a stream of high rank does not starve
 * the low for ever. Neither time nor chance; every operation takes constant time but for `take` of the eldest, which
 * looks at one place per owner.
 */
export class FairQueue<T> {
  /** Per rank, highest first, owners in the order of their next turn. */
  #ranks = new Map<number, Map<string, Place<T>[]>>();
  #serial = 0;
  #turns = 0;
  #size = 0;

  /** Number of items that wait. */
  get size(): number {
    return this.#size;
  }

  /** Queues an item. The returned place takes it out again by `remove`. */
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

  /** The place whose turn is next; undefined when nobody waits. */
  peek(): Place<T> | undefined {
    if (this.#size === 0) return undefined;
    return (this.#turns + 1) % ELDEST_EACH === 0 ? this.#eldest() : this.#firstInTurn();
  }

  /** Takes the place whose turn is next, and gives its owner the last turn of its rank. */
  take(): Place<T> | undefined {
    const place = this.peek();
    if (place === undefined) return undefined;
    this.#turns += 1;
    this.remove(place);
    return place;
  }

  /** Takes a place out, wherever it stands. Returns whether it was there. */
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
