import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError } from '../api-error.ts';
import type { User } from '../auth/tokens.ts';

/** One request on its way through the server. */
export type Exchange = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
  readonly user: User;
  /** Stops a watch; the server calls it to disconnect all watches. */
  readonly onWatch: (stop: () => void) => () => void;
};

/** Answers a path that names nothing, as the real server does: not with a Status. */
export function notThere(response: ServerResponse): void {
  response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' }).end('404 page not found\n');
}

/** Answers with one JSON document. */
export function answerJson(response: ServerResponse, status: number, body: unknown, type = 'application/json'): void {
  response.writeHead(status, { 'content-type': type }).end(`${JSON.stringify(body)}\n`);
}

/** Answers with the Status of an error. */
export function answerError(response: ServerResponse, error: unknown): void {
  if (!(error instanceof ApiError)) throw error;
  if (response.headersSent) return void response.destroy();
  const retryAfterSeconds = error.details?.retryAfterSeconds;
  if (retryAfterSeconds !== undefined) response.setHeader('Retry-After', String(retryAfterSeconds));
  answerJson(response, error.code, error.toStatus());
}
