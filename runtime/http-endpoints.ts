import type { IncomingMessage, ServerResponse } from 'node:http';
import { createHttpServer } from './http-server.ts';
import { listenOn } from './listen-on.ts';

/** Sources of the endpoints; each is called again for each request. */
export type HttpEndpointSources = {
  /** Returns undefined when the process works, else what is stuck. */
  readonly liveness: () => string | undefined;
  /** Returns undefined when the process can serve, else the reason why not. */
  readonly readiness: () => string | undefined;
  /** The registry of the metrics, such as that of prom-client. */
  readonly registry: { readonly contentType: string; metrics(): Promise<string> };
};

/** Listening endpoints; `close` also ends open connections at once. */
export type HttpEndpoints = { readonly address: string; close(): void };

/** Most connections. Each takes a file descriptor, of which ADD and DEL need some. */
const MAX_CONNECTIONS = 128;

/**
 * Serves `/metrics`, `/healthz` and `/readyz` on `host:port`, which is --metrics-address; port 0 selects any free port, and
 * with '' nothing is served.
 * @throws ConfigError that names the setting, when the address cannot be listened on
 */
export async function serveHttpEndpoints(
  address: string,
  sources: HttpEndpointSources,
): Promise<HttpEndpoints | undefined> {
  if (address === '') return undefined;
  const metrics = shareRunning(async () => Buffer.from(await sources.registry.metrics()));
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    // Nobody reads a body here, and it may never end.
    const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers;
    if (length !== '0' || coding !== undefined) response.setHeader('connection', 'close');
    return answerPath(request.url ?? '/', response, { ...sources, metrics });
  };
  const server = createHttpServer({ maxConnections: MAX_CONNECTIONS, answer });
  const bound = await listenOn(server.server, address, '--metrics-address', ", or '' for none");
  return { address: bound, close: () => server.closeNow() };
}

type AnswerSources = HttpEndpointSources & { readonly metrics: () => Promise<Buffer> };

/** Calls that come while one runs get its result: many callers at once cost as much as one. */
function shareRunning<T>(call: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () => {
    running ??= call().finally(() => {
      running = undefined;
    });
    return running;
  };
}

async function answerPath(url: string, response: ServerResponse, sources: AnswerSources): Promise<void> {
  const path = url.split('?')[0];
  if (path === '/metrics') return answerMetrics(response, sources);
  if (path === '/healthz') return answerCondition(response, sources.liveness());
  if (path === '/readyz') return answerCondition(response, sources.readiness());
  response.writeHead(404, { 'content-type': 'text/plain' }).end('known are /metrics, /healthz, /readyz\n');
}

async function answerMetrics(response: ServerResponse, sources: AnswerSources): Promise<void> {
  try {
    const text = await sources.metrics();
    response.writeHead(200, { 'content-type': sources.registry.contentType }).end(text);
  } catch (error) {
    response.writeHead(500, { 'content-type': 'text/plain' }).end(`${String(error)}\n`);
  }
}

function answerCondition(response: ServerResponse, problem: string | undefined): void {
  response.writeHead(problem === undefined ? 200 : 503, { 'content-type': 'text/plain' }).end(`${problem ?? 'ok'}\n`);
}
