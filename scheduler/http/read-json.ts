import type { IncomingMessage } from 'node:http';
import type { BodyBudget } from '../../runtime/body-budget.ts';
import type { NameLists } from './name-lists.ts';
import { RequestError } from './request-error.ts';

/**
 * Reads the body of a request as JSON.
 * @throws RequestError TOO_LARGE as soon as the size is known to exceed the limit; BUSY when too many bytes of bodies
 * are in memory; BAD_JSON; also the error of a connection that breaks
 */
export async function readJson(request: IncomingMessage, budget: BodyBudget, names: NameLists): Promise<unknown> {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > budget.maxBody) throw tooLarge(budget.maxBody);
  const body = budget.begin(request);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      if (bytes + chunk.length > budget.maxBody) throw tooLarge(budget.maxBody);
      if (!body.acquire(chunk.length)) throw new RequestError('BUSY', 'too many large bodies are being read');
      bytes += chunk.length;
      chunks.push(chunk);
    }
    return parse(chunks, names);
  } finally {
    body.release();
  }
}

function parse(chunks: readonly Buffer[], names: NameLists): unknown {
  if (chunks.length === 0)
    throw new RequestError('BAD_JSON', 'the request has no body; it has to be JSON of extender/v1');
  try {
    return names.parse(Buffer.concat(chunks));
  } catch (error) {
    const why = error instanceof Error ? error.message.slice(0, MAX_CHARS) : String(error);
    throw new RequestError('BAD_JSON', `the body is no JSON: ${why}`, { cause: error });
  }
}

const MAX_CHARS = 200;
const MIB = 1024 * 1024;

function tooLarge(maxBytes: number): RequestError {
  const cure = 'set nodeCacheCapable: true in KubeSchedulerConfiguration, or raise --body-limit-mib';
  return new RequestError('TOO_LARGE', `the body is larger than ${maxBytes / MIB} MiB; ${cure}`);
}
