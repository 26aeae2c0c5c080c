import { createServer as createPlainServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { runInBackground } from './background.ts';
import type { Clock } from './clock.ts';
import { HttpExchanges } from './http-exchanges.ts';
import type { TlsPair } from './tls-follower.ts';

/** What a server is made of. */
type HttpServerOptions = {
  /** Most connections. Each takes a file descriptor, and some 50 KB with TLS. */
  readonly maxConnections: number;
  /** Answers one request; never rejects. */
  readonly answer: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** Only tests change them. */
  readonly timeouts?: Partial<HttpTimeouts>;
};

/** Time limits in milliseconds. */
export type HttpTimeouts = {
  /** Of a TLS handshake, and again of the head of a request. */
  readonly headMs: number;
  /** Of a whole request: enough for 64 MiB over a slow network. */
  readonly requestMs: number;
  /** Until a client has read an answer. */
  readonly readMs: number;
  /**
   * Of a connection without a request. Longer than Go clients keep one (90 s), such as API servers and kube-scheduler: they
   * close it, and both ends never do so at once.
   */
  readonly idleMs: number;
  /** Interval of the checks for late requests. */
  readonly checkMs: number;
};

const TIMEOUTS: HttpTimeouts = {
  ...{ headMs: 10_000, requestMs: 30_000, readMs: 30_000, idleMs: 120_000, checkMs: 1_000 },
};
/** Most requests of one connection; the answer to the last one says `connection: close`. */
const MAX_REQUESTS = 1_000;
/** How long a client that sent no HTTP may take to read the answer. */
const LINGER_MS = 1_000;

const NO_HTTP = `${JSON.stringify({ Error: 'this is no request of HTTP, or it was cut off' })}\n`;
const NO_REQUEST = [
  'HTTP/1.1 400 Bad Request',
  'content-type: application/json',
  `content-length: ${NO_HTTP.length}`,
  'connection: close',
  '',
  NO_HTTP,
].join('\r\n');

/** A server with the bounds that all our ports have. */
export type HttpServer<S = Server | TlsServer> = {
  /** The server of Node.js, to listen on and to change certificates. */
  readonly server: S;
  /** Refuses new connections, waits up to `graceMs` for the requests that run, then closes all connections. */
  close(graceMs: number, clock: Pick<Clock, 'sleep'>): Promise<void>;
  /** Closes all connections at once. */
  closeNow(): void;
};

/**
 * Creates a server of plain HTTP that does not listen yet. Everything that a client can hold has a bound: connections, their
 * time, requests at once, answers that it does not read. With too many connections, `ConnectionTable` says which one is closed.
 */
export function createHttpServer(options: HttpServerOptions): HttpServer<Server> {
  return withBounds(options, (limits, listener) => createPlainServer(limits, listener));
}

/** Creates the same server with TLS; it asks for certificates of clients where `pair` has authorities of them. */
export function createHttpsServer(
  pair: TlsPair,
  options: HttpServerOptions & {
    /** Clients with certificates of no authority pass the handshake: `ClientAdmission` decides on them. */
    readonly admitsUnauthorized?: boolean;
  },
): HttpServer<TlsServer> {
  const rejectUnauthorized = options.admitsUnauthorized !== true;
  return withBounds(options, (limits, listener) => {
    const handshake = {
      requestCert: pair.ca !== undefined,
      rejectUnauthorized,
      handshakeTimeout: limits.headersTimeout,
    };
    return createTlsServer({ ...limits, ...pair, ...handshake }, listener);
  });
}

type Limits = ReturnType<typeof limitsOf>;

function limitsOf({ headMs, requestMs, idleMs, checkMs }: HttpTimeouts) {
  return {
    headersTimeout: headMs,
    requestTimeout: requestMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: checkMs,
  };
}

function withBounds<S extends Server | TlsServer>(
  { answer, maxConnections, timeouts }: HttpServerOptions,
  create: (limits: Limits, listener: (request: IncomingMessage, response: ServerResponse) => void) => S,
): HttpServer<S> {
  const times = { ...TIMEOUTS, ...timeouts };
  const exchanges = new HttpExchanges(maxConnections, times.readMs);
  const server = create(limitsOf(times), (request, response) => {
    const onAnswered = exchanges.begin(request, response);
    if (onAnswered === undefined) return;
    runInBackground('answering a request', answer(request, response).then(onAnswered));
  });
  server.maxRequestsPerSocket = MAX_REQUESTS;
  // With TLS this is the socket below it, before the handshake.
  server.on('connection', (socket: Socket) => exchanges.connections.add(socket));
  server.on('clientError', refuse);
  return {
    server,
    close: async (graceMs, clock) => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      exchanges.endEach();
      server.closeIdleConnections();
      const timer = new AbortController();
      await Promise.race([closed, clock.sleep(graceMs, timer.signal).catch(() => {})]);
      timer.abort();
      exchanges.connections.closeAll();
      await closed;
    },
    closeNow: () => {
      server.close();
      exchanges.connections.closeAll();
    },
  };
}

/** The head is malformed or late. Answers if the socket can be written to, and closes it in any case. */
function refuse(_error: Error, socket: Socket): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  socket.setTimeout(LINGER_MS, () => socket.destroy());
  socket.end(NO_REQUEST, () => socket.destroy());
}
