import { type IncomingMessage, request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { ByteCollector, collectStream, SpareBuffers } from '../runtime/byte-collector.ts';
import type { Clock } from '../runtime/clock.ts';
import { onAbort } from '../runtime/on-abort.ts';
import type { Access } from './access.ts';
import { ANSWER_TOO_LARGE, isKubeError, KubeError } from './kube-error.ts';
import type { ServerTime } from './server-time.ts';

/** One HTTP request to the API server. */
export type HttpCall = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path with its query. */
  readonly path: string;
  /** Name of the request in errors: `PUT nodeeniconfigs/n1`. */
  readonly label: string;
  readonly body?: string;
  readonly contentType?: string;
  readonly userAgent: string;
};

/** Dependencies of a request: access to the server, a clock and a time limit. */
export type HttpDeps = {
  readonly access: Access;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Takes note of the time of each answer. */
  readonly time?: ServerTime;
};

/** An answer that was read completely. */
export type HttpAnswer = {
  readonly status: number;
  /** Parsed when it is JSON, else its text. */
  readonly body: unknown;
  readonly retryAfter: string | undefined;
};

/**
 * Sends a request and reads the whole answer. Repeats nothing, except once a read whose pooled connection was closed.
 * @throws KubeError UNAVAILABLE, TIMEOUT, BAD_ANSWER; the signal's reason
 */
export async function callOnce(deps: HttpDeps, call: HttpCall, signal?: AbortSignal): Promise<HttpAnswer> {
  return await withDeadline(deps, call, signal, async (inner) => {
    const response = await openResponse(deps, call, inner).catch((error: unknown) => {
      // The server closed the idle connection at the moment it was used. A read may simply be sent again.
      if (call.method === 'GET' && error instanceof PooledReset) return openResponse(deps, call, inner);
      throw error;
    });
    deps.time?.note(response.headers.date);
    const text = await readText(response, call.label);
    return {
      status: response.statusCode ?? 0,
      body: parseBody(text, call.label, response.statusCode ?? 0),
      retryAfter: response.headers['retry-after'],
    };
  });
}

/**
 * Sends a request and returns its answer as soon as that begins. The caller reads the body and ends it by the signal.
 * @throws KubeError UNAVAILABLE, TIMEOUT when it does not begin in time; the signal's reason
 */
export async function openStream(deps: HttpDeps, call: HttpCall, signal: AbortSignal): Promise<IncomingMessage> {
  return await withDeadline(deps, call, signal, async (inner) => {
    const response = await openResponse(deps, call, inner);
    // `inner` covered only the wait for the answer. From here on the caller's signal ends the stream.
    response.once(
      'close',
      onAbort(signal, () => response.destroy()),
    );
    return response;
  });
}

/** Reads the body of an error answer: JSON or text. @throws KubeError */
export async function readRefusal(deps: HttpDeps, call: HttpCall, response: IncomingMessage): Promise<unknown> {
  return await withDeadline(deps, call, undefined, async (inner) => {
    inner.addEventListener('abort', () => response.destroy(), { once: true });
    return parseBody(await readText(response, call.label), call.label, response.statusCode ?? 0);
  });
}

/** The failure of a pooled connection that was closed before an answer began. */
class PooledReset extends Error {}

async function withDeadline<T>(
  { access, clock, timeoutMs }: HttpDeps,
  call: HttpCall,
  signal: AbortSignal | undefined,
  run: (inner: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const inner = new AbortController();
  const timer = new AbortController();
  let isTimedOut = false;
  const leave = signal && onAbort(signal, () => inner.abort('the caller gave up'));
  const onDeadline = () => {
    isTimedOut = true;
    inner.abort('no answer in time');
  };
  clock.sleep(timeoutMs, timer.signal).then(onDeadline, () => {});
  try {
    return await run(inner.signal);
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    if (isKubeError(error)) throw error;
    // When one connection to a server hangs, the others may hang as well.
    access.dropIdle();
    const text = isTimedOut ? `no answer within ${timeoutMs} ms` : messageOf(error);
    throw new KubeError({ code: isTimedOut ? 'TIMEOUT' : 'UNAVAILABLE', request: call.label, text }, { cause: error });
  } finally {
    leave?.();
    // With a reason: without one Node makes an error with a stack trace, for each request.
    timer.abort('over');
  }
}

async function openResponse({ access }: HttpDeps, call: HttpCall, signal: AbortSignal): Promise<IncomingMessage> {
  const { agent, headers } = await access.credentials();
  signal.throwIfAborted();
  const url = `${access.server}${call.path}`;
  const body = call.body === undefined ? undefined : Buffer.from(call.body);
  return await new Promise<IncomingMessage>((resolve, reject) => {
    const send = url.startsWith('http:') ? plainRequest : tlsRequest;
    const request = send(url, {
      method: call.method,
      agent,
      headers: {
        ...headers,
        accept: 'application/json',
        'user-agent': call.userAgent,
        ...(body === undefined ? {} : { 'content-type': call.contentType, 'content-length': body.length }),
      },
    });
    const leave = onAbort(signal, () => request.destroy(new Error('aborted')));
    request.once('response', (response) => {
      resolve(response);
      // While the body is read, an abort must still break the connection.
      response.once('close', leave);
    });
    request.on('error', (error) => {
      leave();
      reject(request.reusedSocket ? new PooledReset(error.message, { cause: error }) : error);
    });
    request.end(body);
  });
}

/**
 * Largest answer that is accepted. An object has at most 1.5 MB in etcd, and as JSON with escapes several times that; a page of
 * a list that is larger is asked for in halves. The least memory limit of a program is 256 MiB.
 */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** Of a page of a list, as they come one after the other. */
const SPARE = new SpareBuffers(1, 2 * 1024 * 1024);

async function readText(response: IncomingMessage, label: string): Promise<string> {
  const body = new ByteCollector(MAX_ANSWER_BYTES, SPARE.take());
  const why = await collectStream(response, body);
  if (why === undefined) {
    const bytes = body.take();
    const text = bytes.toString('utf8');
    SPARE.giveBack(bytes);
    return text;
  }
  response.destroy();
  if (why === 'too-many-pieces')
    throw new KubeError({ code: 'BAD_ANSWER', request: label, text: 'an answer in too many pieces' });
  const text = `more than ${MAX_ANSWER_BYTES} bytes`;
  throw new KubeError({ code: 'BAD_ANSWER', request: label, text, reason: ANSWER_TOO_LARGE });
}

function parseBody(text: string, label: string, status: number): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // Proxies and load balancers answer errors in formats of their own.
    if (status < 200 || status > 299) return text;
    const failure = { code: 'BAD_ANSWER', request: label, status, text: 'the answer is no JSON' } as const;
    throw new KubeError(failure, { cause: error });
  }
}

function messageOf(error: unknown): string {
  // For a host with several addresses, Node reports all failures in one error without a message.
  if (error instanceof AggregateError) return error.errors.map(messageOf).join('; ');
  return error instanceof Error ? error.message || error.name : String(error);
}
