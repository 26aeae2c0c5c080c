import type { NecEntry } from '../cache/decode-nec.ts';

/** A change of a cached NodeENIConfig. */
export type NecChange = { readonly key: string; readonly before?: NecEntry; readonly after?: NecEntry };

/**
 * Objects that were older than this when they became ready have most likely been ready before, under another leader.
 */
const MAX_JOIN_MS = 6 * 3_600_000;

/** Measures how long nodes take from the creation of their NodeENIConfig until they are first ready. */
export class ReadyTimer {
  /** Uids of objects that were ready already. */
  readonly #warm = new Map<string, string>();

  /**
   * Records a change; returns the milliseconds when a node just became ready for the first time. `nowMs`: wall clock.
   */
  record({ key, before, after }: NecChange, nowMs: number): number | undefined {
    if (after === undefined) {
      this.#warm.delete(key);
      return undefined;
    }
    const { uid = '', creationTimestamp = '' } = after.object.metadata;
    if (!isReady(after) || this.#warm.get(key) === uid) return undefined;
    this.#warm.set(key, uid);
    // Ready when first read: it is unknown since when.
    if (before === undefined) return undefined;
    const tookMs = nowMs - Date.parse(creationTimestamp);
    return tookMs >= 0 && tookMs <= MAX_JOIN_MS ? tookMs : undefined;
  }
}

function isReady({ decoded }: NecEntry): boolean {
  const ready = decoded?.status?.conditions?.find(({ type }) => type === 'Ready');
  return ready?.status === 'True';
}
