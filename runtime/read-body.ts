import type { IncomingMessage } from 'node:http';
import type { BodyBudget } from './body-budget.ts';
import { ByteCollector, collectStream, type SpareBuffers } from './byte-collector.ts';

/**
 * Reads the body of a request within the budget of its server. Returns `too-large` as soon as the size is known to exceed the
 * limit, or when it comes in too many pieces, and `busy` when too many bytes of bodies are in memory; the rest of the request
 * is not read then.
 * @param spare buffers to read into; the caller gives back what it got
 * @throws the error of a connection that breaks, or of a client that is too slow
 */
export async function readBody(
  request: IncomingMessage,
  budget: BodyBudget,
  spare?: SpareBuffers,
): Promise<Buffer<ArrayBuffer> | 'too-large' | 'busy'> {
  const bytes = Number(request.headers['content-length'] ?? budget.maxBody);
  if (bytes > budget.maxBody) return 'too-large';
  const body = budget.begin(request);
  const collected = new ByteCollector(bytes, spare?.take());
  try {
    const why = await collectStream(request, collected, (growth) => body.acquire(growth));
    if (why === 'refused') return 'busy';
    return why === undefined ? collected.take() : 'too-large';
  } finally {
    body.release();
  }
}
