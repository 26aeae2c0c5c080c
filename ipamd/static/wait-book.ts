import type { Clock } from '../../runtime/clock.ts';

type Wait = { readonly node: string; readonly message: string; readonly sinceMs: number };

/** What is over sooner is not worth a write. */
export const LEAST_WAIT_MS = 5_000;

/** Knows why nodes do not get on with claims, as their turns say it. */
export class WaitBook {
  readonly #clock: Clock;
  readonly #waits = new Map<string, Wait>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes in all that a node's turn said. Returns the claims of which something else is said than before. */
  note(node: string, waits: ReadonlyMap<string, string>): readonly string[] {
    const sinceMs = this.#clock.monotonicMs();
    const over = [...this.#waits].filter(([key, wait]) => wait.node === node && !waits.has(key)).map(([key]) => key);
    for (const key of over) this.#waits.delete(key);
    const begun = [...waits].filter(([key, message]) => this.#waits.get(key)?.message !== message);
    for (const [key, message] of begun) this.#waits.set(key, { node, message, sinceMs });
    return [...over, ...begun.map(([key]) => key)];
  }

  /** Why a node does not get on with a claim, when that is so for a while. */
  of(key: string): string | undefined {
    const wait = this.#waits.get(key);
    return wait !== undefined && this.#clock.monotonicMs() - wait.sinceMs >= LEAST_WAIT_MS ? wait.message : undefined;
  }

  /** Milliseconds until `of` tells what is noted; undefined when it does already, or nothing is. */
  dueInMs(key: string): number | undefined {
    const wait = this.#waits.get(key);
    const leftMs = wait === undefined ? 0 : wait.sinceMs + LEAST_WAIT_MS - this.#clock.monotonicMs();
    return leftMs > 0 ? leftMs : undefined;
  }
}
