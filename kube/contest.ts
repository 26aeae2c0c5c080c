import { compareVersions, type ObjectVersion } from './compare-versions.ts';

/** Whether a field is to be written now. `waitMs`: 0: now. `isNew`: a contest was found just now, and is to be reported. */
type ContestVerdict = { readonly waitMs: number; readonly isNew: boolean };

type Entry = {
  readonly version: ObjectVersion;
  readonly value: string;
  readonly atMs: number;
  /** Whether it was counted that the write was undone: a write that fails is none. */
  readonly isCounted: boolean;
  /** How often another client undid the write. */
  readonly contests: number;
  readonly contestMs: number;
};

/** One that undoes a write might not have known of it; three times it means to. */
const CONTESTED = 3;
/** Between writes against one who undoes them, twice as long each time. */
const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 60_000;
/** Without another one this long after the last contest is over. */
const OVER_MS = 300_000;
/** A watch is not behind for longer; after that it is the state of a restored etcd. */
const BEHIND_MS = 30_000;
const NOW: ContestVerdict = { waitMs: 0, isNew: false };

/**
 * Knows which fields were written, and which of them another client writes as well. Such a field is written at most once a
 * minute, so that two programs do not answer each other without end. Times are monotonic milliseconds.
 */
export class Contests {
  /** By field of an object, the oldest first. Those that are over are forgotten. */
  readonly #entries = new Map<string, Entry>();

  /**
   * Decides whether a field is to be written now.
   * @param field names object and field
   * @param isUndone whether it has not what was written last, as `valueOf` says
   * @param seen the object as it is
   */
  ask(field: string, isUndone: boolean, seen: ObjectVersion, nowMs: number): ContestVerdict {
    const entry = this.#entries.get(field);
    if (entry === undefined || entry.version.uid !== seen.uid) return NOW;
    // Versions that cannot be compared are of a later state, most likely.
    const order = compareVersions(seen, entry.version);
    // What was read has not received the own write yet.
    if (order !== undefined && order < 0)
      return nowMs - entry.atMs > BEHIND_MS ? NOW : { waitMs: FIRST_WAIT_MS, isNew: false };
    if (!isUndone) return NOW;
    const before = nowMs - entry.contestMs > OVER_MS ? 0 : entry.contests;
    const lastMs = Math.max(entry.contestMs, entry.atMs);
    const waitMs = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** before) - (nowMs - lastMs);
    if (before >= CONTESTED && waitMs > 0) return { waitMs, isNew: false };
    if (entry.isCounted) return NOW;
    const contests = before + 1;
    this.#entries.set(field, { ...entry, contests, contestMs: nowMs, isCounted: true });
    return { waitMs: 0, isNew: contests === CONTESTED };
  }

  /** Returns what was written last; undefined: nothing, or long ago. */
  valueOf(field: string): string | undefined {
    return this.#entries.get(field)?.value;
  }

  /** Notes that a field was written. @param version of the answer */
  note(field: string, value: string, version: ObjectVersion, nowMs: number): void {
    const { contests = 0, contestMs = Number.NEGATIVE_INFINITY } = this.#entries.get(field) ?? {};
    this.#entries.delete(field);
    this.#entries.set(field, { version, value, atMs: nowMs, isCounted: false, contests, contestMs });
    for (const [key, entry] of this.#entries) {
      if (nowMs - Math.max(entry.atMs, entry.contestMs) <= OVER_MS) break;
      this.#entries.delete(key);
    }
  }

  /** Reports whether another client writes a field. */
  isContested(field: string, nowMs: number): boolean {
    const { contests = 0, contestMs = 0 } = this.#entries.get(field) ?? {};
    return contests >= CONTESTED && nowMs - contestMs <= OVER_MS;
  }
}

/** Returns what an event says of a field that another client writes as well. @param what the field, for people */
export function contestText(what: string): string {
  return `another client keeps changing ${what} back: it is written at most once a minute from now on. Find the other client by metadata.managedFields, and stop it or let it leave this object alone`;
}
