import type { EventInput } from './event-object.ts';

/** An event that may be written: `key` says which earlier one it is another of. */
export type CorrelatedEvent = { readonly key: string; readonly event: EventInput };

/** So many of one object at once, then one each five minutes. As client-go's. */
const BURST = 25;
const REFILL_MS = 300_000;
/** More messages than that for one reason and object within the time are told as one. */
const MOST_SIMILAR = 10;
const SIMILAR_MS = 600_000;
/** Objects that are remembered; the ones that were quiet longest are forgotten first. */
const MOST_OBJECTS = 2048;

type Bucket = { tokens: number; filledMs: number };
type Group = { readonly messages: Set<string>; sinceMs: number };

/**
 * Decides which events are worth writing, so that one broken object fills neither etcd nor anybody's screen. Bounded in
 * memory.
 */
export class EventCorrelator {
  readonly #buckets = new Map<string, Bucket>();
  readonly #groups = new Map<string, Group>();

  /** Undefined: this object has told too much of late. `nowMs` is monotonic. */
  correlate(event: EventInput, nowMs: number): CorrelatedEvent | undefined {
    const { apiVersion, kind, name, namespace = '', uid = '' } = event.involved;
    const object = JSON.stringify([apiVersion, kind, namespace, name, uid]);
    if (!this.#hasTurn(object, nowMs)) return undefined;
    const group = JSON.stringify([object, event.type, event.reason]);
    if (!this.#isOneOfMany(group, event.message, nowMs)) return { key: JSON.stringify([group, event.message]), event };
    return { key: group, event: { ...event, message: `(combined from similar events): ${event.message}` } };
  }

  #hasTurn(object: string, nowMs: number): boolean {
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
    if (group.messages.size >= MOST_SIMILAR) return true;
    group.messages.add(message);
    return false;
  }
}

/** Puts an entry at the end of a map, and drops the first when there are too many. */
export function remember<T>(map: Map<string, T>, key: string, value: T, most = MOST_OBJECTS): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= most) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
