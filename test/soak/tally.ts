/** What a soak counts while it runs, and what it finds wrong. */
export class Tally {
  readonly #counts = new Map<string, number>();
  readonly #violations: string[] = [];
  readonly #told = new Set<string>();
  readonly #startMs: number;
  readonly #nowMs: () => number;

  /** @param nowMs monotonic milliseconds */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#startMs = nowMs();
  }

  /** Milliseconds since the beginning. */
  get elapsedMs(): number {
    return this.#nowMs() - this.#startMs;
  }

  /** Counts one more of a thing. */
  add(what: string, count = 1): void {
    this.#counts.set(what, this.of(what) + count);
  }

  /** Keeps the larger of what was told and a measure, as a whole number. */
  most(what: string, measure: number): void {
    this.#counts.set(what, Math.max(this.of(what), Math.round(measure)));
  }

  /** How many there were. */
  of(what: string): number {
    return this.#counts.get(what) ?? 0;
  }

  /** What begins with a prefix, the rest of the name with its count, most frequent first. */
  under(prefix: string): readonly (readonly [rest: string, count: number])[] {
    const found = [...this.#counts].filter(([what]) => what.startsWith(prefix));
    return found
      .map(([what, count]) => [what.slice(prefix.length), count] as const)
      .sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
  }

  /** Writes down something that must not happen, with its moment; the same is written once. */
  violation(text: string): void {
    if (this.#told.has(text)) return;
    this.#told.add(text);
    this.#violations.push(`${clockText(this.elapsedMs)} ${text}`);
  }

  /** All that was written down. */
  get violations(): readonly string[] {
    return this.#violations;
  }
}

/** `3:07` for 187,000 milliseconds. */
export function clockText(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
