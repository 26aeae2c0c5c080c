/** Memory budget for the request bodies of a server: for one body, and for all bodies that are being read. In bytes. */
export class BodyRoom {
  readonly mostOfOne: number;
  readonly #mostOfAll: number;
  #held = 0;

  constructor(mostOfOne: number, mostOfAll: number) {
    this.mostOfOne = mostOfOne;
    this.#mostOfAll = mostOfAll;
  }

  /** Acquires `bytes` of the budget; returns false when too few are left. */
  take(bytes: number): boolean {
    if (this.#held + bytes > this.#mostOfAll) return false;
    this.#held += bytes;
    return true;
  }

  /** Releases bytes that were acquired. */
  give(bytes: number): void {
    this.#held -= bytes;
  }
}
