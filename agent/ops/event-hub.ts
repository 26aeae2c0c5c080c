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

type Place = { readonly watcher: Watcher; readonly waiting: EventMessage[]; dropped: number; isReady: boolean };

/**
 * Distributes events to watchers. Each has a queue of bounded length: a watcher that is too slow loses the oldest
 * events, gets their number, and delays no other watcher. Without watchers no event is built.
 */
export class EventHub {
  readonly #places = new Set<Place>();
  readonly #capacity: number;
  #isClosed = false;

  constructor(capacity = EVENTS_WAITING) {
    this.#capacity = capacity;
  }

  /** Number of watchers. */
  get watchers(): number {
    return this.#places.size;
  }

  /** Sends an event to all who watch `kind`; `make` is called only when there are any. */
  tell(kind: number, make: () => EventMessage): void {
    let event: EventMessage | undefined;
    for (const place of this.#places) {
      const { kinds } = place.watcher;
      if (kinds.size > 0 && !kinds.has(kind)) continue;
      event ??= make();
      place.waiting.push(event);
      if (place.waiting.length > this.#capacity) {
        place.waiting.shift();
        place.dropped++;
      }
      flush(place);
    }
  }

  /** Adds a watcher of all events from now on. After `close` it is ended at once. */
  watch(watcher: Watcher): Subscription {
    const place: Place = { watcher, waiting: [], dropped: 0, isReady: true };
    if (this.#isClosed) watcher.end();
    else this.#places.add(place);
    return {
      ready: () => {
        place.isReady = true;
        flush(place);
      },
      close: () => void this.#places.delete(place),
    };
  }

  /** Ends all watchers, and those that come later. */
  close(): void {
    this.#isClosed = true;
    for (const { watcher } of this.#places) watcher.end();
    this.#places.clear();
  }
}

function flush(place: Place): void {
  while (place.isReady) {
    const event = place.waiting.shift();
    if (event === undefined) return;
    const { dropped } = place;
    place.dropped = 0;
    // The lost events came before the oldest that is left.
    place.isReady = place.watcher.write(dropped === 0 ? event : { ...event, dropped });
  }
}
