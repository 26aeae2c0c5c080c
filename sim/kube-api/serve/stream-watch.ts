import { startTimer } from '../../../runtime/clock.ts';
import type { Api, ApiRequest } from '../api.ts';
import { type WatchEvent, watch } from '../verbs/watch.ts';
import type { Exchange } from './exchange.ts';
import { formOf, includeOf, render } from './render.ts';

const lines = new WeakMap<object, string>();

/** Sends a watch, one JSON line each event, until either side ends it. @throws ApiError before the first line */
export function streamWatch(api: Api, exchange: Exchange, asked: ApiRequest, delayMs: number): void {
  const { request, response } = exchange;
  const form = formOf(request.headers.accept ?? '');
  const include = includeOf(asked.query);
  const early: WatchEvent[] = [];
  let isFirst = true;
  const write = (event: WatchEvent) => {
    // Many watch the same objects: each is turned into text once.
    if (form === 'object') return void response.write(`{"type":"${event.type}","object":${textOf(event.object)}}\n`);
    const options = { include, withHeader: isFirst, nowMs: api.nowMs() };
    isFirst = false;
    const object = event.type === 'ERROR' ? event.object : render(asked.resource, event.object, form, options);
    response.write(`${JSON.stringify({ type: event.type, object })}\n`);
  };
  const later = (run: () => void) => (delayMs > 0 ? void startTimer(run, delayMs) : run());
  let isOpen = false;
  const followed = watch(
    api,
    asked,
    (event) => later(() => (isOpen ? write(event) : void early.push(event))),
    () => later(() => (isOpen ? void response.end() : void setImmediate(() => response.end()))),
  );
  isOpen = true;
  response.writeHead(200, { 'content-type': 'application/json', 'transfer-encoding': 'chunked' });
  response.flushHeaders();
  for (const event of early) write(event);
  const forget = exchange.onWatch(() => request.socket.destroy());
  response.on('close', () => {
    followed.close();
    forget();
  });
}

function textOf(object: object): string {
  const known = lines.get(object) ?? JSON.stringify(object);
  lines.set(object, known);
  return known;
}
