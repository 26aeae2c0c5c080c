import type { Clock } from '../runtime/clock.ts';
import { isRecord } from '../runtime/decode.ts';
import { listOf, recordOf } from '../runtime/json.ts';
import type { Logger } from '../runtime/log.ts';
import { type LoadKubeConfig, openAccess } from './access.ts';
import { type AccessSource, readAccessTarget } from './access-target.ts';
import { answerError, isObjectMissing } from './answer-error.ts';
import { createCaller, type Send } from './caller.ts';
import type { KubeClient, KubeObject, ListPage, ObjectPatch, ObjectQuery, ResourceType } from './kube-client.ts';
import { KubeError } from './kube-error.ts';
import type { KubeObserver } from './kube-observer.ts';
import { collectionPath, MAX_TOKEN_CHARS, objectPath, requestLabel } from './request-path.ts';
import { apiVersionOf } from './resource-types.ts';
import { ServerTime } from './server-time.ts';
import { TokenBucket } from './token-bucket.ts';
import { followWatch } from './watch-call.ts';

/** How to reach the API server, and at which rate to call it. */
export type KubeClientOptions = AccessSource & {
  /** Calls per second in the long run. Watches and `urgent` share another quarter of this. */
  readonly qps: number;
  /** Calls at once after an idle time. */
  readonly burst: number;
  readonly userAgent: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly observer?: KubeObserver;
  /** Returns a number from 0 to below 1: spreads the ends of watches. Default: no spread. */
  readonly random?: () => number;
  /** `loadFullKubeConfig`, for executables that can afford the memory; without it some kubeconfigs are refused. */
  readonly loadKubeConfig?: LoadKubeConfig;
  /** Time limit of a call, in milliseconds; default 30,000. */
  readonly requestTimeoutMs?: number;
  /** Longest silence of a watch, in milliseconds; default 150,000. Servers send a bookmark each minute. */
  readonly watchIdleMs?: number;
};

/** A client that owns connections. */
export type OpenKubeClient = KubeClient & {
  readonly urgent: KubeClient;
  /** Closes its connections; running calls fail. */
  close(): void;
};

const REQUEST_TIMEOUT_MS = 30_000;
/** A silent connection is considered dead only after two bookmarks were lost or not sent. */
const WATCH_IDLE_MS = 150_000;

/**
 * Opens a client of the API server that a kubeconfig, a URL or a Pod's environment names. Connects with the first call.
 * @throws ConfigError when they name no server, or require what `loadKubeConfig` would load
 */
export function openKubeClient(options: KubeClientOptions): OpenKubeClient {
  const { clock, qps, burst } = options;
  const access = openAccess(readAccessTarget(options), clock, options.loadKubeConfig);
  const time = new ServerTime(clock);
  const http = { access, clock, time, timeoutMs: options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS };
  // Watches and the leader election have a rate limit of their own: they must not wait behind a thousand writes, and
  // they are limited too.
  const reserve = new TokenBucket(clock, Math.max(2, qps / 4), Math.max(10, burst / 2));
  const ordinary = new TokenBucket(clock, qps, burst);
  const watchDeps = {
    http,
    limiter: reserve,
    random: options.random ?? (() => 0.5),
    idleMs: options.watchIdleMs ?? WATCH_IDLE_MS,
    ...withObserver(options),
    userAgent: options.userAgent,
  };
  const clientWith = (limiter: TokenBucket): KubeClient => {
    const send = createCaller({
      http,
      limiter,
      log: options.log,
      userAgent: options.userAgent,
      ...withObserver(options),
    });
    return {
      ...objectCalls(send),
      watch: (type, query, signal, onOpen) => followWatch({ ...watchDeps, onOpen }, type, query, signal),
      serverMs: () => time.read(),
    };
  };
  return { ...clientWith(ordinary), urgent: clientWith(reserve), close: () => access.close() };
}

function withObserver({ observer }: KubeClientOptions): { readonly observer?: KubeObserver } {
  return observer === undefined ? {} : { observer };
}

