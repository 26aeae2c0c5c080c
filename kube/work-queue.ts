import { type BackoffSettings, backoffMs } from '../runtime/backoff.ts';
import type { Clock } from '../runtime/clock.ts';
import { onAbort } from '../runtime/on-abort.ts';
import { TurnQueue } from '../runtime/turn-queue.ts';

/** Dependencies and settings of a work queue. */
type WorkQueueOptions = {
  readonly clock: Clock;
  readonly random: () => number;
  /** The delays of `addRateLimited`; default 50 ms, doubled each time, at most 5 minutes. */
  readonly backoff?: BackoffSettings;
  /** The lane of a key; default: what is before its slash. A key of the lane '' is of the cluster, and of no tenant. */
  readonly laneOf?: (key: string) => string;
};

const BACKOFF: BackoffSettings = { firstMs: 50, maxMs: 300_000, factor: 2, jitter: 0.3 };

type Waiter = { readonly hand: (key: string) => void; readonly refuse: (reason: unknown) => void };

type Delayed = { readonly dueMs: number; readonly cancel: AbortController };

/**
 * A queue of keys, each at most once. A key that is being worked on is not handed out again before `done`. If it is
 * added meanwhile, it is queued again after that. So no change is missed, and one key is never worked on twice at once.
 *
 * Lanes, which are namespaces mostly, take turns, so that one with a thousand keys does not delay the first key of another.
 * The keys of one lane are worked on by at most as many workers as are free besides: half of all when it is alone, and the
 * next lane always finds one.
 */
export class WorkQueue {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #backoff: BackoffSettings;
  readonly #laneOf: (key: string) => string;
  readonly #ready = new TurnQueue<string>();
  /** Keys that are being worked on, with their lanes. */
  readonly #running = new Map<string, string>();
  /** By lane, other than '': how many keys are being worked on. */
  readonly #runningOf = new Map<string, number>();
  readonly #dirty = new Set<string>();
  /** Those of `#dirty` that were added by `addFirst`. */
  readonly #urgentAgain = new Set<string>();
  readonly #watchers = new Map<string, Set<() => void>>();
  readonly #delayed = new Map<string, Delayed>();
  readonly #failures = new Map<string, number>();
  readonly #waiters = new Set<Waiter>();
  #closed: Error | undefined;

  constructor({ clock, random, backoff = BACKOFF, laneOf = namespaceOf }: WorkQueueOptions) {
    this.#laneOf = laneOf;
    this.#clock = clock;
    this.#random = random;
    this.#backoff = backoff;
  }

  /** Number of keys that wait. */
  get size(): number {
    return this.#ready.size;
  }

  /** Number of keys that are being worked on. */
  get runningCount(): number {
    return this.#running.size;
  }

  /** Adds a key; no effect when it is queued already, or when the queue is closed. */
  add(key: string): void {
    if (this.#closed !== undefined) return;
    if (this.#running.has(key)) {
      this.#dirty.add(key);
      for (const notify of this.#watchers.get(key) ?? []) notify();
      return;
    }
    if (this.#ready.has(key)) return;
    this.#ready.add(key, this.#laneOf(key));
    this.#handOut();
  }

  /** Adds a key that is handed out before all of its lane that were added by `add`, in the order of these calls. */
  addFirst(key: string): void {
    this.add(key);
    if (this.#ready.has(key)) this.#ready.add(key, '', true);
    else if (this.#dirty.has(key)) this.#urgentAgain.add(key);
  }

  /** Adds a key after `ms` milliseconds; of several delays the earliest counts. */
  addAfter(key: string, ms: number): void {
    if (this.#closed !== undefined) return;
    if (ms <= 0) {
      this.add(key);
      return;
    }
    const dueMs = this.#clock.monotonicMs() + ms;
    const known = this.#delayed.get(key);
    if (known !== undefined && known.dueMs <= dueMs) return;
    known?.cancel.abort('it is due earlier');
    const cancel = new AbortController();
    this.#delayed.set(key, { dueMs, cancel });
    const onDue = () => {
      this.#delayed.delete(key);
      this.add(key);
    };
    this.#clock.sleep(ms, cancel.signal).then(onDue, () => {});
  }

  /** Adds a key after a delay that grows with each such call until `forget`. */
  addRateLimited(key: string): void {
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    this.addAfter(key, backoffMs(this.#backoff, failures, this.#random()));
  }

  /** Resets the delay of a key: its work succeeded. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** Takes the key whose turn is next; it counts as running until `done`. Rejects when aborted or closed. */
  async take(signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    if (this.#closed !== undefined) throw this.#closed;
    const taken = Promise.withResolvers<string>();
    const waiter: Waiter = { hand: taken.resolve, refuse: taken.reject };
    const leave = onAbort(signal, () => {
      this.#waiters.delete(waiter);
      waiter.refuse(signal.reason);
    });
    this.#waiters.add(waiter);
    this.#handOut();
    try {
      return await taken.promise;
    } finally {
      leave();
    }
  }

  /**
   * Resolves when a key that is being worked on is added again, at once when it was already: work that waits can end
   * then. Resolves too when `signal` aborts.
   */
  async addedAgain(key: string, signal: AbortSignal): Promise<void> {
    if (this.#dirty.has(key) || signal.aborted) return;
    const over = Promise.withResolvers<void>();
    const watchers = this.#watchers.get(key) ?? new Set();
    this.#watchers.set(key, watchers.add(over.resolve));
    const leave = onAbort(signal, over.resolve);
    try {
      await over.promise;
    } finally {
      leave();
      watchers.delete(over.resolve);
      if (watchers.size === 0 && this.#watchers.get(key) === watchers) this.#watchers.delete(key);
    }
  }

  /** Marks the work on a key as finished; the key is queued again if it was added meanwhile. */
  done(key: string): void {
    const lane = this.#running.get(key);
    if (lane === undefined) return;
    this.#running.delete(key);
    const left = (this.#runningOf.get(lane) ?? 0) - 1;
    if (left > 0) this.#runningOf.set(lane, left);
    else this.#runningOf.delete(lane);
    const isUrgent = this.#urgentAgain.delete(key);
    if (!this.#dirty.delete(key)) this.#handOut();
    else if (isUrgent) this.addFirst(key);
    else this.add(key);
  }

  /** Hands out keys as long as a worker waits for one and it is the turn of one. */
  #handOut(): void {
    const mayServe = (lane: string): boolean => lane === '' || (this.#runningOf.get(lane) ?? 0) < this.#waiters.size;
    for (const waiter of this.#waiters) {
      const key = this.#ready.peek(mayServe);
      if (key === undefined) return;
      const lane = this.#ready.laneOf(key) ?? '';
      this.#ready.serve(key);
      this.#waiters.delete(waiter);
      this.#running.set(key, lane);
      if (lane !== '') this.#runningOf.set(lane, (this.#runningOf.get(lane) ?? 0) + 1);
      waiter.hand(key);
    }
  }

  /** Stops handing out keys and drops all that wait. Idempotent. */
  close(): void {
    if (this.#closed !== undefined) return;
    this.#closed = new Error('the work queue is closed');
    for (const waiter of this.#waiters) waiter.refuse(this.#closed);
    this.#waiters.clear();
    for (const { cancel } of this.#delayed.values()) cancel.abort('the work queue is closed');
    this.#delayed.clear();
    this.#ready.clear();
    this.#dirty.clear();
    this.#urgentAgain.clear();
  }
}

function namespaceOf(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf('/')));
}
