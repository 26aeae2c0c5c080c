import type { EventInput } from './event-object.ts';

/** An event to write; equal events have an equal `key`. */
type CorrelatedEvent = { readonly key: string; readonly event: EventInput };

/** Most events of one object at once; after that one every five minutes. The same numbers as in client-go. */
const BURST = 25;
const REFILL_MS = 300_000;
/**
 * When one reason of one object has more different messages than this within the time, they are combined into one
 * event.
 */
const MAX_SIMILAR = 10;
const SIMILAR_MS = 600_000;
/** Most objects that are remembered; the least recently used ones are dropped first. */
const MAX_OBJECTS = 2048;

type Bucket = { tokens: number; filledMs: number };
type Group = { readonly messages: Set<string>; sinceMs: number };

/**
 * Decides which events are written, so that one broken object fills neither etcd nor the output of `kubectl`. Its
 * memory is bounded.
 */
export class EventCorrelator {
  readonly #buckets = new Map<string, Bucket>();
  readonly #groups = new Map<string, Group>();

  /** Returns the event to write, or undefined when the object exceeds its rate. `nowMs` is monotonic. */
  correlate(event: EventInput, nowMs: number): CorrelatedEvent | undefined {
    const { apiVersion, kind, name, namespace = '', uid = '' } = event.involved;
    const object = JSON.stringify([apiVersion, kind, namespace, name, uid]);
    if (!this.#isWithinRate(object, nowMs)) return undefined;
    const group = JSON.stringify([object, event.type, event.reason]);
    if (!this.#isOneOfMany(group, event.message, nowMs)) return { key: JSON.stringify([group, event.message]), event };
    return { key: group, event: { ...event, message: `(combined from similar events): ${event.message}` } };
  }

  #isWithinRate(object: string, nowMs: number): boolean {
    const bucket = this.#buckets.get(object) ?? { tokens: BURST, filledMs: nowMs };
    bucket.tokens = Math.min(BURST, bucket.tokens + (nowMs - bucket.filledMs) / REFILL_MS);
    bucket.filledMs = nowMs;
    remember(this.#buckets, object, bucket);
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }

  #isOneOfMany(key: string, message: string, nowMs: number): boolean {
    const known = this.#groups.get(key);
    const isFresh = known !== undefined && nowMs - known.sinceMs <= SIMILAR_MS;
    const group = isFresh ? known : { messages: new Set<string>(), sinceMs: nowMs };
    group.sinceMs = nowMs;
    remember(this.#groups, key, group);
    if (group.messages.has(message)) return false;
    if (group.messages.size >= MAX_SIMILAR) return true;
    group.messages.add(message);
    return false;
  }
}

/** Puts an entry at the end of a map, and drops the first one when there are too many. */
export function remember<T>(map: Map<string, T>, key: string, value: T, limit = MAX_OBJECTS): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= limit) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
