import type { IncomingMessage, ServerResponse } from 'node:http';
import { isObject } from '../object.ts';
import { readBody } from './read-body.ts';

/** What tests may do to a running server, in process or by POST to `/_test/<name>`. */
export type Control = Readonly<Record<string, (body: Readonly<Record<string, unknown>>) => unknown>>;

/** Answers a POST to `/_test/…`. The name is that of a switch; its body is what the switch takes. */
export async function serveControl(
  control: Control,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): Promise<void> {
  const name = url.pathname.slice('/_test/'.length);
  const run = Object.hasOwn(control, name) ? control[name] : undefined;
  const body = await readBody(request);
  if (run === undefined) {
    response.writeHead(404).end(`no such switch: ${name}; known are ${Object.keys(control).join(', ')}\n`);
    return;
  }
  const result = run(isObject(body) ? body : {}) ?? {};
  response.writeHead(200, { 'content-type': 'application/json' }).end(`${JSON.stringify(result)}\n`);
}
