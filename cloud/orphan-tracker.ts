type Candidate = { readonly sinceMs: number; readonly audits: number };

/** Number of audits that have to find an orphan, whatever the grace. */
const MIN_AUDITS = 2;

/** Tracks since when objects of the cloud have been orphans; an audit that finds an owner resets it. */
export class OrphanTracker<T> {
  readonly #idOf: (orphan: T) => string;
  #candidates: ReadonlyMap<string, Candidate> = new Map();

  constructor(idOf: (orphan: T) => string) {
    this.#idOf = idOf;
  }

  /**
   * Stores the result of a consistent audit and returns those that have been orphans for `graceMs`, in at least two
   * audits, the longest first. `nowMs` is monotonic: it is never compared with a clock of the cloud.
   */
  note(orphans: readonly T[], nowMs: number, graceMs: number): readonly T[] {
    this.#candidates = new Map(
      orphans.map((orphan) => {
        const id = this.#idOf(orphan);
        const known = this.#candidates.get(id);
        return [id, { sinceMs: known?.sinceMs ?? nowMs, audits: (known?.audits ?? 0) + 1 }];
      }),
    );
    const candidateOf = (orphan: T): Candidate | undefined => this.#candidates.get(this.#idOf(orphan));
    const sinceOf = (orphan: T): number => candidateOf(orphan)?.sinceMs ?? nowMs;
    return orphans
      .filter((orphan) => (candidateOf(orphan)?.audits ?? 0) >= MIN_AUDITS)
      .filter((orphan) => nowMs - sinceOf(orphan) >= graceMs)
      .toSorted((a, b) => sinceOf(a) - sinceOf(b));
  }

  /** Forgets everything: the former results are not reliable. */
  clear(): void {
    this.#candidates = new Map();
  }
}

/** Up to this number orphans are plausible whatever their share: a small cluster may lose half of what it has. */
const PLAUSIBLE_COUNT = 10;
const MAX_SHARE = 0.5;

/**
 * Tells whether so many orphans among all objects of a kind more likely mean that their owners were lost (a wrong cluster
 * id, an emptied etcd, a wrong namespace) than that the objects are orphaned.
 */
export function areTooMany(orphanCount: number, allCount: number): boolean {
  return orphanCount > PLAUSIBLE_COUNT && orphanCount > allCount * MAX_SHARE;
}
