import type { EventMessage } from './event-message.ts';

/** Who is told. */
export type Watcher = {
  /** Numbers of EVENT_KIND; empty for all. */
  readonly kinds: ReadonlySet<number>;
  /** Takes an event; false when the next ones should wait for `ready`. */
  write(event: EventMessage): boolean;
  /** Called once, when the hub closes. */
  end(): void;
};

/** A watcher's place in the hub. */
export type Subscription = {
  /** Goes on with what had to wait. */
  ready(): void;
  /** Idempotent. */
  close(): void;
};

/** Events that wait for a slow watcher. */
export const EVENTS_WAITING = 1_000;

type Place = { readonly watcher: Watcher; readonly waiting: EventMessage[]; dropped: number; isReady: boolean };

/**
 * Tells watchers what happens. Each has a queue of bounded length: one that is too slow loses the oldest, is told how
 * many, and keeps nobody waiting. Without watchers nothing is made.
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

  /** Tells all who asked for `kind`; `make` is called only when there are any. */
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

  /** Tells a watcher of what happens from now on. After `close` it is ended at once. */
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

  /** Ends all watchers, and those who come later. */
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
    // What was lost came before the oldest that is left.
    place.isReady = place.watcher.write(dropped === 0 ? event : { ...event, dropped });
  }
}
