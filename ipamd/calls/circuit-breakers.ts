import {
  allowProbe,
  type Breaker,
  type Breakers,
  isBreakerOpen,
  resetBreaker,
  tripBreaker,
} from '../../cloud/circuit-breaker.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Refusal } from '../decide/node-view.ts';

type Probe = { readonly owner: string; readonly untilMs: number };

/** A probe that never reports its result ends after this. */
const PROBE_MS = 120_000;

/**
 * Circuit breakers of the process, by key: `subnet/<id>`, `vpc-enis`, `instance-enis/<instance>`, `eni-ips/<eni>`,
 * `node/<name>/call/...`.
 * An open breaker blocks every call. When its time is over, one owner may try, and the others wait for the result: a
 * thousand nodes that wait for one quota make one call, not a thousand.
 */
export class CircuitBreakers {
  #clock: Clock;
  readonly #breakers = new Map<string, Breaker>();
  #refusals = new Map<string, Omit<Refusal, 'afterMs'>>();
  #probes = new Map<string, Probe>();
  #sweepAt = MIN_SWEEP_SIZE;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Opens a breaker, for longer with each trip in a row. Calls that were in flight when it opened count as one trip.
   */
  trip(key: string, firstMs: number, message: string, requestId?: string): void {
    const nowMs = this.#clock.monotonicMs();
    this.#probes.delete(key);
    this.#refusals.set(key, { message, ...(requestId === undefined ? {} : { requestId }) });
    if (isBreakerOpen(this.#breakers, key, nowMs)) return;
    if (this.#breakers.size >= this.#sweepAt) this.#sweep(nowMs);
    this.#put(key, tripBreaker(this.#only(key), key, Math.max(1, firstMs), nowMs));
  }

  /** Closes a breaker after a successful call. */
  reset(key: string): void {
    this.#put(key, resetBreaker(this.#only(key), key));
    this.#refusals.delete(key);
    this.#probes.delete(key);
  }

  /** Lets one owner try at once: some capacity was freed, the amount is unknown. */
  allowProbe(key: string): void {
    this.#put(key, allowProbe(this.#only(key), key, this.#clock.monotonicMs()));
  }

  /** Returns why `owner` may not call for `key` now; undefined when it may. */
  refusalOf(key: string, owner: string): Refusal | undefined {
    const breaker = this.#breakers.get(key);
    if (breaker === undefined) return undefined;
    const nowMs = this.#clock.monotonicMs();
    const refusal = this.#refusals.get(key) ?? { message: '' };
    if (nowMs < breaker.openUntilMs) return { ...refusal, afterMs: breaker.openUntilMs - nowMs };
    const probe = this.#probes.get(key);
    if (probe === undefined || probe.owner === owner || nowMs >= probe.untilMs) return undefined;
    return { ...refusal, afterMs: PROBE_RETRY_MS };
  }

  /**
   * Reports whether a key was refused more than once in a row, and is open or was until a moment ago. A caller that only
   * counts what can still come would otherwise count free capacity each time that one owner may try.
   */
  wasRefusedRecently(key: string): boolean {
    const breaker = this.#breakers.get(key);
    return (
      breaker !== undefined && breaker.trips > 1 && this.#clock.monotonicMs() < breaker.openUntilMs + RECENT_REFUSAL_MS
    );
  }

  /** Reports whether the last call for a key was refused; it may be tried again by now. */
  wasRefusedLast(key: string): boolean {
    return this.#breakers.has(key);
  }

  /** Notes that `owner` is about to call for `key`. If the breaker was open before, the others wait for the result. */
  beginProbe(key: string, owner: string): void {
    if (!this.#breakers.has(key)) return;
    this.#probes.set(key, { owner, untilMs: this.#clock.monotonicMs() + PROBE_MS });
  }

  /** Notes that `owner` got no result: the next may try. */
  endProbe(key: string, owner: string): void {
    if (this.#probes.get(key)?.owner === owner) this.#probes.delete(key);
  }

  /** Number of breakers in memory. */
  get size(): number {
    return this.#breakers.size;
  }

  /** Lists the keys that are open now, for metrics. */
  openKeys(): readonly string[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#breakers.keys()].filter((key) => isBreakerOpen(this.#breakers, key, nowMs));
  }

  /**
   * Returns one breaker alone. To copy all of them for each trip would be expensive when many nodes of a cluster wait
   * for one quota.
   */
  #only(key: string): Breakers {
    const breaker = this.#breakers.get(key);
    return breaker === undefined ? new Map() : new Map([[key, breaker]]);
  }

  #put(key: string, changed: Breakers): void {
    const breaker = changed.get(key);
    if (breaker === undefined) this.#breakers.delete(key);
    else this.#breakers.set(key, breaker);
  }

  /** Removes breakers that have been closed for long without a new try: most are of deleted nodes and ENIs. */
  #sweep(nowMs: number): void {
    for (const [key, { openUntilMs }] of this.#breakers) if (nowMs - openUntilMs > REMOVE_AFTER_MS) this.reset(key);
    this.#sweepAt = Math.max(MIN_SWEEP_SIZE, 2 * this.#breakers.size);
  }
}

/**
 * A key counts as recently refused for so long after it may be tried again; longer than a waiting node needs to try.
 */
const RECENT_REFUSAL_MS = 120_000;
/** Breakers that closed long ago are removed from this number on. */
const MIN_SWEEP_SIZE = 1_024;
const REMOVE_AFTER_MS = 3_600_000;
/** A node that waits for the probe of another checks again after this. */
const PROBE_RETRY_MS = 5_000;
