import type { Orphan } from './find-orphans.ts';

type Candidate = { readonly sinceMs: number; readonly audits: number };

/** Number of audits that have to find an orphan, whatever the grace. */
const MIN_AUDITS = 2;

/** Tracks since when ENIs have been orphans; an audit that finds an owner resets it. */
export class OrphanTracker {
  #candidates: ReadonlyMap<string, Candidate> = new Map();

  /**
   * Stores the result of a consistent audit and returns the ENIs that have been orphans for `graceMs`, in at least two
   * audits, the longest first. `nowMs` is monotonic: it is never compared with a clock of the cloud.
   */
  note(orphans: readonly Orphan[], nowMs: number, graceMs: number): readonly Orphan[] {
    this.#candidates = new Map(
      orphans.map(({ eniId }) => {
        const known = this.#candidates.get(eniId);
        return [eniId, { sinceMs: known?.sinceMs ?? nowMs, audits: (known?.audits ?? 0) + 1 }];
      }),
    );
    const sinceOf = (orphan: Orphan): number => this.#candidates.get(orphan.eniId)?.sinceMs ?? nowMs;
    return orphans
      .filter((orphan) => (this.#candidates.get(orphan.eniId)?.audits ?? 0) >= MIN_AUDITS)
      .filter((orphan) => nowMs - sinceOf(orphan) >= graceMs)
      .toSorted((a, b) => sinceOf(a) - sinceOf(b));
  }

  /** Forgets everything: the former results are not reliable. */
  clear(): void {
    this.#candidates = new Map();
  }
}
