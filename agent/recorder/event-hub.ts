import type { EventMessage } from './event-message.ts';

/** A receiver of events. */
export type Watcher = {
  /** Numbers of EVENT_KIND; empty for all. */
  readonly kinds: ReadonlySet<number>;
  /** Writes an event; returns false when the next ones should wait for `ready`. */
  write(event: EventMessage): boolean;
  /** Called once, when the hub closes. */
  end(): void;
};

/** The subscription of a watcher. */
export type Subscription = {
  /** Writes the events that had to wait. */
  ready(): void;
  /** Idempotent. */
  close(): void;
};

/** Maximum number of events that wait for a slow watcher. */
const EVENTS_WAITING = 1_000;

type Subscriber = { readonly watcher: Watcher; readonly waiting: EventMessage[]; dropped: number; isReady: boolean };

/**
 * Distributes events to watchers. Each has a queue of bounded length: a watcher that is too slow loses the oldest
 * events, gets their number, and delays no other watcher. Without watchers no event is built.
 */
export class EventHub {
  readonly #subscribers = new Set<Subscriber>();
  readonly #capacity: number;
  #isClosed = false;

  constructor(capacity = EVENTS_WAITING) {
    this.#capacity = capacity;
  }

  /** Number of watchers. */
  get watchers(): number {
    return this.#subscribers.size;
  }

  /** Sends an event to all who watch `kind`; `make` is called only when there are any. */
  publish(kind: number, make: () => EventMessage): void {
    let event: EventMessage | undefined;
    for (const subscriber of this.#subscribers) {
      const { kinds } = subscriber.watcher;
      if (kinds.size > 0 && !kinds.has(kind)) continue;
      event ??= make();
      subscriber.waiting.push(event);
      if (subscriber.waiting.length > this.#capacity) {
        subscriber.waiting.shift();
        subscriber.dropped++;
      }
      flush(subscriber);
    }
  }

  /** Adds a watcher of all events from now on. After `close` it is ended at once. */
  watch(watcher: Watcher): Subscription {
    const subscriber: Subscriber = { watcher, waiting: [], dropped: 0, isReady: true };
    if (this.#isClosed) watcher.end();
    else this.#subscribers.add(subscriber);
    return {
      ready: () => {
        subscriber.isReady = true;
        flush(subscriber);
      },
      close: () => {
        this.#subscribers.delete(subscriber);
      },
    };
  }

  /** Ends all watchers, and those that come later. */
  close(): void {
    this.#isClosed = true;
    for (const { watcher } of this.#subscribers) watcher.end();
    this.#subscribers.clear();
  }
}

function flush(subscriber: Subscriber): void {
  while (subscriber.isReady) {
    const event = subscriber.waiting.shift();
    if (event === undefined) return;
    const { dropped } = subscriber;
    subscriber.dropped = 0;
    // The lost events came before the oldest that is left.
    subscriber.isReady = subscriber.watcher.write(dropped === 0 ? event : { ...event, dropped });
  }
}
