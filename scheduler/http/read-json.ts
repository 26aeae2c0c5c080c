import type { IncomingMessage } from 'node:http';
import type { BodyBudget } from '../../runtime/body-budget.ts';
import type { SpareBuffers } from '../../runtime/byte-collector.ts';
import { readBody } from '../../runtime/read-body.ts';
import type { NameLists } from './name-lists.ts';
import { RequestError } from './request-error.ts';

/**
 * Reads the body of a request as JSON.
 * @throws RequestError TOO_LARGE as soon as the size is known to exceed the limit; BUSY when too many bytes of bodies
 * are in memory; BAD_JSON; also the error of a connection that breaks
 */
export async function readJson(
  request: IncomingMessage,
  { budget, spare, names }: { readonly budget: BodyBudget; readonly spare: SpareBuffers; readonly names: NameLists },
): Promise<unknown> {
  const body = await readBody(request, budget, spare);
  if (body === 'too-large') throw tooLarge(budget.maxBody);
  if (body === 'busy') throw new RequestError('BUSY', 'too many large bodies are being read');
  try {
    // What is parsed has no part of the body.
    return parse(body, names);
  } finally {
    spare.giveBack(body);
  }
}

function parse(body: Buffer, names: NameLists): unknown {
  if (body.length === 0)
    throw new RequestError('BAD_JSON', 'the request has no body; it has to be JSON of extender/v1');
  try {
    return names.parse(body);
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
