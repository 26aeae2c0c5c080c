import { type Clock, delayOf } from '../../runtime/clock.ts';
import { MinHeap } from '../../sim/support/min-heap.ts';

/** How often a condition is looked at. */
const STEP_MS = 250;

type Timer = { readonly fire: () => void; isDead: boolean };

/**
 * A clock that stands still until told to go on, and then jumps from one sleeper to the next: an hour of virtual time
 * costs what happens in it. The wall clock goes on with the monotonic clock; `stepWall` sets it.
 */
export class VirtualClock implements Clock {
  #elapsedMs = 0;
  #startMs: number;
  #timers = new MinHeap<Timer>();
  /** What wakes each sleeper of a signal: of many listeners, a signal looks at each whenever one is added. */
  #wakersOf = new WeakMap<AbortSignal, Set<() => void>>();

  /** `startMs` is the wall clock at the beginning; default 2026-01-01. */
  constructor(startMs: number = Date.UTC(2026, 0, 1)) {
    this.#startMs = startMs;
  }

  /** Sets the wall clock forward, or back with a negative number of milliseconds. Nobody is woken, no other clock changes. */
  stepWall(ms: number): void {
    this.#startMs += ms;
  }

  nowMs(): number {
    return this.#startMs + this.#elapsedMs;
  }

  monotonicMs(): number {
    return this.#elapsedMs;
  }

  bootMs(): number {
    return Math.floor(this.#elapsedMs);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const wakers = signal === undefined ? undefined : this.#wakers(signal);
    const onAbort = (): void => {
      timer.isDead = true;
      reject(signal?.reason);
    };
    const timer: Timer = {
      isDead: false,
      fire: () => {
        wakers?.delete(onAbort);
        resolve();
      },
    };
    wakers?.add(onAbort);
    const delayMs = delayOf(ms);
    // Nobody wakes whoever sleeps forever.
    if (Number.isFinite(delayMs)) this.#timers.push(timer, this.#elapsedMs + delayMs);
    return promise;
  }

  /** Goes on by `ms`, waking every sleeper on the way, and lets what they do settle. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#elapsedMs + ms;
    await settle();
    while ((this.#timers.leastKey ?? Number.POSITIVE_INFINITY) <= endMs) await this.#step();
    this.#elapsedMs = endMs;
    await settle();
  }

  /** Goes on in steps until it holds; returns whether it came to hold within `limitMs` of virtual time. */
  async until(holds: () => boolean, limitMs: number, step = () => this.advance(STEP_MS)): Promise<boolean> {
    const endMs = this.#elapsedMs + limitMs;
    while (!holds()) {
      if (this.#elapsedMs >= endMs) return false;
      await step();
    }
    return true;
  }

  /**
   * Goes on until `work` is done, and resolves or rejects as it does.
   * @throws Error when everybody sleeps forever, or `limitMs` of virtual time have passed
   */
  async run<T>(work: Promise<T>, limitMs = 86_400_000): Promise<T> {
    let isDone = false;
    const finish = (): void => {
      isDone = true;
    };
    work.then(finish, finish);
    const endMs = this.#elapsedMs + limitMs;
    await settle();
    while (!isDone) {
      if (this.#timers.size === 0) throw new Error('virtual clock: nobody sleeps, and the work is not done');
      await this.#step();
      if (this.#elapsedMs > endMs) throw new Error(`virtual clock: not done after ${limitMs} ms of virtual time`);
    }
    return await work;
  }

  /** What an abort of the signal calls, in this order. */
  #wakers(signal: AbortSignal): Set<() => void> {
    const known = this.#wakersOf.get(signal);
    if (known !== undefined) return known;
    const wakers = new Set<() => void>();
    this.#wakersOf.set(signal, wakers);
    const wakeAll = (): void => {
      for (const wake of wakers) wake();
    };
    signal.addEventListener('abort', wakeAll, { once: true });
    return wakers;
  }

  /** Wakes all sleepers of the next moment. */
  async #step(): Promise<void> {
    const atMs = this.#timers.leastKey;
    if (atMs === undefined) return;
    let hasFired = false;
    while (this.#timers.leastKey === atMs) {
      const timer = this.#timers.pop();
      if (timer === undefined || timer.isDead) continue;
      this.#elapsedMs = Math.max(this.#elapsedMs, atMs);
      hasFired = true;
      timer.fire();
    }
    if (hasFired) await settle();
  }
}

/** Lets every promise that can settle do so: the queue of microtasks is empty when an immediate runs. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
