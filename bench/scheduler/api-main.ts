/**
 * An API server of the cluster of the benchmark, as a process of its own: pages and watches over plain HTTP, made as they are
 * asked for. Prints its address.
 */
import { createServer, type ServerResponse } from 'node:http';
import { CHANGES, CHANGES_PER_SECOND, COLLECTIONS } from './world.ts';

/** The version of each list; changes come after it. */
const VERSION = 1_000_000;
const EVERY_MS = (1_000 / CHANGES_PER_SECOND) * Object.keys(CHANGES).length;

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
  const plural = pathname.split('/').at(-1) ?? '';
  if (searchParams.has('watch')) watch(plural, response);
  else list(plural, searchParams, response);
});
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify(server.address())));
process.once('SIGTERM', () => process.exit(0));

function list(plural: string, search: URLSearchParams, response: ServerResponse): void {
  const [count, at] = COLLECTIONS[plural] ?? [0, () => ({ metadata: { name: '' } })];
  const from = Number(search.get('continue') ?? 0);
  const to = Math.min(count, from + Number(search.get('limit') ?? count));
  const items = Array.from({ length: to - from }, (_, index) => at(from + index));
  const metadata = { resourceVersion: String(VERSION), ...(to < count ? { continue: String(to) } : {}) };
  response.setHeader('content-type', 'application/json').end(JSON.stringify({ metadata, items }));
}

function watch(plural: string, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
  const changeAt = CHANGES[plural];
  if (changeAt === undefined) return;
  let serial = 0;
  const timer = setInterval(() => {
    serial += 1;
    const { metadata, ...rest } = changeAt(serial);
    const object = { ...rest, metadata: { ...metadata, resourceVersion: String(VERSION + serial) } };
    response.write(`${JSON.stringify({ type: 'MODIFIED', object })}\n`);
  }, EVERY_MS);
  response.once('close', () => clearInterval(timer));
}
