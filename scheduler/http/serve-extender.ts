import type { IncomingMessage, ServerResponse } from 'node:http';
import { BodyBudget, MAX_LARGE_BODIES } from '../../runtime/body-budget.ts';
import { SpareBuffers } from '../../runtime/byte-collector.ts';
import { ClientAdmission, FORWARDED_HEADER } from '../../runtime/client-admission.ts';
import type { Clock } from '../../runtime/clock.ts';
import { createHttpServer, createHttpsServer, type HttpServer, type HttpTimeouts } from '../../runtime/http-server.ts';
import { listenOn } from '../../runtime/listen-on.ts';
import type { Logger } from '../../runtime/log.ts';
import { readBody } from '../../runtime/read-body.ts';
import type { TlsPair } from '../../runtime/tls-follower.ts';
import { NameLists } from './name-lists.ts';
import { RenderedJson } from './rendered-json.ts';
import { RequestError, type RequestErrorCode } from './request-error.ts';

/**
 * Answers one verb; the returned value is sent as JSON. `signal` is aborted when the client disconnects; `isForwarded`:
 * another replica has forwarded the request.
 */
export type VerbHandler = (body: unknown, signal: AbortSignal, isForwarded: boolean) => unknown | Promise<unknown>;

/** The outcome of a request; `gone`: the client disconnected before the answer. */
type RequestOutcome = 'ok' | 'internal' | 'gone' | RequestErrorCode;

/** The verbs of the server, its limits and its dependencies. */
export type ExtenderServerOptions = {
  /** `host:port`; port 0 selects any free port. */
  readonly address: string;
  /** Absent: the server speaks plain HTTP. */
  readonly certificates?: TlsPair;
  /** Common names of client certificates that are answered; empty or absent: all that the TLS handshake accepts. */
  readonly allowedNames?: readonly string[];
  /** Handlers by name: `filter` is served as POST /filter. */
  readonly verbs: Readonly<Record<string, VerbHandler>>;
  /** Returns undefined while requests are answered, else the reason why they are not. */
  readonly readiness: () => string | undefined;
  readonly bodyLimitBytes: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onAnswer?: (verb: string, outcome: RequestOutcome, ms: number) => void;
  /** Only tests change the defaults. */
  readonly timeouts?: Partial<HttpTimeouts>;
};

/** A server that listens. */
export type ExtenderServer = {
  readonly address: string;
  /**
   * Uses other certificates for new connections. Existing connections continue; with other authorities of clients they
   * end, after the request that runs.
   */
  setSecureContext(certificates: TlsPair): void;
  /** From now on each answer ends its connection, so that the client makes another one, to another replica. */
  endConnections(): void;
  /**
   * Accepts no new connections, waits up to `graceMs` for the requests on those that are open, then closes all. The answers
   * end their connections.
   */
  close(graceMs: number): Promise<void>;
};

/**
 * Most requests at once. kube-scheduler asks for one Pod at a time; so many requests are a client fault, and each may
 * hold a large body.
 */
const MAX_INFLIGHT_REQUESTS = 256;
/** Largest buffer of a body that is kept for the next one: names of 25,000 nodes. */
const SPARE_BYTES = 1_048_576;
/** Most connections. A few schedulers open a few connections each. */
const MAX_CONNECTIONS = 1_000;

/** Serves the verbs of an extender. @throws ConfigError when the address cannot be listened on */
export async function serveExtender(options: ExtenderServerOptions): Promise<ExtenderServer> {
  const { certificates, timeouts } = options;
  const handler = new RequestHandler(options);
  const common = {
    maxConnections: MAX_CONNECTIONS,
    answer: (request: IncomingMessage, response: ServerResponse) => handler.answer(request, response),
    ...(timeouts && { timeouts }),
  };
  // Other replicas have a certificate that no client authority has signed. ClientAdmission cuts off all others.
  const tls = certificates && createHttpsServer(certificates, { ...common, admitsUnauthorized: true });
  const server: HttpServer = tls ?? createHttpServer(common);
  const bound = await listenOn(server.server, options.address, '--listen-address');
  const followed = tls && certificates && handler.clients.follow(tls.server, certificates);
  return {
    address: bound,
    setSecureContext: (next) => followed?.setSecureContext(next),
    endConnections: () => {
      handler.isClosing = true;
    },
    close: async (graceMs) => {
      handler.isClosing = true;
      await server.close(graceMs, options.clock);
    },
  };
}

class RequestHandler {
  isClosing = false;
  readonly clients: ClientAdmission;
  readonly #options: ExtenderServerOptions;
  readonly #reading: Parameters<typeof readJson>[1];
  #inflight = 0;

