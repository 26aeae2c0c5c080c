import type { BackoffSettings } from '../runtime/backoff.ts';
import { backoffMs } from '../runtime/backoff.ts';
import type { Clock } from '../runtime/clock.ts';
import { limitText } from '../runtime/limit-text.ts';
import type { Logger } from '../runtime/log.ts';
import { onAbort } from '../runtime/on-abort.ts';
import { compareRevisions } from './compare-versions.ts';
import type { KubeClient, KubeObject, ObjectQuery, ResourceType } from './kube-client.ts';
import { isKubeError, KubeError } from './kube-error.ts';
import { listPages } from './list-pages.ts';
import { type CacheBounds, ObjectCache, type ObjectChange } from './object-cache.ts';

/** Receives what happens to an informer, for metrics. */
export type InformerObserver = {
  /** A whole list was read. */
  readonly onList?: (type: ResourceType, items: number) => void;
  /** A list or watch failed, or a watch broke. One that was silent is no failure: the list that follows shows one. */
  readonly onFailure?: (type: ResourceType, error: unknown) => void;
  /** An object could not be decoded; called once for each of its versions. */
  readonly onUndecodable?: (type: ResourceType, key: string, error: unknown) => void;
};

/** The collection that an informer watches, and how. */
export type InformerOptions<T> = {
  readonly client: KubeClient;
  readonly type: ResourceType;
  readonly query?: ObjectQuery;
  /**
   * Returns what the cache keeps of an object; undefined when the object is not to be cached. When it throws, the
   * object is skipped and the earlier state stays: a deletion would trigger actions. A value that contains its key takes the
   * one that it is given, which the cache keeps anyway.
   */
  readonly decode: (object: KubeObject, key: string) => T | undefined;
  /** For each index, the texts by which a value is found. */
  readonly indexes?: Readonly<Record<string, (value: T, key: string) => readonly string[]>>;
  /** Bounds what is kept of objects whose size tenants choose; absent: everything is kept. */
  readonly bounds?: CacheBounds<T>;
  /** Objects on one page of a list; default 500. */
  readonly pageSize?: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly observer?: InformerObserver;
};

/** How much of the history of its collection a cache has received. */
type CacheProgress = {
  /** All writes up to this revision are in the cache; undefined before the first list. */
  readonly revision: string | undefined;
  /** Number of lists that were asked for. */
  readonly listsAsked: number;
  /** Which of them was the last that arrived whole; 0: none. */
  readonly listReceived: number;
};

/** A local copy of a collection, kept up to date. A key is `namespace/name`, or `name` for cluster-scoped objects. */
export type Informer<T> = {
  /** Lists and watches until aborted, through any failure; never rejects. To be called once. */
  start(signal: AbortSignal): Promise<void>;
  /** Resolves when the collection was read once. Rejects with the signal's reason. */
  synced(signal?: AbortSignal): Promise<void>;
  readonly isSynced: boolean;
  get(key: string): T | undefined;
  keys(): Iterable<string>;
  values(): Iterable<T>;
  readonly size: number;
  /** How many times a whole list was begun. A list may show the older state of a restored server. */
  readonly listings: number;
  readonly progress: CacheProgress;
  /** Returns the values that an index has under a text; none for an unknown text. */
  byIndex(name: string, value: string): readonly T[];
  /** Reports whether an index has a value under a text. */
  hasAny(name: string, value: string): boolean;
  /** Calls the listener after each change; `after` absent: deleted. After a new list it is called for all objects. */
  subscribe(listener: (change: ObjectChange<T>) => void): () => void;
  /** Monotonic milliseconds of the last answer or event from the server; minus infinity when there was none. */
  readonly lastContactMs: number;
};

/** Half of each wait is random: agents that lost one server at the same time must not reconnect at the same time. */
const BACKOFF: BackoffSettings = { firstMs: 200, maxMs: 30_000, factor: 2, jitter: 0.5 };

/** A watch that lasted so long was a success. One that ends at once must not be opened again in a tight loop. */
const MIN_WATCH_MS = 5000;

/** A watch is ended for objects that were not kept, once there is capacity for them: at most so often, as tenants choose it. */
const RELIST_MS = 600_000;

/**
 * Opens an informer: list, then watch from there, again and again.
 *
 * A watch is only continued when the server ended it cleanly. After any other end, and after silence, the collection is
 * listed again: the server may have been restored from a backup. Its revisions may since have passed those of the lost
 * history, and to continue would then miss changes forever, unnoticed.
 */
export function openInformer<T>(options: InformerOptions<T>): Informer<T> {
  const cache = new ObjectCache<T>(options.decode, options.indexes ?? {}, cacheReports(options), options.bounds);
  const hasSynced = Promise.withResolvers<void>();
  const state = { isSynced: false, listings: 0, lastContactMs: Number.NEGATIVE_INFINITY };
  const progress: Follower<T>['progress'] = { revision: undefined, listsAsked: 0, listReceived: 0 };
  const follower: Follower<T> = {
    options,
    cache,
    progress,
    listed: { ms: 0 },
    onContact: () => {
      state.lastContactMs = options.clock.monotonicMs();
    },
    onListing: () => {
      state.listings += 1;
    },
    onSynced: () => {
      state.isSynced = true;
      hasSynced.resolve();
    },
  };
  return {
    start: (signal) => follow(follower, signal),
    synced: (signal) => (signal === undefined ? hasSynced.promise : orAborted(hasSynced.promise, signal)),
    get isSynced() {
      return state.isSynced;
    },
    get: (key) => cache.get(key),
    keys: () => cache.keys(),
    values: () => cache.values(),
    get size() {
      return cache.size;
    },
    get listings() {
      return state.listings;
    },
    progress,
    byIndex: (name, value) => cache.byIndex(name, value),
    hasAny: (name, value) => cache.hasAny(name, value),
    subscribe: (listener) => cache.subscribe(listener),
    get lastContactMs() {
      return state.lastContactMs;
    },
  };
}

