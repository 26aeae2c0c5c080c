import { createServer, type ServerResponse } from 'node:http';
import { runInBackground } from './background.ts';
import { listenOn } from './listen-on.ts';

/** Sources of the endpoints; each is called again for each request. */
type EndpointSources = {
  /** Returns undefined when the process works, else what is stuck. */
  readonly liveness: () => string | undefined;
  /** Returns undefined when the process can serve, else the reason why not. */
  readonly readiness: () => string | undefined;
  readonly metrics: () => Promise<string>;
  readonly metricsContentType: string;
};

/** Listening endpoints; `close` also ends open connections at once. */
export type HttpEndpoints = { readonly address: string; close(): void };

/** Most connections; one more is closed at once. Each takes a file descriptor, of which ADD and DEL need some. */
const MAX_CONNECTIONS = 128;
/** Time limits in milliseconds: of the head of a request, of a whole request, and of an idle connection. */
const TIMEOUTS = { headersTimeout: 5_000, requestTimeout: 10_000, keepAliveTimeout: 30_000 } as const;
/** Interval at which Node.js looks for late requests, in milliseconds. */
const CHECK_INTERVAL_MS = 1_000;

/**
 * Serves `/metrics`, `/healthz` and `/readyz` on `host:port`; port 0 selects any free port.
 * @throws ConfigError that names the setting, when the address cannot be listened on
 */
export async function serveHttpEndpoints(address: string, sources: EndpointSources): Promise<HttpEndpoints> {
  const limits = { ...TIMEOUTS, connectionsCheckingInterval: CHECK_INTERVAL_MS };
  const server = createServer(limits, (request, response) => {
    runInBackground('answering a request', answer(request.url ?? '/', response, sources));
  });
  server.maxConnections = MAX_CONNECTIONS;
  const bound = await listenOn(server, address, '--metrics-address', ", or '' for none");
  return {
    address: bound,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function answer(url: string, response: ServerResponse, sources: EndpointSources): Promise<void> {
  const path = url.split('?')[0];
  if (path === '/metrics') return answerMetrics(response, sources);
  if (path === '/healthz') return answerCondition(response, sources.liveness());
  if (path === '/readyz') return answerCondition(response, sources.readiness());
  response.writeHead(404, { 'content-type': 'text/plain' }).end('known are /metrics, /healthz, /readyz\n');
}

async function answerMetrics(response: ServerResponse, sources: EndpointSources): Promise<void> {
  try {
    const text = await sources.metrics();
    response.writeHead(200, { 'content-type': sources.metricsContentType }).end(text);
  } catch (error) {
    response.writeHead(500, { 'content-type': 'text/plain' }).end(`${String(error)}\n`);
  }
}

function answerCondition(response: ServerResponse, problem: string | undefined): void {
  response.writeHead(problem === undefined ? 200 : 503, { 'content-type': 'text/plain' }).end(`${problem ?? 'ok'}\n`);
}
