/** How far back an answer can go. */
const PAST_MS = 60_000;

type Version<T> = { readonly atMs: number; readonly value: T | undefined };

/** What objects were at each moment of the last minute, for describes that answer from the past. */
export class VersionLog<T> {
  readonly #versions = new Map<string, Version<T>[]>();

  /** Notes what an object is from `atMs` on; undefined: not there. The value must never change afterwards. */
  note(id: string, atMs: number, value: T | undefined): void {
    const versions = this.#versions.get(id) ?? [];
    versions.push({ atMs, value });
    // The last one before the minute began is what was at its beginning.
    while ((versions[1]?.atMs ?? Number.POSITIVE_INFINITY) < atMs - PAST_MS) versions.shift();
    this.#versions.set(id, versions);
  }

  /** Every object as it was at some moment of the last minute. */
  asOf(atMs: number): ReadonlyMap<string, T> {
    const then = new Map<string, T>();
    for (const [id, versions] of this.#versions) {
      const value = versions.findLast((version) => version.atMs <= atMs)?.value;
      if (value !== undefined) then.set(id, value);
    }
    return then;
  }
}
