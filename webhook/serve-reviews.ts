import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import { BodyBudget, MAX_BODY_BYTES, MAX_LARGE_BODIES } from '../runtime/body-budget.ts';
import type { ClientAdmission } from '../runtime/client-admission.ts';
import type { Clock } from '../runtime/clock.ts';
import { createHttpsServer, type HttpServer } from '../runtime/http-server.ts';
import type { Logger } from '../runtime/log.ts';
import { readBody } from '../runtime/read-body.ts';
import type { TlsPair } from '../runtime/tls-follower.ts';
import type { ReviewOutcome, ReviewReply } from './answer-review.ts';
import type { WebhookMetrics } from './metrics.ts';

/**
 * The path to which reviews are posted: that of Tencent's product, so that its MutatingWebhookConfiguration works
 * unchanged.
 */
export const REVIEW_PATH = '/add-pod-eni-ip-limit';

/** The path to which reviews of Pods behind load balancers are posted. */
export const GATE_PATH = '/add-pod-load-balancer-gate';

/** The outcome of a request: that of its review, or why there was no review. */
type RequestOutcome =
  | ReviewOutcome
  | 'no-review'
  | 'too-large'
  | 'busy'
  | 'cut-off'
  | 'wrong-request'
  | 'forbidden'
  | 'failed';

/** Answers the parsed body of a request. */
export type AnswerSent = (sent: unknown) => ReviewReply;

/** Dependencies of the server. */
type ReviewServerDeps = {
  /** Who answers, by path. */
  readonly answers: ReadonlyMap<string, AnswerSent>;
  readonly metrics: Pick<WebhookMetrics, 'requests' | 'requestSeconds' | 'warnings'>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly log: Logger;
  /** Which clients are answered, of those that the TLS handshake accepts. */
  readonly clients: ClientAdmission;
};

/** Most connections. Each API server opens a few. */
const MAX_CONNECTIONS = 1_000;

/** Creates the HTTPS server; it does not listen yet. */
export function createReviewServer(pair: TlsPair, deps: ReviewServerDeps): HttpServer<Server> {
  const budget = new BodyBudget(MAX_BODY_BYTES, MAX_LARGE_BODIES * MAX_BODY_BYTES);
  const server = createHttpsServer(pair, {
    maxConnections: MAX_CONNECTIONS,
    answer: (request, response) => handleRequest(request, response, deps, budget),
  });
  // The client speaks no TLS or no HTTP. The connection is closed by now and cannot be answered.
  server.server.on('tlsClientError', (error) => deps.log.debug('a connection ended before it was secure', { error }));
  return server;
}

async function handleRequest(
  request: IncomingMessage,
  response: ServerResponse,
  deps: ReviewServerDeps,
  budget: BodyBudget,
): Promise<void> {
  const startedMs = deps.clock.monotonicMs();
  const outcome = await answerRequest(request, response, deps, budget).catch((error: unknown): RequestOutcome => {
    deps.log.error('a review could not be answered', { error });
    if (!response.headersSent) refuse(response, 500, 'this is a fault of tke-eni-ip-webhook; its log says more');
    return 'failed';
  });
  deps.metrics.requests.inc({ outcome });
  deps.metrics.requestSeconds.observeMs(deps.clock.monotonicMs() - startedMs);
}

async function answerRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { answers, metrics, log, clients }: ReviewServerDeps,
  budget: BodyBudget,
): Promise<RequestOutcome> {
  const refusal = clients.refusal(request.socket);
  if (refusal !== undefined) {
    refuse(response, 403, refusal);
    return 'forbidden';
  }
  if (clients.isOutdated(request.socket)) response.setHeader('connection', 'close');
  const answer = answers.get(request.url?.split('?')[0] ?? '');
  if (answer === undefined) {
    refuse(response, 404, `the only paths are ${[...answers.keys()].join(' and ')}`);
    return 'wrong-request';
  }
  const fault = requestFaultOf(request);
  if (fault !== undefined) {
    refuse(response, fault.status, fault.why);
    return 'wrong-request';
  }
  // The client disconnected or was too slow: no answer is sent.
  const body = await readBody(request, budget).catch(() => 'cut-off' as const);
  if (body === 'cut-off') return 'cut-off';
  if (body === 'too-large') {
    refuse(response, 413, `expected at most ${MAX_BODY_BYTES} bytes`);
    return 'too-large';
  }
  if (body === 'busy') {
    refuse(response, 503, 'too many large bodies are being read');
    return 'busy';
  }
  const sent = parse(body);
  const reply = sent === undefined ? ({ kind: 'no-review', why: 'expected JSON' } as const) : answer(sent.value);
  if (reply.kind === 'no-review') {
    log.warn('got no review', { why: reply.why });
    refuse(response, 400, reply.why);
    return 'no-review';
  }
  if (reply.warnings.length > 0) log.info('warned', { podKey: reply.subject, warnings: reply.warnings });
  metrics.warnings.inc(reply.warnings.length);
  const text = JSON.stringify(reply.body);
  response.writeHead(200, { 'content-type': 'application/json' }).end(text);
  return reply.outcome;
}

type RequestFault = { readonly status: number; readonly why: string };

function requestFaultOf({ method, headers }: IncomingMessage): RequestFault | undefined {
  if (method !== 'POST') return { status: 405, why: 'expected POST' };
  const type = headers['content-type']?.split(';')[0]?.trim();
  if (type !== 'application/json') return { status: 415, why: 'expected application/json' };
  if (Number(headers['content-length'] ?? 0) > MAX_BODY_BYTES) {
    return { status: 413, why: `expected at most ${MAX_BODY_BYTES} bytes` };
  }
  return undefined;
}

function parse(body: Buffer): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(body.toString('utf8')) };
  } catch {
    return undefined;
  }
}

/** Answers with an error and closes the connection, because the rest of the request is not read. */
function refuse(response: ServerResponse, status: number, why: string): void {
  response.writeHead(status, { 'content-type': 'text/plain', connection: 'close' }).end(`${why}\n`);
}
