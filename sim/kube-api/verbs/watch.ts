import { startInterval, startTimer } from '../../../runtime/clock.ts';
import type { Api, ApiRequest } from '../api.ts';
import { ApiError, invalidOptions } from '../api-error.ts';
import type { KubeObject, ObjectMeta } from '../object.ts';
import { groupVersion, storageKey } from '../resources/api-resource.ts';
import { forbiddenValue } from '../resources/causes.ts';
import type { Selector } from '../selector.ts';
import type { StoreEvent } from '../store.ts';
import { selectorOf } from './list.ts';

/** One line of a watch. */
export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: KubeObject }
  | { readonly type: 'ERROR'; readonly object: ReturnType<ApiError['toStatus']> };

/** A watch that is under way. */
type Watch = { readonly close: () => void };

/**
 * Follows a collection: what is there, when no revision is given; then each change, as the selector sees it.
 * `send` gets the events in order, the first ones before this returns; `end` is called when the watch is over.
 * @throws ApiError BadRequest
 */
export function watch(api: Api, request: ApiRequest, send: (event: WatchEvent) => void, end: () => void): Watch {
  const { resource, query, namespace } = request;
  const selects = selectorOf(request);
  const isHere = (object: KubeObject) =>
    namespace === undefined || !resource.namespaced || object.metadata.namespace === namespace;
  const key = storageKey(resource);
  const wantsBookmarks = query.get('allowWatchBookmarks') === 'true';
  const wantsInitial = query.get('sendInitialEvents') === 'true';
  if (wantsInitial && query.get('resourceVersionMatch') !== 'NotOlderThan') {
    throw invalidOptions(
      'ListOptions',
      forbiddenValue('resourceVersionMatch', 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'),
    );
  }
  const start = startRevision(query.get('resourceVersion') ?? '');
  const deliver = (event: StoreEvent) => {
    // A client from the future, as after a restore, sees nothing until the revisions have caught up: as the real one.
    if (event.revision <= start || !isHere(event.object)) return;
    const seen = asSeen(event, selects);
    if (seen !== undefined) send(seen);
  };
  const bookmark = (isInitialEnd: boolean) =>
    send(bookmarkAt(request, Math.max(start, api.store.revision), isInitialEnd));
  if (start === 0 || wantsInitial) {
    for (const object of api.store.list(key, resource.namespaced ? namespace : undefined).filter(selects)) {
      send({ type: 'ADDED', object });
    }
    if (wantsInitial && wantsBookmarks) bookmark(true);
  } else {
    const missed = missedSince(api, key, start);
    if (missed instanceof ApiError) {
      send({ type: 'ERROR', object: missed.toStatus() });
      end();
      return { close: () => {} };
    }
    for (const event of missed) deliver(event);
  }
  return follow(api, key, query, { deliver, bookmark: wantsBookmarks ? () => bookmark(false) : () => {}, end });
}

type Follower = {
  readonly deliver: (event: StoreEvent) => void;
  readonly bookmark: () => void;
  readonly end: () => void;
};

function follow(api: Api, key: string, query: URLSearchParams, { deliver, bookmark, end }: Follower): Watch {
  const unsubscribe = api.store.subscribe(key, deliver);
  const bookmarks = startInterval(bookmark, api.bookmarkIntervalMs);
  const seconds = Number(query.get('timeoutSeconds') ?? 0);
  const close = () => {
    unsubscribe();
    bookmarks.cancel();
    timeout?.cancel();
  };
  const finish = () => {
    bookmark();
    close();
    end();
  };
  const timeout = seconds > 0 ? startTimer(finish, seconds * 1000) : undefined;
  return { close };
}

function startRevision(text: string): number {
  if (text === '') return 0;
  const revision = Number(text);
  if (!Number.isInteger(revision) || revision < 0) {
    const message = `resourceVersion: Invalid value: ${JSON.stringify(text)}: strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`;
    throw new ApiError(500, '', message);
  }
  return revision;
}

function missedSince(api: Api, key: string, revision: number): readonly StoreEvent[] | ApiError {
  try {
    return api.store.since(key, revision);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** What a change is to who sees only selected objects: coming into view is ADDED, going out of it DELETED. */
export function asSeen(event: StoreEvent, selects: Selector): WatchEvent | undefined {
  const was = event.previous !== undefined && selects(event.previous);
  const is = event.type !== 'DELETED' && selects(event.object);
  if (was && is) return { type: 'MODIFIED', object: event.object };
  if (is) return { type: 'ADDED', object: event.object };
  if (!was || event.previous === undefined) return undefined;
  if (event.type === 'DELETED') return { type: 'DELETED', object: event.object };
  // The object as it was last in view, but at the revision at which it went.
  const metadata = { ...event.previous.metadata, resourceVersion: String(event.revision) };
  return { type: 'DELETED', object: { ...event.previous, metadata } };
}

function bookmarkAt({ resource }: ApiRequest, revision: number, isInitialEnd: boolean): WatchEvent {
  const annotations: Readonly<Record<string, string>> = isInitialEnd ? { 'k8s.io/initial-events-end': 'true' } : {};
  const marks = isInitialEnd ? { annotations } : {};
  // A bookmark has nothing but a revision; it names no object.
  const metadata = { resourceVersion: String(revision), ...marks } as Partial<ObjectMeta> as ObjectMeta;
  return { type: 'BOOKMARK', object: { kind: resource.kind, apiVersion: groupVersion(resource), metadata } };
}
