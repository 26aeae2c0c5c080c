import { type Breakers, easeBreaker, isBreakerOpen, resetBreaker, tripBreaker } from '../../cloud/circuit-breaker.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Refusal } from '../nec/node-view.ts';

type Probe = { readonly owner: string; readonly untilMs: number };

/** A probe that never tells how it went frees its place after this. */
const PROBE_MS = 120_000;

/**
 * Breakers of the process, by key: `subnet/<id>`, `vpc-enis`, `instance-enis/<instance>`, `eni-ips/<eni>`, `node/<name>/call/...`.
 * An open one lets nobody through; when its time is over one owner tries it, and the others wait for what comes of that:
 * a thousand nodes that wait for one quota make one call, not a thousand.
 */
export class BreakerBook {
  #clock: Clock;
  #breakers: Breakers = new Map();
  #refusals = new Map<string, string>();
  #probes = new Map<string, Probe>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Opens a breaker, for longer with each trip in a row. Calls that were under way when it opened count as one trip. */
  trip(key: string, firstMs: number, message: string): void {
    const nowMs = this.#clock.monotonicMs();
    this.#probes.delete(key);
    this.#refusals.set(key, message);
    if (isBreakerOpen(this.#breakers, key, nowMs)) return;
    this.#breakers = tripBreaker(this.#breakers, key, Math.max(1, firstMs), nowMs);
  }

  /** Shuts a breaker: a call went through. */
  reset(key: string): void {
    this.#breakers = resetBreaker(this.#breakers, key);
    this.#refusals.delete(key);
    this.#probes.delete(key);
  }

  /** Lets one owner try at once: some room was made, nobody knows how much. */
  ease(key: string): void {
    this.#breakers = easeBreaker(this.#breakers, key, this.#clock.monotonicMs());
  }

  /** Tells why `owner` may not call for `key` now; undefined when it may. */
  refusalOf(key: string, owner: string): Refusal | undefined {
    const breaker = this.#breakers.get(key);
    if (breaker === undefined) return undefined;
    const nowMs = this.#clock.monotonicMs();
    const message = this.#refusals.get(key) ?? '';
    if (nowMs < breaker.openUntilMs) return { message, afterMs: breaker.openUntilMs - nowMs };
    const probe = this.#probes.get(key);
    if (probe === undefined || probe.owner === owner || nowMs >= probe.untilMs) return undefined;
    return { message, afterMs: PROBE_RETRY_MS };
  }

  /** Notes that `owner` is about to call for `key`: where the breaker was open before, the others wait for it. */
  beginProbe(key: string, owner: string): void {
    if (!this.#breakers.has(key)) return;
    this.#probes.set(key, { owner, untilMs: this.#clock.monotonicMs() + PROBE_MS });
  }

  /** Notes that `owner` did not find out: the next may try. */
  endProbe(key: string, owner: string): void {
    if (this.#probes.get(key)?.owner === owner) this.#probes.delete(key);
  }

  /** Keys that are open now, for metrics. */
  openKeys(): readonly string[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#breakers.keys()].filter((key) => isBreakerOpen(this.#breakers, key, nowMs));
  }
}

/** Who waits for another's probe looks again after this. */
const PROBE_RETRY_MS = 5_000;
