import { ApiError, expired } from './api-error.ts';
import type { KubeObject } from './object.ts';
import { withMetadata } from './object.ts';

/** One change of the store. `previous` is what was there before, `object` what is there now or, deleted, was last. */
export type StoreEvent = {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly revision: number;
  readonly object: KubeObject;
  readonly previous: KubeObject | undefined;
};

/** All that the store held at one revision. */
export type Snapshot = {
  readonly revision: number;
  readonly data: ReadonlyMap<string, ReadonlyMap<string, KubeObject>>;
};

type Listener = (event: StoreEvent) => void;

/** Changes kept of each resource before the oldest are forgotten, as the real server's watch cache forgets. */
const DEFAULT_HISTORY = 10_000;

/**
 * The objects of the cluster, with one revision for all, as etcd has it. Resources are named by `storageKey`, objects by
 * `namespace/name`. Objects are frozen and shared with readers.
 */
export class Store {
  #revision = 1;
  #compacted = 0;
  #data = new Map<string, Map<string, KubeObject>>();
  readonly #history = new Map<string, StoreEvent[]>();
  readonly #forgotten = new Map<string, number>();
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #historyLimit: number;

  constructor(historyLimit = DEFAULT_HISTORY) {
    this.#historyLimit = historyLimit;
  }

  /** The revision of the last change. */
  get revision(): number {
    return this.#revision;
  }

  get(resource: string, key: string): KubeObject | undefined {
    return this.#data.get(resource)?.get(key);
  }

  /** Returns the objects of a resource in the order of their keys, all or those of one namespace. */
  list(resource: string, namespace?: string): readonly KubeObject[] {
    return sorted(this.#data.get(resource), namespace);
  }

  /** Returns the objects as they were at `revision`. @throws ApiError Expired when that is no longer known. */
  listAt(resource: string, namespace: string | undefined, revision: number): readonly KubeObject[] {
    if (revision < this.oldestRevision(resource)) throw expired(TOO_OLD_CONTINUE);
    const then = new Map(this.#data.get(resource));
    for (const event of (this.#history.get(resource) ?? []).toReversed()) {
      if (event.revision <= revision) break;
      if (event.previous === undefined) then.delete(keyOf(event.object));
      else then.set(keyOf(event.object), event.previous);
    }
    return sorted(then, namespace);
  }

  /** Returns the revision of so many changes of a resource ago, or the oldest that is known. */
  revisionAgo(resource: string, changes: number): number {
    const events = this.#history.get(resource) ?? [];
    const first = events[Math.max(0, events.length - changes)];
    return first === undefined ? this.#revision : Math.max(first.revision - 1, this.oldestRevision(resource));
  }

  /** Stores an object under the next revision and tells who watches. Returns it as stored. */
  put(resource: string, object: KubeObject): KubeObject {
    const key = keyOf(object);
    const previous = this.get(resource, key);
    const stored = this.#stamp(object);
    const objects = this.#data.get(resource) ?? new Map<string, KubeObject>();
    this.#data.set(resource, objects.set(key, stored));
    this.#record(resource, {
      type: previous ? 'MODIFIED' : 'ADDED',
      revision: this.#revision,
      object: stored,
      previous,
    });
    return stored;
  }

  /** Removes an object and tells who watches. Returns its last state, with the revision of its removal. */
  remove(resource: string, object: KubeObject): KubeObject {
    const previous = this.get(resource, keyOf(object));
    const last = this.#stamp(object);
    this.#data.get(resource)?.delete(keyOf(object));
    this.#record(resource, { type: 'DELETED', revision: this.#revision, object: last, previous });
    return last;
  }

  /** Returns the changes after `revision`. @throws ApiError Expired when some of them are no longer known. */
  since(resource: string, revision: number): readonly StoreEvent[] {
    const oldest = this.oldestRevision(resource);
    if (revision < oldest) throw expired(`too old resource version: ${revision} (${oldest})`);
    return (this.#history.get(resource) ?? []).filter((event) => event.revision > revision);
  }

  /** The oldest revision from which a resource can still be followed. */
  oldestRevision(resource: string): number {
    return Math.max(this.#compacted, this.#forgotten.get(resource) ?? 0);
  }

  /** Calls `listener` with each change of a resource, in order. Returns how to stop. */
  subscribe(resource: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(resource) ?? new Set();
    this.#listeners.set(resource, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  /** Forgets all changes up to `revision`, now by default: whoever continues from an older one gets 410. */
  compact(revision = this.#revision): void {
    this.#compacted = Math.max(this.#compacted, revision);
    for (const [resource, events] of this.#history) {
      this.#history.set(
        resource,
        events.filter((event) => event.revision > revision),
      );
    }
  }

  snapshot(): Snapshot {
    return { revision: this.#revision, data: new Map([...this.#data].map(([key, map]) => [key, new Map(map)])) };
  }

  /** Goes back to an older state, revision included, as when etcd is restored from a backup. Tells nobody. */
  restore(snapshot: Snapshot): void {
    this.#data = new Map([...snapshot.data].map(([key, map]) => [key, new Map(map)]));
    this.#revision = snapshot.revision;
    this.#compacted = snapshot.revision;
    this.#history.clear();
    this.#forgotten.clear();
  }

  #stamp(object: KubeObject): KubeObject {
    this.#revision += 1;
    return deepFreeze(withMetadata(object, { resourceVersion: String(this.#revision) }));
  }

  #record(resource: string, event: StoreEvent): void {
    const events = this.#history.get(resource) ?? [];
    events.push(event);
    this.#history.set(resource, events);
    // Forget a tenth at a time: shifting one by one would cost the whole list each.
    if (events.length > this.#historyLimit * 1.1) {
      const gone = events.splice(0, events.length - this.#historyLimit);
      this.#forgotten.set(resource, gone.at(-1)?.revision ?? 0);
    }
    for (const listener of [...(this.#listeners.get(resource) ?? [])]) listener(event);
  }
}

const TOO_OLD_CONTINUE =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.';

/** Names an object within its resource. */
export function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}

/** Makes the error for a read that is to be newer than anything there is. */
export function tooLarge(asked: number, revision: number): ApiError {
  const message = `Timeout: Too large resource version: ${asked}, current: ${revision}`;
  return new ApiError(504, 'Timeout', message, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  });
}

function sorted(objects: ReadonlyMap<string, KubeObject> | undefined, namespace?: string): readonly KubeObject[] {
  if (objects === undefined) return [];
  const prefix = namespace === undefined ? '' : `${namespace}/`;
  return [...objects]
    .filter(([key]) => key.startsWith(prefix))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, object]) => object);
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}
