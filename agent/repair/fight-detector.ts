/** How many repairs of one object within how long count as a fight, and how long repair then pauses for that object. */
type FightLimits = {
  readonly repairCount: number;
  readonly windowMs: number;
  readonly pauseMs: number;
};

/** A single flush or a restarted network daemon causes one or two repairs of an object; six in a minute are a loop. */
export const DEFAULT_FIGHT_LIMITS: FightLimits = { repairCount: 6, windowMs: 60_000, pauseMs: 60_000 };

/** What to do about an object that differs from the plan. `alarm` is the first `hold` of a fight. */
type FightVerdict = 'repair' | 'alarm' | 'hold';

type Record = { readonly repairedAtMs: readonly number[]; readonly pausedUntilMs: number };

/**
 * Detects that another program keeps undoing our repairs of one object. Then repair pauses for it: two daemons that
 * rewrite a rule hundreds of times a second cost packets and CPU, and a person has to decide anyway. Memory is bounded
 * by the objects repaired within one window.
 */
export class FightDetector {
  readonly #limits: FightLimits;
  readonly #records = new Map<string, Record>();

  constructor(limits: FightLimits) {
    this.#limits = limits;
  }

  /** Decides whether the object `identity` may be repaired at `nowMs` (monotonic), and counts the repair if so. */
  evaluate(identity: string, nowMs: number): FightVerdict {
    const record = this.#records.get(identity) ?? { repairedAtMs: [], pausedUntilMs: Number.NEGATIVE_INFINITY };
    if (nowMs < record.pausedUntilMs) return 'hold';
    const recent = record.repairedAtMs.filter((at) => nowMs - at < this.#limits.windowMs);
    if (recent.length < this.#limits.repairCount) {
      this.#records.set(identity, { ...record, repairedAtMs: [...recent, nowMs] });
      return 'repair';
    }
    // One more try is allowed when the pause is over; if it is undone again, the next pause starts at once.
    const pausedUntilMs = nowMs + this.#limits.pauseMs;
    const tries = Array.from({ length: this.#limits.repairCount - 1 }, () => pausedUntilMs);
    this.#records.set(identity, { repairedAtMs: tries, pausedUntilMs });
    return 'alarm';
  }

  /** Tells whether `evaluate` would refuse the repair at `nowMs`; counts nothing. */
  isPaused(identity: string, nowMs: number): boolean {
    const record = this.#records.get(identity);
    if (record === undefined) return false;
    if (nowMs < record.pausedUntilMs) return true;
    return record.repairedAtMs.filter((at) => nowMs - at < this.#limits.windowMs).length >= this.#limits.repairCount;
  }

  /** Returns the objects whose repair pauses at `nowMs`. */
  paused(nowMs: number): readonly string[] {
    return [...this.#records].filter(([, record]) => nowMs < record.pausedUntilMs).map(([identity]) => identity);
  }

  /** When the earliest pause ends, monotonic milliseconds; undefined without any. */
  nextReleaseMs(nowMs: number): number | undefined {
    const ends = [...this.#records.values()].map((record) => record.pausedUntilMs).filter((end) => end > nowMs);
    return ends.length === 0 ? undefined : Math.min(...ends);
  }

  /** Removes what is older than a window, so that identities that come and go take no memory. */
  removeExpired(nowMs: number): void {
    for (const [identity, record] of this.#records) {
      const lastRepairMs = record.repairedAtMs.at(-1) ?? Number.NEGATIVE_INFINITY;
      if (nowMs >= record.pausedUntilMs && nowMs - lastRepairMs >= this.#limits.windowMs)
        this.#records.delete(identity);
    }
  }
}
