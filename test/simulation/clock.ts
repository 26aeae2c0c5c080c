import { type Clock, delayOf, MAX_TIMER_MS } from '../../runtime/clock.ts';
import { MinHeap } from '../../sim/support/min-heap.ts';

type Timer = { readonly fire: () => void; isDead: boolean };

/** Taken before anything can be put in its place. */
const immediately = setImmediate;

/**
 * True time, which no machine's clock shows: it stands still until told to go on, and then jumps from one moment at which
 * somebody wakes to the next. Who wakes at one moment wakes in an order that is drawn.
 */
export class Timeline {
  #nowMs = 0;
  #timers = new MinHeap<Timer>();
  readonly #draw: () => number;
  /** Whom a signal wakes. It has one listener for all: it looks through its listeners for each that comes or goes. */
  readonly #sleepers = new WeakMap<AbortSignal, Set<() => void>>();

  constructor(draw: () => number) {
    this.#draw = draw;
  }

  /** Milliseconds since the world began. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Resolves after `ms`; `Infinity` never ends. Rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const sleepers = signal === undefined ? undefined : this.#sleepersOf(signal);
    const onAbort = (): void => {
      timer.isDead = true;
      reject(signal?.reason);
    };
    const timer: Timer = {
      isDead: false,
      fire: () => {
        sleepers?.delete(onAbort);
        resolve();
      },
    };
    sleepers?.add(onAbort);
    const delayMs = delayOf(ms);
    if (Number.isFinite(delayMs)) this.#timers.push(timer, this.#nowMs + delayMs);
    return promise;
  }

  /** Goes on by `ms`, and lets what wakes on the way settle. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    await settle();
    while ((this.#timers.leastKey ?? Number.POSITIVE_INFINITY) <= endMs) await this.#step();
    this.#nowMs = endMs;
  }

  #sleepersOf(signal: AbortSignal): Set<() => void> {
    const known = this.#sleepers.get(signal);
    if (known !== undefined) return known;
    const sleepers = new Set<() => void>();
    this.#sleepers.set(signal, sleepers);
    signal.addEventListener('abort', () => [...sleepers].forEach((wake) => void wake()), { once: true });
    return sleepers;
  }

  async #step(): Promise<void> {
    const atMs = this.#timers.leastKey ?? this.#nowMs;
    const due: Timer[] = [];
    while (this.#timers.leastKey === atMs) {
      const timer = this.#timers.pop();
      if (timer !== undefined && !timer.isDead) due.push(timer);
    }
    if (due.length === 0) return;
    this.#nowMs = Math.max(this.#nowMs, atMs);
    while (due.length > 0) {
      const [timer] = due.splice(due.length === 1 ? 0 : Math.floor(this.#draw() * due.length), 1);
      if (timer?.isDead === false) timer.fire();
    }
    await settle();
  }
}

/** Lets every promise that can settle do so: the queue of microtasks is empty when an immediate runs. */
function settle(): Promise<void> {
  return new Promise((resolve) => immediately(resolve));
}

/** What the clock of a machine shows beside true time, milliseconds. */
type ClockOffsets = {
  /** Of its wall clock from the right time. */
  readonly wallMs: number;
  /** How long the machine had been up when the world began. */
  readonly upMs: number;
};

/** The right time when the world begins. */
const BEGIN_MS = Date.UTC(2026, 0, 1);

/** The clock of one machine. A jump of its wall clock moves no other clock. */
export class MachineClock implements Clock {
  readonly #time: Timeline;
  readonly #onFault: (text: string) => void;
  #upMs: number;
  #wallMs: number;

  /** @param onFault is told of delays that no timer of Node has */
  constructor(time: Timeline, { wallMs, upMs }: ClockOffsets, onFault: (text: string) => void) {
    this.#time = time;
    this.#wallMs = BEGIN_MS + wallMs;
    this.#upMs = upMs;
    this.#onFault = onFault;
  }

  /** Sets the wall clock forward, or back with a negative number of milliseconds. Nobody is woken. */
  stepWall(ms: number): void {
    this.#wallMs += ms;
  }

  /** The machine boots: what counts from there begins again. */
  reboot(): void {
    this.#upMs = -this.#time.nowMs;
  }

  nowMs(): number {
    return this.#wallMs + this.#time.nowMs;
  }

  monotonicMs(): number {
    return this.#upMs + this.#time.nowMs;
  }

  bootMs(): number {
    return Math.floor(this.monotonicMs());
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (Number.isNaN(ms) || (ms > MAX_TIMER_MS && Number.isFinite(ms))) this.#onFault(`a delay of ${ms} ms`);
    return this.#time.sleep(ms, signal);
  }
}
