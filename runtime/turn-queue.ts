type Lane<T> = { readonly urgent: Set<T>; readonly others: Set<T> };

/**
 * A queue of items in lanes that take turns, so that a lane with a thousand items does not delay the first one of another.
 * Each item waits once. Within a lane the urgent ones are taken first, then in order of arrival. It uses neither time nor
 * chance; every operation takes constant time, but for the lanes that `take` has to pass over.
 */
export class TurnQueue<T> {
  /** In the order of their next turn. */
  readonly #lanes = new Map<string, Lane<T>>();
  readonly #laneOf = new Map<T, string>();

  /** Number of items that wait. */
  get size(): number {
    return this.#laneOf.size;
  }

  /** Reports whether an item waits. */
  has(item: T): boolean {
    return this.#laneOf.has(item);
  }

  /** Returns the lane in which an item waits; undefined when it does not. */
  laneOf(item: T): string | undefined {
    return this.#laneOf.get(item);
  }

  /** Number of lanes with items that wait. */
  get laneCount(): number {
    return this.#lanes.size;
  }

  /** Number of items of a lane that wait. */
  sizeOf(lane: string): number {
    const its = this.#lanes.get(lane);
    return its === undefined ? 0 : its.urgent.size + its.others.size;
  }

  /** Adds an item. One that waits already keeps its lane and its place, unless it is urgent now. */
  add(item: T, lane: string, isUrgent = false): void {
    const known = this.#laneOf.get(item);
    const its = this.#lanes.get(known ?? lane) ?? { urgent: new Set(), others: new Set() };
    if (known !== undefined && (!isUrgent || its.urgent.has(item))) return;
    its.others.delete(item);
    (isUrgent ? its.urgent : its.others).add(item);
    this.#lanes.set(known ?? lane, its);
    this.#laneOf.set(item, known ?? lane);
  }

  /** Returns the item whose turn is next; undefined when none waits in a lane that may be served. */
  peek(mayServe: (lane: string) => boolean = () => true): T | undefined {
    for (const [lane, { urgent, others }] of this.#lanes) {
      if (!mayServe(lane)) continue;
      for (const item of urgent) return item;
      for (const item of others) return item;
    }
    return undefined;
  }

  /** Takes the item whose turn is next; its lane has the last turn from then on. */
  take(mayServe?: (lane: string) => boolean): T | undefined {
    const item = this.peek(mayServe);
    if (item !== undefined) this.serve(item);
    return item;
  }

  /** Takes an item from any place; its lane has the last turn from then on. Returns whether it waited. */
  serve(item: T): boolean {
    const lane = this.#laneOf.get(item);
    if (lane === undefined) return false;
    this.delete(item);
    const rest = this.#lanes.get(lane);
    if (rest !== undefined) {
      this.#lanes.delete(lane);
      this.#lanes.set(lane, rest);
    }
    return true;
  }

  /** Removes an item, and leaves its lane its turn. Returns whether it waited. */
  delete(item: T): boolean {
    const lane = this.#laneOf.get(item);
    const its = lane === undefined ? undefined : this.#lanes.get(lane);
    if (lane === undefined || its === undefined) return false;
    this.#laneOf.delete(item);
    its.urgent.delete(item);
    its.others.delete(item);
    if (its.urgent.size + its.others.size === 0) this.#lanes.delete(lane);
    return true;
  }

  /** Removes all items. */
  clear(): void {
    this.#lanes.clear();
    this.#laneOf.clear();
  }
}
