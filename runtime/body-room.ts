/** How much of requests' bodies a server may hold: of one, and of all that are being read. In bytes. */
export class BodyRoom {
  readonly mostOfOne: number;
  readonly #mostOfAll: number;
  #held = 0;

  constructor(mostOfOne: number, mostOfAll: number) {
    this.mostOfOne = mostOfOne;
    this.#mostOfAll = mostOfAll;
  }

  /** Takes room for `bytes` more; false when there is none. */
  take(bytes: number): boolean {
    if (this.#held + bytes > this.#mostOfAll) return false;
    this.#held += bytes;
    return true;
  }

  /** Gives room back that was taken. */
  give(bytes: number): void {
    this.#held -= bytes;
  }
}
