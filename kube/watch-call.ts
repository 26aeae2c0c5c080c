import type { IncomingMessage } from 'node:http';
import type { Clock } from '../runtime/clock.ts';
import { messageOf } from '../runtime/error-text.ts';
import { answerError } from './answer-error.ts';
import { type HttpCall, type HttpDeps, openStream, readRefusal } from './http-call.ts';
import type { KubeClient, ResourceType, WatchEvent } from './kube-client.ts';
import { isKubeError, KubeError } from './kube-error.ts';
import type { KubeObserver, KubeRequestReport } from './kube-observer.ts';
import { collectionPath, requestLabel } from './request-path.ts';
import type { TokenBucket } from './token-bucket.ts';
import { decodeWatchLine, splitLines } from './watch-stream.ts';

/** Dependencies of a watch. */
type WatchDeps = {
  readonly http: HttpDeps;
  readonly limiter: TokenBucket;
  readonly random: () => number;
  readonly idleMs: number;
  readonly userAgent: string;
  readonly observer?: KubeObserver;
  readonly onOpen: (() => void) | undefined;
};

type WatchQuery = Parameters<KubeClient['watch']>[1];

/**
 * Shortest time after which the server ends a watch; the longest is double. client-go requests the same. The times are
 * spread so that clients do not reconnect at the same time.
 */
const MIN_WATCH_SECONDS = 300;

/**
 * Watches a collection until the server ends the watch, which ends the iteration.
 * @throws KubeError EXPIRED; UNAVAILABLE when the connection breaks; TIMEOUT when it is silent for too long; others
 */
export async function* followWatch(
  deps: WatchDeps,
  type: ResourceType,
  query: WatchQuery,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent, void, undefined> {
  const { http, limiter, observer } = deps;
  await limiter.take(signal);
  const startedMs = http.clock.monotonicMs();
  let outcome: KubeRequestReport['outcome'] = 'aborted';
  try {
    yield* eventsOf(deps, type, query, signal);
    outcome = 'ok';
  } catch (error) {
    if (isKubeError(error)) outcome = error.code;
    throw error;
  } finally {
    observer?.onRequest?.({ verb: 'watch', resource: type.plural, outcome, ms: http.clock.monotonicMs() - startedMs });
  }
}

async function* eventsOf(
  deps: WatchDeps,
  type: ResourceType,
  query: WatchQuery,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent, void, undefined> {
  const { http, idleMs } = deps;
  const call = watchCall(deps, type, query);
  const response = await openWatch(http, call, signal);
  deps.onOpen?.();
  const idle = startIdleTimer(http.clock, idleMs, () => response.destroy());
  try {
    for await (const line of splitLines(withActivity(response, idle.onData), call.label)) {
      const event = decodeWatchLine(line, call.label);
      if (event !== undefined) yield event;
    }
    // An abort ends the stream like the server does. Only the latter is a clean end to continue from.
    signal.throwIfAborted();
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (isKubeError(error)) throw error;
    const text = idle.isOver() ? `silent for ${idleMs} ms` : messageOf(error);
    const code = idle.isOver() ? 'TIMEOUT' : 'UNAVAILABLE';
    throw new KubeError({ code, request: call.label, text }, { cause: error });
  } finally {
    idle.stop();
    response.destroy();
  }
}

async function openWatch(http: HttpDeps, call: HttpCall, signal: AbortSignal): Promise<IncomingMessage> {
  for (let hasRenewed = false; ; hasRenewed = true) {
    const response = await openStream(http, call, signal);
    const status = response.statusCode ?? 0;
    if (status >= 200 && status <= 299) return response;
    const body = await readRefusal(http, call, response);
    if (status !== 401 || hasRenewed) {
      throw answerError({ request: call.label, status, body, retryAfter: response.headers['retry-after'] });
    }
    http.access.renew();
  }
}

function watchCall(deps: WatchDeps, type: ResourceType, query: WatchQuery): HttpCall {
  const search = new URLSearchParams({
    watch: 'true',
    allowWatchBookmarks: 'true',
    resourceVersion: query.resourceVersion,
    timeoutSeconds: String(Math.round(MIN_WATCH_SECONDS * (1 + deps.random()))),
  });
  if (query.fieldSelector !== undefined) search.set('fieldSelector', query.fieldSelector);
  if (query.labelSelector !== undefined) search.set('labelSelector', query.labelSelector);
  return {
    method: 'GET',
    path: `${collectionPath(type, query.namespace)}?${search}`,
    label: requestLabel('WATCH', type, query.namespace === undefined ? {} : { namespace: query.namespace }),
    userAgent: deps.userAgent,
  };
}

async function* withActivity(
  response: IncomingMessage,
  onData: () => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of response as AsyncIterable<Buffer>) {
    onData();
    yield chunk;
  }
}

/**
 * Calls `onIdle` when no data arrived for `idleMs`. A connection to a vanished peer would otherwise look like a
 * quiet one forever.
 */
function startIdleTimer(clock: Clock, idleMs: number, onIdle: () => void) {
  const stopped = new AbortController();
  let lastDataMs = clock.monotonicMs();
  let isOver = false;
  const wait = async () => {
    for (let leftMs = idleMs; leftMs > 0; leftMs = lastDataMs + idleMs - clock.monotonicMs()) {
      await clock.sleep(leftMs, stopped.signal);
    }
    isOver = true;
    onIdle();
  };
  wait().catch(() => {});
  return {
    onData: () => {
      lastDataMs = clock.monotonicMs();
    },
    isOver: () => isOver,
    stop: () => stopped.abort(),
  };
}
