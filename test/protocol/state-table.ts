/** What tells one state from another. */
export type Key = string | Int32Array;

/** Tells known states from new ones, by 64 bits of their key, and remembers how each was first reached. */
export class StateTable {
  #size = 0;
  #slots = new Uint32Array(1 << 17);
  #low = new Uint32Array(1 << 16);
  #high = new Uint32Array(1 << 16);
  #spent = new Uint32Array(1 << 16);
  #parents = new Uint32Array(1 << 16);
  #moves = new Uint16Array(1 << 16);

  /** How many states there are; the next gets this index. */
  get size(): number {
    return this.#size;
  }

  /**
   * Returns the index of a state: of a known one with the same key that has spent no more of anything, else a new one.
   * The first state is its own parent.
   */
  add(key: Key, spent: number, parent: number, move: number): { readonly index: number; readonly isNew: boolean } {
    const [low, high] = hash(key);
    const mask = this.#slots.length - 1;
    let slot = low & mask;
    for (;;) {
      // 0 is an empty slot, so that what is stored is the index + 1.
      const stored = this.#slots[slot] ?? 0;
      if (stored === 0) break;
      const index = stored - 1;
      const isSame = this.#low[index] === low && this.#high[index] === high;
      if (isSame && isNoMore(this.#spent[index] ?? 0, spent)) return { index, isNew: false };
      slot = (slot + 1) & mask;
    }
    const index = this.#size++;
    if (index >= this.#low.length) this.#growStates();
    this.#low[index] = low;
    this.#high[index] = high;
    this.#spent[index] = spent;
    this.#parents[index] = parent;
    this.#moves[index] = move;
    this.#slots[slot] = index + 1;
    if (this.#size * 2 > this.#slots.length) this.#growSlots();
    return { index, isNew: true };
  }

  /** Returns the numbers of the moves that first led to a state. */
  wayTo(index: number): readonly number[] {
    const way: number[] = [];
    for (let at = index; at !== 0; at = this.#parents[at] ?? 0) way.push(this.#moves[at] ?? 0);
    return way.reverse();
  }

  #growStates(): void {
    const length = this.#low.length * 2;
    this.#low = moved(this.#low, new Uint32Array(length));
    this.#high = moved(this.#high, new Uint32Array(length));
    this.#spent = moved(this.#spent, new Uint32Array(length));
    this.#parents = moved(this.#parents, new Uint32Array(length));
    this.#moves = moved(this.#moves, new Uint16Array(length));
  }

  #growSlots(): void {
    const slots = new Uint32Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (let index = 0; index < this.#size; index++) {
      let slot = (this.#low[index] ?? 0) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = index + 1;
    }
    this.#slots = slots;
  }
}

function moved<T extends Uint32Array<ArrayBuffer> | Uint16Array<ArrayBuffer>>(from: T, to: T): T {
  to.set(from);
  return to;
}

/** Adds up the fields, four bits each, of what was spent. */
export function sumOfFields(spent: number): number {
  let sum = 0;
  for (let rest = spent; rest > 0; rest >>>= 4) sum += rest & 15;
  return sum;
}

function isNoMore(one: number, other: number): boolean {
  for (let shift = 0; shift < 32; shift += 4) if (((one >>> shift) & 15) > ((other >>> shift) & 15)) return false;
  return true;
}

/** Two multiplicative hashes side by side, finished as MurmurHash3 does, so that near keys get far values. */
function hash(key: Key): readonly [number, number] {
  let low = 0x9e3779b9;
  let high = 0x85ebca6b;
  for (let i = 0; i < key.length; i++) {
    const unit = typeof key === 'string' ? key.charCodeAt(i) : (key[i] ?? 0);
    low = Math.imul(low ^ unit, 0x9e3779b1);
    low ^= low >>> 15;
    high = Math.imul(high ^ unit, 0x5f356495) + (high >>> 13);
  }
  return [finish(low ^ (high >>> 7)), finish(high ^ low)];
}

/** @see MurmurHash3, fmix32 */
function finish(value: number): number {
  let mixed = value;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