  constructor(options: ExtenderServerOptions) {
    this.#options = options;
    this.clients = new ClientAdmission(options.allowedNames ?? [], options.certificates?.ca !== undefined);
    const { bodyLimitBytes } = options;
    this.#reading = {
      budget: new BodyBudget(bodyLimitBytes, MAX_LARGE_BODIES * bodyLimitBytes),
      spare: new SpareBuffers(MAX_LARGE_BODIES, SPARE_BYTES),
      names: new NameLists(),
    };
  }

  /** Answers one request of any content. Never throws. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { clock, log, verbs, onAnswer } = this.#options;
    const startedMs = clock.monotonicMs();
    const verb = (request.url ?? '/').split('?')[0]?.replace(/^\/+|\/+$/g, '') ?? '';
    const disconnected = new AbortController();
    response.once('close', () => disconnected.abort(new Error('the client disconnected')));
    this.#inflight += 1;
    let outcome: RequestOutcome = 'ok';
    try {
      const answer = await this.#dispatch(verb, request, disconnected.signal);
      if (this.clients.isOutdated(request.socket)) response.setHeader('connection', 'close');
      if (disconnected.signal.aborted) outcome = 'gone';
      else this.#send(response, 200, answer);
    } catch (error) {
      outcome = disconnected.signal.aborted ? 'gone' : error instanceof RequestError ? error.code : 'internal';
      if (outcome === 'internal') log.error('a request could not be answered', { verb, error });
      this.#refuse(request, response, error);
    } finally {
      this.#inflight -= 1;
    }
    onAnswer?.(Object.hasOwn(verbs, verb) ? verb : 'unknown', outcome, clock.monotonicMs() - startedMs);
  }

  async #dispatch(verb: string, request: IncomingMessage, signal: AbortSignal): Promise<unknown> {
    const { verbs, readiness } = this.#options;
    const refusal = this.clients.refusal(request.socket);
    if (refusal !== undefined) throw new RequestError('FORBIDDEN', refusal);
    const handler = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
    if (handler === undefined) {
      const known = Object.keys(verbs).map((name) => `/${name}`);
      throw new RequestError('NOT_FOUND', `no such path /${verb.slice(0, MAX_CHARS)}; known are ${known.join(', ')}`);
    }
    if (request.method !== 'POST') throw new RequestError('METHOD', `/${verb} takes POST, not ${request.method}`);
    if (this.#inflight > MAX_INFLIGHT_REQUESTS)
      throw new RequestError('BUSY', `more than ${MAX_INFLIGHT_REQUESTS} requests at once`);
    const notReady = readiness();
    if (notReady !== undefined) throw new RequestError('STANDBY', notReady);
    const isForwarded = this.clients.isPeer(request.socket) && request.headers[FORWARDED_HEADER] !== undefined;
    return await handler(await readJson(request, this.#reading), signal, isForwarded);
  }

  #refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    if (response.headersSent || response.destroyed) return;
    const isKnown = error instanceof RequestError;
    // The rest of an unread body makes the connection useless, so close it. Close it on a standby replica too: a client
    // that reuses the connection would never reach the leader.
    const isLast = isKnown && (error.code === 'STANDBY' || error.code === 'FORBIDDEN');
    if (!request.complete || isLast || this.clients.isOutdated(request.socket))
      response.setHeader('connection', 'close');
    this.#send(response, isKnown ? error.status : 500, {
      Error: isKnown ? error.message : 'a fault of ours, see the log',
    });
  }

  #send(response: ServerResponse, status: number, answer: unknown): void {
    const rendered = answer instanceof RenderedJson ? answer.body : JSON.stringify(answer);
    const body = typeof rendered === 'string' ? Buffer.from(rendered) : rendered;
    if (this.isClosing) response.setHeader('connection', 'close');
    response.writeHead(status, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
  }
}

const MAX_CHARS = 80;

/**
 * Reads the body of a request as JSON.
 * @throws RequestError TOO_LARGE as soon as the size is known to exceed the limit; BUSY when too many bytes of bodies
 * are in memory; BAD_JSON; also the error of a connection that breaks
 */
async function readJson(
  request: IncomingMessage,
  { budget, spare, names }: { readonly budget: BodyBudget; readonly spare: SpareBuffers; readonly names: NameLists },
): Promise<unknown> {
  const body = await readBody(request, budget, spare);
  if (body === 'too-large') throw tooLarge(budget.maxBody);
  if (body === 'busy') throw new RequestError('BUSY', 'too many large bodies are being read');
  try {
    // What is parsed has no part of the body.
    return parse(body, names);
  } finally {
    spare.giveBack(body);
  }
}

function parse(body: Buffer, names: NameLists): unknown {
  if (body.length === 0)
    throw new RequestError('BAD_JSON', 'the request has no body; it has to be JSON of extender/v1');
  try {
    return names.parse(body);
  } catch (error) {
    const why = error instanceof Error ? error.message.slice(0, MAX_ERROR) : String(error);
    throw new RequestError('BAD_JSON', `the body is no JSON: ${why}`, { cause: error });
  }
}

/** Longest part of an error of JSON that is returned, characters. */
const MAX_ERROR = 200;
const MIB = 1024 * 1024;

function tooLarge(maxBytes: number): RequestError {
  const cure = 'set nodeCacheCapable: true in KubeSchedulerConfiguration, or raise --body-limit-mib';
  return new RequestError('TOO_LARGE', `the body is larger than ${maxBytes / MIB} MiB; ${cure}`);
}
