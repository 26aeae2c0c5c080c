import type { NecEntry } from '../nec-cache.ts';

/** A change of a cached NodeENIConfig. */
export type NecChange = { readonly key: string; readonly before?: NecEntry; readonly after?: NecEntry };

/** Objects that were older than this when they turned ready have most likely been ready before, under another leader. */
const LONGEST_JOIN_MS = 6 * 3_600_000;

/** Finds how long nodes take from their NodeENIConfig's creation to its first being ready. */
export class WarmWatch {
  /** Uids of objects that were ready already. */
  readonly #warm = new Map<string, string>();

  /** Takes a change in; returns the milliseconds when a node just became ready for the first time. `nowMs`: wall clock. */
  see({ key, before, after }: NecChange, nowMs: number): number | undefined {
    if (after === undefined) {
      this.#warm.delete(key);
      return undefined;
    }
    const { uid = '', creationTimestamp = '' } = after.object.metadata;
    if (!isReady(after) || this.#warm.get(key) === uid) return undefined;
    this.#warm.set(key, uid);
    // Ready when first seen: nobody knows since when.
    if (before === undefined) return undefined;
    const tookMs = nowMs - Date.parse(creationTimestamp);
    return tookMs >= 0 && tookMs <= LONGEST_JOIN_MS ? tookMs : undefined;
  }
}

function isReady({ decoded }: NecEntry): boolean {
  const ready = decoded?.status?.conditions?.find(({ type }) => type === 'Ready');
  return ready?.status === 'True';
}
