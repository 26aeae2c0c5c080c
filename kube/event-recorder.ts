import { type BackoffSettings, backoffMs } from '../runtime/backoff.ts';
import type { Clock } from '../runtime/clock.ts';
import { MAX_TEXT, messageText } from '../runtime/limit-text.ts';
import type { Logger } from '../runtime/log.ts';
import { TurnQueue } from '../runtime/turn-queue.ts';
import { EventCorrelator, remember } from './events/event-correlator.ts';
import { type EventInput, eventName, eventNamespace, eventObject } from './events/event-object.ts';
import type { KubeClient } from './kube-client.ts';
import { isKubeError } from './kube-error.ts';
import { EVENTS } from './resource-types.ts';

/** Receives the outcome of each event, for metrics. */
type EventObserver = {
  readonly onEvent?: (outcome: 'written' | 'counted' | 'spam' | 'dropped') => void;
};

/** Options of an event recorder: the component that reports, and the client to write with. */
type EventRecorderOptions = {
  readonly client: KubeClient;
  readonly component: string;
  readonly host?: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /**
   * Most events that wait to be written, and as many again of namespaces that have less than their share; further ones are
   * dropped. Default 1,000.
   */
  readonly queueLimit?: number;
  readonly observer?: EventObserver;
};

/** Records Kubernetes events about objects, for people to read. */
export type EventRecorder = {
  /** Queues an event; equal events are counted in one. Never throws and never waits: no function depends on events. */
  record(event: EventInput): void;
  /** Resolves when no event waits any more: each was written or dropped. Never rejects. */
  flush(): Promise<void>;
};

/** Leaves place for the words with which the correlator begins a text. */
const MAX_EVENT_TEXT = MAX_TEXT.event - 40;

const QUEUE_LIMIT = 1000;
/** Most written events that are remembered, so that an equal event increases their count. */
const MAX_KNOWN = 4096;
/** Most attempts to write one event. They take minutes; after that the event is no longer worth writing. */
const MAX_TRIES = 8;
const BACKOFF: BackoffSettings = { firstMs: 500, maxMs: 30_000, factor: 2, jitter: 0.5 };

type Pending = { event: EventInput; count: number; readonly firstMs: number; lastMs: number };
type Known = { readonly name: string; count: number; readonly firstMs: number };

/** Creates a recorder. It writes one event at a time; namespaces take turns, and of each it is the order of occurrence. */
export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  const { clock, log, observer, queueLimit = QUEUE_LIMIT } = options;
  const correlator = new EventCorrelator();
  const pending = new Map<string, Pending>();
  const turns = new TurnQueue<string>();
  const writer = new EventWriter(options);
  let draining: Promise<void> | undefined;
  const drain = async () => {
    for (let key = turns.take(); key !== undefined; key = turns.take()) {
      const entry = pending.get(key);
      pending.delete(key);
      if (entry !== undefined) await writer.write(key, entry);
    }
    draining = undefined;
  };
  const isFull = (namespace: string): boolean =>
    pending.size >= queueLimit && turns.sizeOf(namespace) >= queueLimit / Math.max(1, turns.laneCount);
  return {
    record: (input) => {
      // First: the text is also a key in the memory of the correlator and of the writer.
      const limited = { ...input, message: messageText(input.message, MAX_EVENT_TEXT) };
      const correlated = correlator.correlate(limited, clock.monotonicMs());
      if (correlated === undefined) {
        log.debug('event not written, too many of this object', { event: limited });
        observer?.onEvent?.('spam');
        return;
      }
      const { key, event } = correlated;
      const nowMs = clock.nowMs();
      const waiting = pending.get(key);
      if (waiting !== undefined) {
        waiting.event = event;
        waiting.count += 1;
        waiting.lastMs = nowMs;
      } else if (isFull(eventNamespace(event.involved))) {
        observer?.onEvent?.('dropped');
      } else {
        turns.add(key, eventNamespace(event.involved));
        pending.set(key, { event, count: 1, firstMs: nowMs, lastMs: nowMs });
        draining ??= drain();
      }
    },
    flush: async () => {
      while (draining !== undefined) await draining;
    },
  };
}

/** Writes events and remembers those that were written. */
class EventWriter {
  readonly #options: EventRecorderOptions;
  readonly #known = new Map<string, Known>();

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  /** Writes one event, with retries. Never throws. */
  async write(key: string, pending: Pending): Promise<void> {
    const { clock, log, random, observer } = this.#options;
    // All attempts use one name: a creation whose answer was lost must not lead to a second event.
    const name = eventName(pending.event.involved, this.#unique(pending.firstMs));
    for (let tries = 1; ; tries++) {
      try {
        const outcome = await this.#writeOnce(key, pending, name);
        observer?.onEvent?.(outcome);
        return;
      } catch (error) {
        if (!isKubeError(error, 'UNAVAILABLE', 'TIMEOUT', 'THROTTLED', 'CONFLICT') || tries >= MAX_TRIES) {
          log.warn('event not written', { event: pending.event, error });
          observer?.onEvent?.('dropped');
          return;
        }
        await clock.sleep(Math.max(error.retryAfterMs ?? 0, backoffMs(BACKOFF, tries, random())));
      }
    }
  }

  async #writeOnce(key: string, pending: Pending, name: string): Promise<'written' | 'counted'> {
    const { client } = this.#options;
    const { event, count, firstMs, lastMs } = pending;
    const namespace = eventNamespace(event.involved);
    const known = this.#known.get(key);
    if (known !== undefined) {
      const body = { count: known.count + count, lastTimestamp: timeText(lastMs), message: event.message };
      try {
        await client.patch(EVENTS, { namespace, name: known.name }, { kind: 'merge', body });
        known.count += count;
        remember(this.#known, key, known, MAX_KNOWN);
        return 'counted';
      } catch (error) {
        // The API server deletes events after an hour.
        if (!isKubeError(error, 'NOT_FOUND')) throw error;
        this.#known.delete(key);
      }
    }
    const times = { count, firstTime: timeText(firstMs), lastTime: timeText(lastMs) };
    try {
      await client.create(EVENTS, eventObject(name, event, this.#options, times));
    } catch (error) {
      if (!isKubeError(error, 'ALREADY_EXISTS')) throw error;
    }
    remember(this.#known, key, { name, count, firstMs }, MAX_KNOWN);
    return 'written';
  }

  #unique(nowMs: number): string {
    const random = Math.floor(this.#options.random() * 2 ** 32);
    return `${Math.floor(nowMs).toString(16)}${random.toString(16).padStart(8, '0')}`;
  }
}

function timeText(nowMs: number): string {
  return new Date(nowMs).toISOString().replace(/\.\d+Z$/, 'Z');
}
