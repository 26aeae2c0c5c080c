/** Queue between a producer in the event loop and `for await`; bounded, because a consumer may be slow. */
type EventQueue<T> = AsyncIterable<T> & {
  /** Adds an event; when the queue is full, all of it is replaced by one overrun event. Ignored after `close`. */
  push(event: T): void;
  /** Ends all iterations once the queue is empty. */
  close(): void;
};

/** What an `EventQueue` needs. */
type EventQueueOptions<T> = {
  readonly capacity: number;
  /** The event that replaces dropped events. */
  readonly overrun: T;
  /** Called when a consumer begins or ends waiting. */
  onWaiting(isWaiting: boolean): void;
};

/** Creates a queue. Several consumers share its events. */
export function createEventQueue<T>({ capacity, overrun, onWaiting }: EventQueueOptions<T>): EventQueue<T> {
  const events: T[] = [];
  const consumers: ((result: IteratorResult<T, undefined>) => void)[] = [];
  let isClosed = false;

  const deliver = () => {
    while (consumers.length > 0 && (events.length > 0 || isClosed)) {
      const consumer = consumers.shift();
      const [event] = events.splice(0, 1);
      consumer?.(event === undefined ? { done: true, value: undefined } : { done: false, value: event });
    }
  };

  const next = () =>
    new Promise<IteratorResult<T, undefined>>((resolve) => {
      consumers.push(resolve);
      deliver();
      if (consumers.length === 1) {
        onWaiting(true);
      }
    });

  return {
    push(event) {
      if (isClosed) {
        return;
      }
      if (events.length >= capacity) {
        events.length = 0;
        events.push(overrun);
      }
      events.push(event);
      const wasWaiting = consumers.length > 0;
      deliver();
      if (wasWaiting && consumers.length === 0) {
        onWaiting(false);
      }
    },
    close() {
      isClosed = true;
      deliver();
      onWaiting(false);
    },
    [Symbol.asyncIterator]: () => ({
      next,
      return: () => Promise.resolve({ done: true, value: undefined }),
    }),
  };
}
