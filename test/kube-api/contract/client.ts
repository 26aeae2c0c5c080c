import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isObject, type JsonObject } from '../../../sim/kube-api/object.ts';

/** An answer as it came: its code and its JSON body, or `{text}` when it was none. */
export type Answer = { readonly status: number; readonly body: JsonObject; readonly headers: IncomingHttpHeaders };

/** What a request may carry beside its body. */
type CallOptions = {
  readonly contentType?: string;
  readonly accept?: string;
  readonly token?: string;
  readonly userAgent?: string;
};

/** One line of a watch. */
type Line = { readonly type: string; readonly object: JsonObject };

/** A watch that is open; `next` waits for a line, `undefined` is its end. */
export type OpenWatch = {
  readonly status: number;
  readonly next: (timeoutMs?: number) => Promise<Line | undefined>;
  readonly close: () => void;
};

/** Speaks to an API server as a plain HTTP client. */
export type ContractClient = {
  readonly url: string;
  readonly call: (method: string, path: string, body?: unknown, options?: CallOptions) => Promise<Answer>;
  readonly watch: (path: string, options?: CallOptions) => Promise<OpenWatch>;
};

/** Makes a client that sends `token` unless a call says otherwise; `ca` is whom an https server must be signed by. */
export function contractClient(url: string, token: string, ca?: string): ContractClient {
  const send = async (method: string, path: string, body: unknown, options: CallOptions): Promise<IncomingMessage> => {
    const open = url.startsWith('https:') ? httpsRequest : httpRequest;
    const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
    const headers = {
      'content-length': Buffer.byteLength(text),
      authorization: `Bearer ${options.token ?? token}`,
      'user-agent': options.userAgent ?? 'contract/1',
      accept: options.accept ?? 'application/json',
      'content-type': options.contentType ?? 'application/json',
    };
    return new Promise((resolve, reject) => {
      const request = open(`${url}${path}`, { method, headers, ...(ca === undefined ? {} : { ca }) }, resolve);
      request.on('error', reject);
      request.end(text);
    });
  };
  return {
    url,
    async call(method, path, body, options = {}) {
      const answer = await send(method, path, body, options);
      const chunks: Buffer[] = [];
      for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk);
      return { status: answer.statusCode ?? 0, body: parse(Buffer.concat(chunks).toString()), headers: answer.headers };
    },
    async watch(path, options = {}) {
      const answer = await send('GET', path, undefined, options);
      const lines = linesOf(answer);
      return {
        status: answer.statusCode ?? 0,
        close: () => void answer.destroy(),
        next: async (timeoutMs = 10_000) => {
          const line = await withDeadline(lines.next(), timeoutMs, path);
          // Lines of a watch have these two fields.
          return line.done === true ? undefined : (JSON.parse(line.value) as Line);
        },
      };
    },
  };
}

function parse(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch (error) {
    if (error instanceof SyntaxError) return { text };
    throw error;
  }
}

/** Yields the lines of a body. @throws Error when the connection breaks before its end */
async function* linesOf(answer: IncomingMessage): AsyncGenerator<string, undefined> {
  let rest = '';
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    rest += chunk.toString('utf8');
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') yield line;
  }
  return undefined;
}

function withDeadline<T>(promise: Promise<T>, ms: number, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${what}: no line within ${ms} ms`)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
