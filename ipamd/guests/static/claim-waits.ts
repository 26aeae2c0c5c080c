import type { Clock } from '../../../runtime/clock.ts';
import type { ClaimWait } from '../../decide/decision.ts';

type Wait = ClaimWait & { readonly node: string; readonly sinceMs: number };

/** A wait that ends sooner is not worth a write. */
export const MIN_WAIT_MS = 5_000;

/** Why claims wait on nodes, as the nodes' reconciles report it. */
export class ClaimWaits {
  readonly #clock: Clock;
  readonly #waits = new Map<string, Wait>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Stores all waits that a node's reconcile reported. Returns the claims whose reason has changed. */
  note(node: string, waits: ReadonlyMap<string, ClaimWait>): readonly string[] {
    const sinceMs = this.#clock.monotonicMs();
    const over = [...this.#waits].filter(([key, wait]) => wait.node === node && !waits.has(key)).map(([key]) => key);
    for (const key of over) this.#waits.delete(key);
    const started = [...waits].filter(([key, wait]) => !isSame(this.#waits.get(key), wait));
    for (const [key, { message, isNodeFull }] of started) {
      this.#waits.set(key, { node, message, isNodeFull, sinceMs });
    }
    return [...over, ...started.map(([key]) => key)];
  }

  /** Returns why a claim waits on a node, once it has waited for a while. */
  of(key: string): ClaimWait | undefined {
    const wait = this.#waits.get(key);
    return wait !== undefined && this.#clock.monotonicMs() - wait.sinceMs >= MIN_WAIT_MS ? wait : undefined;
  }

  /** Returns the milliseconds until `of` returns the reason; undefined when it does already, or there is none. */
  dueInMs(key: string): number | undefined {
    const wait = this.#waits.get(key);
    const leftMs = wait === undefined ? 0 : wait.sinceMs + MIN_WAIT_MS - this.#clock.monotonicMs();
    return leftMs > 0 ? leftMs : undefined;
  }
}

function isSame(before: ClaimWait | undefined, { message, isNodeFull }: ClaimWait): boolean {
  return before?.message === message && before.isNodeFull === isNodeFull;
}