function objectCalls(send: Send): Omit<KubeClient, 'watch'> {
  return {
    get: async (type, ref, signal) => {
      const label = requestLabel('GET', type, ref);
      const answer = await send({ verb: 'get', type, path: objectPath(type, ref), label }, signal);
      if (answer.status === 404 && isObjectMissing(answer.body)) return undefined;
      return decodeObject(accepted(answer, label), label, type);
    },
    listPage: async (type, query, signal) => {
      const label = requestLabel('LIST', type, withNamespace(query));
      const path = `${collectionPath(type, query.namespace)}${listSearch(query)}`;
      return decodeList(accepted(await send({ verb: 'list', type, path, label }, signal), label), label, type);
    },
    create: async (type, object, signal) => {
      const label = requestLabel('POST', type, object.metadata);
      const { subresource } = type;
      const path =
        subresource === undefined
          ? collectionPath(type, object.metadata.namespace)
          : `${objectPath(type, object.metadata)}/${subresource}`;
      const answer = accepted(await send({ verb: 'create', type, path, label, body: object }, signal), label);
      // The API server answers the creation of a subresource with a Status.
      return subresource === undefined ? decodeObject(answer, label, type) : object;
    },
    update: async (type, object, signal) => {
      const label = requestLabel('PUT', type, object.metadata);
      const path = objectPath(type, object.metadata);
      const answer = await send({ verb: 'update', type, path, label, body: object }, signal);
      return decodeObject(accepted(answer, label), label, type);
    },
    patch: async (type, ref, patch, signal) => {
      const label = requestLabel('PATCH', type, ref);
      const path = `${objectPath(type, ref)}${patch.subresource === undefined ? '' : `/${patch.subresource}`}`;
      const contentType = PATCH_TYPES[patch.kind];
      const answer = await send({ verb: 'patch', type, path, label, body: patch.body, contentType }, signal);
      return decodeObject(accepted(answer, label), label, type);
    },
    delete: async (type, ref, only, signal) => {
      const label = requestLabel('DELETE', type, ref);
      const preconditions = only === undefined ? {} : { preconditions: only };
      const body = { kind: 'DeleteOptions', apiVersion: 'v1', ...preconditions };
      const answer = await send({ verb: 'delete', type, path: objectPath(type, ref), label, body }, signal);
      if (answer.status === 404 && isObjectMissing(answer.body)) return false;
      accepted(answer, label);
      return true;
    },
  };
}

const PATCH_TYPES: Readonly<Record<ObjectPatch['kind'], string>> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
};

type Answer = { readonly status: number; readonly body: unknown; readonly retryAfter: string | undefined };

function accepted(answer: Answer, request: string): unknown {
  if (answer.status >= 200 && answer.status <= 299) return answer.body;
  throw answerError({ request, ...answer });
}

function withNamespace({ namespace }: ObjectQuery): { readonly namespace?: string } {
  return namespace === undefined ? {} : { namespace };
}

function listSearch(query: Parameters<KubeClient['listPage']>[1]): string {
  const search = new URLSearchParams();
  if (query.fieldSelector !== undefined) search.set('fieldSelector', query.fieldSelector);
  if (query.labelSelector !== undefined) search.set('labelSelector', query.labelSelector);
  if (query.limit !== undefined) search.set('limit', String(query.limit));
  if (query.continueToken !== undefined) search.set('continue', query.continueToken);
  return search.size === 0 ? '' : `?${search}`;
}

/** Decodes an object only as far as all kinds are alike: it has metadata with a name, unless it answers a question. @throws KubeError BAD_ANSWER */
export function decodeObject(value: unknown, request: string, type: ResourceType): KubeObject {
  const isNamed = isRecord(value) && isRecord(value['metadata']) && typeof value['metadata']['name'] === 'string';
  if (!isRecord(value) || !(isNamed || type.isQuestion === true)) {
    throw new KubeError({ code: 'BAD_ANSWER', request, text: 'the answer is no object' });
  }
  // Items in a list of a built-in kind lack `apiVersion` and `kind`.
  const named = value['kind'] === undefined ? { apiVersion: apiVersionOf(type), kind: type.kind, ...value } : value;
  // All other fields are checked by the decoder of the kind.
  return named as KubeObject;
}

/** Decodes a page of a list. @throws KubeError BAD_ANSWER */
export function decodeList(value: unknown, request: string, type: ResourceType): ListPage {
  const metadata = recordOf(recordOf(value)['metadata']);
  const version = metadata['resourceVersion'];
  if (!isRecord(value) || typeof version !== 'string') {
    throw new KubeError({ code: 'BAD_ANSWER', request, text: 'the answer is no list' });
  }
  const items = listOf(value['items']);
  const token = metadata['continue'];
  // Both are sent back in the path of a request.
  for (const text of [version, token])
    if (typeof text === 'string' && text.length > MAX_TOKEN_CHARS)
      throw new KubeError({
        code: 'BAD_ANSWER',
        request,
        text: `a version or token above ${MAX_TOKEN_CHARS} characters`,
      });
  return {
    items: items.map((item) => decodeObject(item, request, type)),
    resourceVersion: version,
    ...(typeof token === 'string' && token !== '' ? { continueToken: token } : {}),
  };
}
