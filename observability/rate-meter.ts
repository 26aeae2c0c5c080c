const WINDOW_S = 10;
const MS_PER_S = 1000;

type Counts = { readonly perSecond: number[]; latestS: number };

/** Counts events in the last ten whole seconds, by key. */
export class RateMeter {
  readonly #counts = new Map<string, Counts>();

  /** Counts one event; `nowMs` is monotonic. */
  note(key: string, nowMs: number): void {
    const second = Math.floor(nowMs / MS_PER_S);
    const counts = this.#counts.get(key) ?? { perSecond: Array.from({ length: WINDOW_S }, () => 0), latestS: second };
    this.#counts.set(key, counts);
    clearPassed(counts, second);
    const slot = second % WINDOW_S;
    counts.perSecond[slot] = (counts.perSecond[slot] ?? 0) + 1;
  }

  /** Returns the events per second. */
  perSecond(key: string, nowMs: number): number {
    const counts = this.#counts.get(key);
    if (counts === undefined) return 0;
    clearPassed(counts, Math.floor(nowMs / MS_PER_S));
    return counts.perSecond.reduce((sum, count) => sum + count, 0) / WINDOW_S;
  }
}

/** Clears the slots of the seconds since the last event. */
function clearPassed(counts: Counts, second: number): void {
  const passed = Math.min(WINDOW_S, second - counts.latestS);
  for (let back = 0; back < passed; back++) counts.perSecond[(second - back) % WINDOW_S] = 0;
  counts.latestS = Math.max(counts.latestS, second);
}
