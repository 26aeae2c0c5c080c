import type { Clock } from '../../runtime/clock.ts';

type Sent = { readonly seen: string | undefined; readonly untilMs: number };

/** A cache that has not heard of a write by then has lost it, or the watch is broken: it is made again, guarded. */
const AWAITED_MS = 10_000;
/** Forgotten entries are cleared out when there are more than this. */
const MOST = 10_000;

/**
 * Remembers what was written until the cache shows it: another look in between would write the same again, and the
 * server would refuse it at the price of a call.
 */
export class SentWrites {
  #clock: Clock;
  #sent = new Map<string, Sent>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes a write of `target`, whose cached version was `seen` (undefined: none). */
  note(target: string, seen: string | undefined): void {
    const nowMs = this.#clock.monotonicMs();
    if (this.#sent.size >= MOST) {
      for (const [key, { untilMs }] of this.#sent) if (untilMs <= nowMs) this.#sent.delete(key);
    }
    this.#sent.set(target, { seen, untilMs: nowMs + AWAITED_MS });
  }

  /** Tells whether the cache, which has `seen`, is still to hear of a write of `target`. */
  isAwaited(target: string, seen: string | undefined): boolean {
    const sent = this.#sent.get(target);
    if (sent === undefined) return false;
    if (sent.seen === seen && this.#clock.monotonicMs() < sent.untilMs) return true;
    this.#sent.delete(target);
    return false;
  }
}
