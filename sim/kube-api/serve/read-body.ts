import type { IncomingMessage } from 'node:http';
import { parse, YAMLParseError } from 'yaml';
import { ApiError, badRequest } from '../api-error.ts';

/** As the real server: etcd takes no more than 1.5 MiB, the server a little more. */
const MAX_BODY_BYTES = 3 * 1024 * 1024;

/** Reads a body: JSON, or YAML where the type says so. Undefined when there is none. @throws ApiError */
export async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES)
      throw new ApiError(413, 'RequestEntityTooLarge', 'Request entity too large: limit is 3145728');
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString('utf8');
  if (text === '') return undefined;
  const type = request.headers['content-type'] ?? 'application/json';
  if (type.includes('protobuf')) throw new ApiError(415, 'UnsupportedMediaType', 'this server does not speak protobuf');
  return type.includes('yaml') ? parseYaml(text) : parseJson(text);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw badRequest(`the object provided is unrecognized: ${error.message}`);
    throw error;
  }
}

function parseYaml(text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof YAMLParseError) throw badRequest(`error decoding YAML: ${error.message}`);
    throw error;
  }
}
