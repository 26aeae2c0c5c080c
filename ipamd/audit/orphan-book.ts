import type { Orphan } from './find-orphans.ts';

type Suspected = { readonly sinceMs: number; readonly looks: number };

/** Looks that an orphan must be seen in, whatever the grace. */
const LEAST_LOOKS = 2;

/** Remembers since when ENIs have been orphans; one look that finds an owner begins it anew. */
export class OrphanBook {
  #suspected: ReadonlyMap<string, Suspected> = new Map();

  /**
   * Notes what a consistent look found and returns those that have been orphans for `graceMs`, in two looks at least,
   * the longest first. `nowMs` is monotonic: no clock of the cloud's is compared with ours.
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

  /** Forgets everything: what was seen cannot be relied on. */
  clear(): void {
    this.#suspected = new Map();
  }
}
