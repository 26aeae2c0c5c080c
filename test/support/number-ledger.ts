/** What became of the numbers of one stream. */
export type LedgerReport = {
  readonly received: number;
  /** Numbers that came more than once. */
  readonly duplicates: number;
  /** Numbers that came after a higher one, duplicates not counted. */
  readonly reordered: number;
  /** Highest number seen, -1 when none. */
  readonly highest: number;
  /** Missing numbers below the highest, as ranges of both ends included; at most `GAP_LIMIT` of them. */
  readonly gaps: readonly (readonly [number, number])[];
  /** Missing numbers below the highest. */
  readonly missing: number;
  /** Longest time between two arrivals, milliseconds. */
  readonly longestSilenceMs: number;
};

/** Longest list of gaps in a report; more would only repeat the message. */
const GAP_LIMIT = 50;

/** Keeps the book of numbers that arrived: lost, doubled, out of order. Numbers start at 0. */
export class NumberLedger {
  #seen = new Uint8Array(1 << 16);
  #received = 0;
  #duplicates = 0;
  #reordered = 0;
  #highest = -1;
  #lastMs: number | undefined;
  #longestSilenceMs = 0;

  /** Arrivals so far, duplicates not counted. */
  get received(): number {
    return this.#received;
  }

  /** Notes the arrival of a number at a monotonic time in milliseconds. */
  note(number: number, nowMs: number): void {
    if (number >= this.#seen.length) this.#grow(number);
    this.#longestSilenceMs = Math.max(this.#longestSilenceMs, nowMs - (this.#lastMs ?? nowMs));
    this.#lastMs = nowMs;
    if (this.#seen[number] === 1) {
      this.#duplicates += 1;
      return;
    }
    this.#seen[number] = 1;
    this.#received += 1;
    if (number < this.#highest) this.#reordered += 1;
    this.#highest = Math.max(this.#highest, number);
  }

  /** Sums up; numbers above the highest seen are not known to be missing. */
  report(): LedgerReport {
    const gaps: [number, number][] = [];
    let missing = 0;
    for (let number = 0; number <= this.#highest; number++) {
      if (this.#seen[number] === 1) continue;
      missing += 1;
      const last = gaps.at(-1);
      if (last !== undefined && last[1] === number - 1) last[1] = number;
      else gaps.push([number, number]);
    }
    return {
      received: this.#received,
      duplicates: this.#duplicates,
      reordered: this.#reordered,
      highest: this.#highest,
      gaps: gaps.slice(0, GAP_LIMIT),
      missing,
      longestSilenceMs: Math.round(this.#longestSilenceMs),
    };
  }

  #grow(number: number): void {
    const larger = new Uint8Array(Math.max(this.#seen.length * 2, number + 1));
    larger.set(this.#seen);
    this.#seen = larger;
  }
}
