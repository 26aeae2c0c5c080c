import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Api } from '../api.ts';
import { ApiError } from '../api-error.ts';
import { ADMIN, type User } from '../auth/tokens.ts';
import type { Connections } from './connections.ts';
import { type Control, serveControl } from './control.ts';
import { aggregatedVersion, discover } from './discovery.ts';
import { answerError, answerJson, type Exchange, notThere } from './exchange.ts';
import { describeApi } from './open-api.ts';
import { parseRequestPath } from './request-path.ts';
import { serveResource } from './serve-resource.ts';

/** How requests reach the server. */
export type ServerOptions = {
  /** Absent: plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Whether each request must bring a token and be allowed by RBAC; otherwise everyone is the administrator. */
  readonly authorizes: boolean;
};

/** Makes the HTTP server; the caller listens and closes. */
export function makeServer(api: Api, control: Control, connections: Connections, options: ServerOptions): Server {
  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    response.setHeader('Date', new Date(api.nowMs()).toUTCString());
    handle(api, control, connections, options, request, response).catch((error: unknown) =>
      answerError(response, error),
    );
  };
  const server = options.tls === undefined ? createServer(onRequest) : createTlsServer(options.tls, onRequest);
  server.on(options.tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) =>
    connections.addSocket(socket),
  );
  // Watches are idle for long.
  server.requestTimeout = 0;
  server.keepAliveTimeout = 60_000;
  return server;
}

async function handle(
  api: Api,
  control: Control,
  connections: Connections,
  options: ServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://server');
  if (url.pathname.startsWith('/_test/')) return serveControl(control, request, response, url);
  if (['/healthz', '/readyz', '/livez'].includes(url.pathname)) return void response.writeHead(200).end('ok');
  const user = authenticate(api, options, request);
  const onWatch = (stop: () => void) => connections.addWatch(stop);
  const exchange: Exchange = { request, response, url, user, onWatch };
  const path = parseRequestPath(url.pathname);
  if (path !== undefined) return serveResource(api, options.authorizes, exchange, path);
  const accept = request.headers.accept ?? '';
  const found = discover(api, url.pathname, accept) ?? describeApi(api, url.pathname);
  if (found === undefined) return void notThere(response);
  const version = ['/api', '/apis'].includes(url.pathname) ? aggregatedVersion(accept) : undefined;
  const aggregated = `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
  answerJson(response, 200, found, version === undefined ? 'application/json' : aggregated);
}

function authenticate(api: Api, options: ServerOptions, request: IncomingMessage): User {
  const [, token] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
  const user = token === undefined ? undefined : api.tokens.userOf(token);
  if (user !== undefined) return user;
  if (!options.authorizes) return ADMIN;
  throw new ApiError(401, 'Unauthorized', 'Unauthorized');
}
