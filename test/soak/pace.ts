import { setTimeout as sleep } from 'node:timers/promises';

/** Lets a number of turns a second pass, evenly; what was not used for a while is caught up with, up to a second's worth. */
export class Pace {
  readonly #everyMs: number;
  #nextMs: number;

  constructor(perSecond: number) {
    this.#everyMs = 1_000 / perSecond;
    this.#nextMs = performance.now();
  }

  /** Waits for the next turn. */
  async turn(): Promise<void> {
    const nowMs = performance.now();
    const atMs = Math.max(this.#nextMs, nowMs - 1_000);
    this.#nextMs = atMs + this.#everyMs;
    if (atMs > nowMs) await sleep(atMs - nowMs);
  }
}
