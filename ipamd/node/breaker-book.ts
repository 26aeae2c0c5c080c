import {
  type Breaker,
  type Breakers,
  easeBreaker,
  isBreakerOpen,
  resetBreaker,
  tripBreaker,
} from '../../cloud/circuit-breaker.ts';
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
  readonly #breakers = new Map<string, Breaker>();
  #refusals = new Map<string, string>();
  #probes = new Map<string, Probe>();
  #sweepAt = LEAST_SWEPT;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Opens a breaker, for longer with each trip in a row. Calls that were under way when it opened count as one trip. */
  trip(key: string, firstMs: number, message: string): void {
    const nowMs = this.#clock.monotonicMs();
    this.#probes.delete(key);
    this.#refusals.set(key, message);
    if (isBreakerOpen(this.#breakers, key, nowMs)) return;
    if (this.#breakers.size >= this.#sweepAt) this.#sweep(nowMs);
    this.#put(key, tripBreaker(this.#alone(key), key, Math.max(1, firstMs), nowMs));
  }

  /** Shuts a breaker: a call went through. */
  reset(key: string): void {
    this.#put(key, resetBreaker(this.#alone(key), key));
    this.#refusals.delete(key);
    this.#probes.delete(key);
  }

  /** Lets one owner try at once: some room was made, nobody knows how much. */
  ease(key: string): void {
    this.#put(key, easeBreaker(this.#alone(key), key, this.#clock.monotonicMs()));
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

  /**
   * Tells whether a key was refused more than once in a row, and is open or was a moment ago: who only counts what may
   * come would otherwise see room each time that somebody may try.
   */
  isDoubtful(key: string): boolean {
    const breaker = this.#breakers.get(key);
    return breaker !== undefined && breaker.trips > 1 && this.#clock.monotonicMs() < breaker.openUntilMs + DOUBT_MS;
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

  /** Breakers that are remembered. */
  get size(): number {
    return this.#breakers.size;
  }

  /** Keys that are open now, for metrics. */
  openKeys(): readonly string[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#breakers.keys()].filter((key) => isBreakerOpen(this.#breakers, key, nowMs));
  }

  /** One breaker by itself: to copy them all for each trip would cost a quota that a cluster waits for dearly. */
  #alone(key: string): Breakers {
    const breaker = this.#breakers.get(key);
    return breaker === undefined ? new Map() : new Map([[key, breaker]]);
  }

  #put(key: string, changed: Breakers): void {
    const breaker = changed.get(key);
    if (breaker === undefined) this.#breakers.delete(key);
    else this.#breakers.set(key, breaker);
  }

  /** What has been shut for long, and nobody has tried since: mostly of nodes and ENIs that are gone. */
  #sweep(nowMs: number): void {
    for (const [key, { openUntilMs }] of this.#breakers) if (nowMs - openUntilMs > FORGOTTEN_MS) this.reset(key);
    this.#sweepAt = Math.max(LEAST_SWEPT, 2 * this.#breakers.size);
  }
}

/** A key is doubtful for so long after it may be tried again; longer than somebody who waits for it takes to try. */
const DOUBT_MS = 120_000;
/** From so many on, those that are long over are forgotten. */
const LEAST_SWEPT = 1_024;
const FORGOTTEN_MS = 3_600_000;
/** Who waits for another's probe looks again after this. */
const PROBE_RETRY_MS = 5_000;
