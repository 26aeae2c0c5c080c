/** A heap whose least item comes first; equal items come in the order in which they were pushed. */
export class MinHeap<T> {
  #items: { readonly item: T; readonly key: number; readonly serial: number }[] = [];
  #serial = 0;

  get size(): number {
    return this.#items.length;
  }

  /** The least key; undefined when empty. */
  get leastKey(): number | undefined {
    return this.#items[0]?.key;
  }

  push(item: T, key: number): void {
    this.#serial += 1;
    this.#items.push({ item, key, serial: this.#serial });
    let at = this.#items.length - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#isLess(at, parent)) break;
      this.#swap(at, parent);
      at = parent;
    }
  }

  pop(): T | undefined {
    const first = this.#items[0];
    const last = this.#items.pop();
    if (first === undefined || last === undefined) return undefined;
    if (this.#items.length > 0) {
      this.#items[0] = last;
      this.#sink();
    }
    return first.item;
  }

  #sink(): void {
    for (let at = 0; ; ) {
      const left = 2 * at + 1;
      let least = at;
      if (left < this.#items.length && this.#isLess(left, least)) least = left;
      if (left + 1 < this.#items.length && this.#isLess(left + 1, least)) least = left + 1;
      if (least === at) return;
      this.#swap(at, least);
      at = least;
    }
  }

  #isLess(a: number, b: number): boolean {
    const [one, other] = [this.#items[a], this.#items[b]];
    if (one === undefined || other === undefined) return false;
    return one.key < other.key || (one.key === other.key && one.serial < other.serial);
  }

  #swap(a: number, b: number): void {
    const [one, other] = [this.#items[a], this.#items[b]];
    if (one === undefined || other === undefined) return;
    this.#items[a] = other;
    this.#items[b] = one;
  }
}
