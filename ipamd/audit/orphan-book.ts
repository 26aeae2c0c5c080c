import type { Orphan } from './find-orphans.ts';

type Suspected = { readonly sinceMs: number; readonly looks: number };

/** Number of audits that have to find an orphan, whatever the grace. */
const LEAST_LOOKS = 2;

/** Tracks since when ENIs have been orphans; an audit that finds an owner resets it. */
export class OrphanBook {
  #suspected: ReadonlyMap<string, Suspected> = new Map();

  /**
   * Stores the result of a consistent audit and returns the ENIs that have been orphans for `graceMs`, in at least two
   * audits, the longest first. `nowMs` is monotonic: it is never compared with a clock of the cloud.
   */
  note(orphans: readonly Orphan[], nowMs: number, graceMs: number): readonly Orphan[] {
    this.#suspected = new Map(
      orphans.map(({ eniId }) => {
        const known = this.#suspected.get(eniId);
        return [eniId, { sinceMs: known?.sinceMs ?? nowMs, looks: (known?.looks ?? 0) + 1 }];
      }),
    );
    const sinceOf = (orphan: Orphan): number => this.#suspected.get(orphan.eniId)?.sinceMs ?? nowMs;
    return orphans
      .filter((orphan) => (this.#suspected.get(orphan.eniId)?.looks ?? 0) >= LEAST_LOOKS)
      .filter((orphan) => nowMs - sinceOf(orphan) >= graceMs)
      .toSorted((a, b) => sinceOf(a) - sinceOf(b));
  }

  /** Forgets everything: the former results are not reliable. */
  clear(): void {
    this.#suspected = new Map();
  }
}
