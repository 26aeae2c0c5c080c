import type { IncomingMessage } from 'node:http';
import type { BodyBudget } from './body-budget.ts';

/**
 * Reads the body of a request within the budget of its server. Returns `too-large` as soon as the size is known to exceed the
 * limit, and `busy` when too many bytes of bodies are in memory; the rest of the request is not read then.
 * @throws the error of a connection that breaks, or of a client that is too slow
 */
export async function readBody(request: IncomingMessage, budget: BodyBudget): Promise<Buffer | 'too-large' | 'busy'> {
  if (Number(request.headers['content-length'] ?? 0) > budget.maxBody) return 'too-large';
  const body = budget.begin(request);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request) {
      if (!Buffer.isBuffer(chunk)) continue;
      if (bytes + chunk.length > budget.maxBody) return 'too-large';
      if (!body.acquire(chunk.length)) return 'busy';
      bytes += chunk.length;
      chunks.push(chunk);
    }
  } finally {
    body.release();
  }
  return Buffer.concat(chunks);
}
