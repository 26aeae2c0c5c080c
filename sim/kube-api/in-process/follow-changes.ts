import type { ObjectQuery, ResourceType, WatchEvent } from '../../../kube/kube-client.ts';
import { KubeError } from '../../../kube/kube-error.ts';
import type { Api, ApiRequest } from '../api.ts';
import { watchEndOf } from '../faults.ts';
import { storageKey } from '../resources/api-resource.ts';
import { nameInFieldSelector } from '../selector.ts';
import type { StoreEvent } from '../store.ts';
import { selectorOf } from '../verbs/list.ts';
import { asSeen } from '../verbs/watch.ts';
import { asKubeError, type Call, type Caller, dropped, textOf, type Who } from './caller.ts';
import type { Focus, WatchHub } from './watch-hub.ts';

/** What a watch is made of. */
type WatchDeps = {
  readonly api: Api;
  readonly caller: Caller;
  readonly hub: WatchHub;
  readonly who: Who;
  readonly onOpen: (() => void) | undefined;
};

/** Changes that wait for a reader before the server gives it up, as the real one gives up slow readers. */
const MOST_WAITING = 100_000;

/** Follows a resource from a revision on; the same events in the same order as over HTTP. @throws KubeError EXPIRED, UNAVAILABLE */
export async function* followChanges(
  deps: WatchDeps,
  type: ResourceType,
  { namespace, ...query }: ObjectQuery & { readonly resourceVersion: string },
  signal: AbortSignal,
): AsyncGenerator<WatchEvent, void> {
  const { api, caller, hub, who } = deps;
  const call: Call = { verb: 'watch', type, namespace, query };
  const { request, actions } = await caller.arrive(who, call, signal);
  const delayMs = actions.reduce((sum, action) => sum + (action.kind === 'watch-delay' ? action.ms : 0), 0);
  const waiting = new Waiting();
  const key = storageKey(request.resource);
  const read = readerOf(request, query.resourceVersion);
  const take = (event: StoreEvent): void => {
    const seen = read(event);
    if (seen === undefined) return;
    if (delayMs === 0) {
      waiting.push(seen, call);
      return;
    }
    caller.clock.sleep(delayMs, signal).then(
      () => waiting.push(seen, call),
      // The watch is over: what was on its way is lost with it.
      () => {},
    );
  };
  const missed = missedBy(api, request, query.resourceVersion, call);
  const bookmark = (): void =>
    waiting.push(
      { kind: 'bookmark', resourceVersion: String(Math.max(Number(query.resourceVersion), api.store.revision)) },
      call,
    );
  const remove = hub.add(key, focusOf(type, query.fieldSelector), {
    userAgent: who.userAgent,
    deliver: take,
    bookmark,
    cut: () => waiting.fail(dropped(call)),
  });
  const abort = (): void => waiting.fail(signal.reason);
  const over = new AbortController();
  const endMs = watchEndOf(actions);
  if (endMs !== undefined)
    caller.clock.sleep(endMs, over.signal).then(
      () => waiting.end(),
      () => {},
    );
  signal.addEventListener('abort', abort, { once: true });
  try {
    deps.onOpen?.();
    for (const event of missed) take(event);
    for (let event = await waiting.next(); event !== undefined; event = await waiting.next()) yield event;
  } finally {
    over.abort();
    signal.removeEventListener('abort', abort);
    remove();
  }
}

function focusOf(type: ResourceType, fieldSelector = ''): Focus {
  const name = nameInFieldSelector(fieldSelector);
  if (name !== undefined) return { kind: 'name', name };
  const [, nodeName] = /(?:^|,)spec\.nodeName==?([^,]+)/.exec(fieldSelector) ?? [];
  return type.plural === 'pods' && nodeName !== undefined ? { kind: 'node', nodeName } : { kind: 'all' };
}

const KINDS = { ADDED: 'added', MODIFIED: 'modified', DELETED: 'deleted' } as const;

function readerOf(request: ApiRequest, resourceVersion: string): (event: StoreEvent) => WatchEvent | undefined {
  const selects = selectorOf(request);
  const start = Number(resourceVersion);
  const { namespace, resource } = request;
  return (event) => {
    // A client from the future, as after a restore, sees nothing until the revisions have caught up.
    if (event.revision <= start) return undefined;
    if (namespace !== undefined && resource.namespaced && event.object.metadata.namespace !== namespace)
      return undefined;
    const seen = asSeen(event, selects);
    if (seen === undefined || seen.type === 'BOOKMARK' || seen.type === 'ERROR') return undefined;
    return { kind: KINDS[seen.type], object: seen.object };
  };
}

/** What happened since; from no revision or 0 on, all that is there. */
function missedBy(api: Api, request: ApiRequest, resourceVersion: string, call: Call): readonly StoreEvent[] {
  const key = storageKey(request.resource);
  const revision = Number(resourceVersion);
  if (revision > 0) {
    try {
      return api.store.since(key, revision);
    } catch (error) {
      throw asKubeError(error, call);
    }
  }
  const { namespace } = request;
  return api.store.list(key, request.resource.namespaced ? namespace : undefined).map((object) => ({
    type: 'ADDED',
    revision: Number(object.metadata.resourceVersion),
    object,
    previous: undefined,
  }));
}

/** Events on their way to one reader. */
class Waiting {
  readonly #events: WatchEvent[] = [];
  #first = 0;
  #failure: { readonly reason: unknown } | undefined;
  #isEnded = false;
  #wake: (() => void) | undefined;

  push(event: WatchEvent, call: Call): void {
    if (this.#failure !== undefined) return;
    if (this.#events.length - this.#first >= MOST_WAITING) {
      const text = 'the reader is too slow';
      this.fail(new KubeError({ code: 'UNAVAILABLE', request: textOf(call), text }));
      return;
    }
    this.#events.push(event);
    this.#wake?.();
  }

  /** Ends it: what is on its way is lost, as when a connection breaks. */
  fail(reason: unknown): void {
    this.#failure ??= { reason };
    this.#wake?.();
  }

  /** Ends it cleanly: what is on its way still arrives. */
  end(): void {
    this.#isEnded = true;
    this.#wake?.();
  }

  /** Resolves to the next event; undefined when it has ended. */
  async next(): Promise<WatchEvent | undefined> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure.reason;
      const event = this.#events[this.#first];
      if (event !== undefined) {
        this.#first += 1;
        if (this.#first === this.#events.length) {
          this.#events.length = 0;
          this.#first = 0;
        }
        return event;
      }
      if (this.#isEnded) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
  }
}
