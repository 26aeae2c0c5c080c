import { showBytesInJson } from '../runtime/byte-text.ts';
import type { Logger } from '../runtime/log.ts';
import { answerError } from './answer-error.ts';
import { callOnce, type HttpAnswer, type HttpCall, type HttpDeps } from './http-call.ts';
import type { ResourceType } from './kube-client.ts';
import { isKubeError } from './kube-error.ts';
import type { KubeObserver, KubeRequestReport } from './kube-observer.ts';
import type { TokenBucket } from './token-bucket.ts';

/** A call of one verb on a resource. */
type ObjectCall = {
  readonly verb: Exclude<KubeRequestReport['verb'], 'watch'>;
  readonly type: ResourceType;
  readonly path: string;
  readonly label: string;
  readonly body?: unknown;
  readonly contentType?: string;
};

/** Sends a call under the rate limit, and returns any answer that does not lead to a repetition. */
export type Send = (call: ObjectCall, signal?: AbortSignal) => Promise<HttpAnswer>;

/** Dependencies of a caller. */
type CallerDeps = {
  readonly http: HttpDeps;
  readonly limiter: TokenBucket;
  readonly log: Logger;
  readonly userAgent: string;
  readonly observer?: KubeObserver;
};

/** Most repetitions of a throttled call. After that the 429 is returned to the caller. */
const MAX_REPEATS = 4;
const WAIT_MS = 1000;

/**
 * Creates the function that sends calls.
 *
 * It repeats only calls that had no effect: a throttled one (429) after the wait that the server requests, and an
 * unauthenticated one (401) once, with credentials read again.
 */
export function createCaller(deps: CallerDeps): Send {
  const { http, limiter, log, observer } = deps;
  return async (call, signal) => {
    let hasRenewed = false;
    for (let repeats = 0; ; repeats++) {
      const waitsFromMs = http.clock.monotonicMs();
      await limiter.take(signal, laneOf(call.path));
      observer?.onRateLimitWait?.(http.clock.monotonicMs() - waitsFromMs);
      const answer = await sendObserved(deps, call, signal);
      if (answer.status === 401 && !hasRenewed) {
        hasRenewed = true;
        log.info('API server refused our credentials, reading them again', { request: call.label });
        http.access.renew();
        continue;
      }
      if (answer.status !== 429 || repeats >= MAX_REPEATS) return answer;
      const { retryAfterMs } = answerError({ request: call.label, ...answer });
      await http.clock.sleep(retryAfterMs ?? WAIT_MS, signal);
    }
  };
}

/** The namespace of an object; what has none has a lane of its own, as a node that is written often. */
function laneOf(path: string): string {
  return /\/namespaces\/([^/?]+)\/./.exec(path)?.[1] ?? path;
}

async function sendObserved(deps: CallerDeps, call: ObjectCall, signal: AbortSignal | undefined): Promise<HttpAnswer> {
  const { http, observer } = deps;
  const startedMs = http.clock.monotonicMs();
  const report = (outcome: KubeRequestReport['outcome']) => {
    const ms = http.clock.monotonicMs() - startedMs;
    observer?.onRequest?.({ verb: call.verb, resource: call.type.plural, outcome, ms });
  };
  try {
    const answer = await callOnce(http, httpCall(deps, call), signal);
    report(answer.status < 300 ? 'ok' : answerError({ request: call.label, ...answer }).code);
    return answer;
  } catch (error) {
    report(isKubeError(error) ? error.code : 'aborted');
    throw error;
  }
}

const METHODS = { get: 'GET', list: 'GET', create: 'POST', update: 'PUT', patch: 'PATCH', delete: 'DELETE' } as const;

function httpCall({ userAgent }: CallerDeps, call: ObjectCall): HttpCall {
  return {
    method: METHODS[call.verb],
    path: call.path,
    label: call.label,
    userAgent,
    ...(call.body === undefined
      ? {}
      : { body: showBytesInJson(JSON.stringify(call.body)), contentType: call.contentType ?? 'application/json' }),
  };
}
