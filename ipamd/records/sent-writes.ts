import type { Clock } from '../../runtime/clock.ts';

type Sent = { readonly version: string | undefined; readonly untilMs: number };

/**
 * A cache that has not received a write by then has lost it, or the watch is broken: the write is made again, guarded.
 */
const AWAITED_MS = 10_000;
/** Expired entries are removed from this number of entries on. */
const MAX_ENTRIES = 10_000;

/**
 * Remembers writes until the cache contains them: another pass in between would write the same again, and the server
 * would refuse it at the cost of a call.
 */
export class SentWrites {
  #clock: Clock;
  #sent = new Map<string, Sent>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Stores a write of `target`, whose cached version was `version` (undefined: none). */
  note(target: string, version: string | undefined): void {
    const nowMs = this.#clock.monotonicMs();
    if (this.#sent.size >= MAX_ENTRIES) {
      for (const [key, { untilMs }] of this.#sent) if (untilMs <= nowMs) this.#sent.delete(key);
    }
    this.#sent.set(target, { version, untilMs: nowMs + AWAITED_MS });
  }

  /** Tells whether the cache, which has `version`, has not received a write of `target` yet. */
  isAwaited(target: string, version: string | undefined): boolean {
    const sent = this.#sent.get(target);
    if (sent === undefined) return false;
    if (sent.version === version && this.#clock.monotonicMs() < sent.untilMs) return true;
    this.#sent.delete(target);
    return false;
  }
}