type Follower<T> = {
  readonly options: InformerOptions<T>;
  readonly cache: ObjectCache<T>;
  /** Changed before the cache is, so that what listens to the cache finds both alike. */
  readonly progress: { -readonly [Name in keyof CacheProgress]: CacheProgress[Name] };
  /** Monotonic milliseconds at the end of the last list. */
  readonly listed: { ms: number };
  readonly onContact: () => void;
  /** The first page of a list has arrived; the cache contains nothing of it yet. */
  readonly onListing: () => void;
  readonly onSynced: () => void;
};

async function follow<T>(follower: Follower<T>, signal: AbortSignal): Promise<void> {
  const { clock, log, random, type, observer } = follower.options;
  let version: string | undefined;
  let attempt = 0;
  while (!signal.aborted) {
    const startedMs = clock.monotonicMs();
    let waitMs = 0;
    try {
      version ??= await listAll(follower, signal);
      version = await watchOrUndefined(follower, version, signal);
    } catch (error) {
      if (signal.aborted) return;
      version = undefined;
      waitMs = isKubeError(error) ? (error.retryAfterMs ?? 0) : 0;
      // A revision that is too old is the normal end of a long interruption, not a failure.
      if (!isKubeError(error, 'EXPIRED')) log.warn('following objects failed', { resource: type.plural, error });
      observer?.onFailure?.(type, error);
    }
    attempt = clock.monotonicMs() - startedMs >= MIN_WATCH_MS ? 0 : attempt + 1;
    // After a long watch the next attempt comes almost at once; a short random wait separates many informers.
    waitMs = Math.max(waitMs, backoffMs(BACKOFF, Math.max(1, attempt), random()));
    await clock.sleep(waitMs, signal).catch(() => {});
  }
}

/**
 * Reads the whole collection, page by page, and returns its version. Objects that are missing are removed only at the
 * end.
 */
async function listAll<T>(follower: Follower<T>, signal: AbortSignal): Promise<string> {
  const { client, type, query = {}, pageSize, observer } = follower.options;
  const listedKeys = new Set<string>();
  const { progress } = follower;
  progress.listsAsked += 1;
  let version = '';
  for await (const page of listPages(client, type, { ...query, pageSize }, signal)) {
    signal.throwIfAborted();
    follower.onContact();
    if (listedKeys.size === 0) follower.onListing();
    version = page.resourceVersion;
    // Before its objects: a listener may compare them.
    if (page.continueToken === undefined) {
      progress.revision = version;
      progress.listReceived = progress.listsAsked;
    }
    for (const object of page.items) listedKeys.add(follower.cache.put(object));
  }
  follower.cache.retainOnly(listedKeys);
  follower.listed.ms = follower.options.clock.monotonicMs();
  observer?.onList?.(type, listedKeys.size);
  follower.onSynced();
  return version;
}

/**
 * As `watchFrom`; undefined when the watch was silent for too long. A server sends no bookmarks of a collection in which
 * nothing has changed since it started, so silence alone is no failure.
 */
async function watchOrUndefined<T>(
  follower: Follower<T>,
  from: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    return await watchFrom(follower, from, signal);
  } catch (error) {
    if (signal.aborted || !isKubeError(error, 'TIMEOUT') || error.status !== undefined) throw error;
    const { log, type } = follower.options;
    log.debug('a watch was silent, listing again', { resource: type.plural, error });
    return undefined;
  }
}

/** Applies changes until the server ends the watch; returns the version to continue from, undefined: list again. */
async function watchFrom<T>(follower: Follower<T>, from: string, signal: AbortSignal): Promise<string | undefined> {
  const { client, type, query = {}, clock } = follower.options;
  let version = from;
  for await (const event of client.watch(type, { ...query, resourceVersion: from }, signal)) {
    follower.onContact();
    const next = event.kind === 'bookmark' ? event.resourceVersion : event.object.metadata.resourceVersion;
    // Then the server was restored. @see KEP-5504, which lets clients compare revisions as numbers
    if (next !== undefined && (compareRevisions(next, version) ?? 0) < 0) {
      throw new KubeError({
        code: 'EXPIRED',
        request: `WATCH ${type.plural}`,
        text: `a revision went back to ${limitText(next, 40)}`,
      });
    }
    follower.progress.revision = next ?? version;
    if (event.kind === 'deleted') follower.cache.remove(event.object);
    else if (event.kind !== 'bookmark') follower.cache.put(event.object);
    version = next ?? version;
    if (clock.monotonicMs() - follower.listed.ms >= RELIST_MS && follower.cache.takeFreedCapacity()) return undefined;
  }
  signal.throwIfAborted();
  return version;
}

function cacheReports<T>({ type, log, observer }: InformerOptions<T>) {
  return {
    onUndecodable: (key: string, error: unknown) => {
      log.warn('object cannot be decoded, skipped', { resource: type.plural, key, error });
      observer?.onUndecodable?.(type, key, error);
    },
    onTooLarge: (key: string, why: string) => {
      log.warn('object is too large to be kept', { resource: type.plural, key, why });
    },
    onListenerError: (key: string, error: unknown) => {
      log.error('listener to changes failed', { resource: type.plural, key, error });
    },
  };
}

function orAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const leave = onAbort(signal, () => reject(signal.reason));
    promise.then(() => {
      leave();
      resolve();
    }, reject);
  });
}
