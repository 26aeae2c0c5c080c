import type { Logger } from '../runtime/log.ts';
import type { EventSink, InvolvedObject } from './events/event-object.ts';

/**
 * Remembers what was last reported of each key, so that a state that lasts is reported once, however many keys there are. A
 * key is remembered until nothing is to be reported of it: of an object that is gone note nothing, or forget it.
 */
export class LastReports {
  readonly #texts = new Map<string, ReadonlySet<string>>();

  /** Keys of which something was reported that is not over. */
  keys(): readonly string[] {
    return [...this.#texts.keys()];
  }

  /**
   * Notes all that there is to report of a key now; an empty list: nothing any more. The order does not count, nor the
   * RequestId that the cloud gives each try.
   * @returns the items that the last note of the key did not have; undefined when both notes are the same
   */
  note<T>(key: string, items: readonly T[], textOf: (item: T) => string = JSON.stringify): readonly T[] | undefined {
    const before = this.#texts.get(key) ?? new Set();
    const comparable = (item: T): string => textOf(item).replaceAll(/,? ?RequestId=[\w-]+/g, '');
    const now = new Set(items.map(comparable));
    if (now.size === 0) this.#texts.delete(key);
    else this.#texts.set(key, now);
    if (now.size === before.size && [...now].every((text) => before.has(text))) return undefined;
    return items.filter((item) => !before.has(comparable(item)));
  }

  /** Forgets a key: what it has is reported the next time. */
  forget(key: string): void {
    this.#texts.delete(key);
  }
}

/** Where reports go. */
type Sinks<R extends string> = {
  readonly events: EventSink<R>;
  readonly log: Logger;
};

/** Reports problems of objects of one kind, as events and in the log: each once, until it is another or over. */
export class Reporter<R extends string> {
  readonly #what: string;
  readonly #sinks: Sinks<R>;
  readonly #last = new LastReports();

  /** @param what the kind of object in the log, with its article: `a Node` */
  constructor(what: string, sinks: Sinks<R>) {
    this.#what = what;
    this.#sinks = sinks;
  }

  /** Names of objects that have problems, as `forget` takes them. */
  names(): readonly string[] {
    return this.#last.keys();
  }

  /** Reports all problems that an object has now; those that it had at the last report are not repeated. */
  report(involved: InvolvedObject, problems: readonly { readonly reason: R; readonly message: string }[]): void {
    const { events, log } = this.#sinks;
    const name = involved.namespace === undefined ? involved.name : `${involved.namespace}/${involved.name}`;
    const about = { [involved.kind.toLowerCase()]: name };
    const added = this.#last.note(name, problems, (one) => JSON.stringify([involved.uid, one.reason, one.message]));
    for (const { reason, message } of added ?? []) {
      log.warn(`${this.#what} has a problem`, { ...about, reason, message });
      events.record({ involved, type: 'Warning', reason, message });
    }
    if (added !== undefined && problems.length === 0) log.info(`${this.#what} has no more problems`, about);
  }

  /** Forgets an object that is gone; `namespace/name`, or `name`. */
  forget(name: string): void {
    this.#last.forget(name);
  }
}
