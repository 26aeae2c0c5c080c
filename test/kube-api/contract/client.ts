import { isObject, type JsonObject } from '../object.ts';

/** An answer as it came: its code and its JSON body, an empty object when it was none. */
export type Answer = { readonly status: number; readonly body: JsonObject; readonly headers: Headers };

/** What a request may carry beside its body. */
export type CallOptions = {
  readonly contentType?: string;
  readonly accept?: string;
  readonly token?: string;
  readonly userAgent?: string;
};

/** One line of a watch. */
export type Line = { readonly type: string; readonly object: JsonObject };

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

/** Makes a client that sends `token` unless a call says otherwise. */
export function contractClient(url: string, token: string): ContractClient {
  const headersOf = (options: CallOptions): Record<string, string> => ({
    authorization: `Bearer ${options.token ?? token}`,
    'user-agent': options.userAgent ?? 'contract/1',
    accept: options.accept ?? 'application/json',
  });
  return {
    url,
    async call(method, path, body, options = {}) {
      const headers = { ...headersOf(options), 'content-type': options.contentType ?? 'application/json' };
      const answer = await fetch(`${url}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      return { status: answer.status, body: parse(await answer.text()), headers: answer.headers };
    },
    async watch(path, options = {}) {
      const aborter = new AbortController();
      const answer = await fetch(`${url}${path}`, { headers: headersOf(options), signal: aborter.signal });
      // A body that nobody reads yet would be cancelled when its response is collected as garbage.
      const lines = linesOf(answer.body?.getReader());
      return {
        status: answer.status,
        close: () => aborter.abort(),
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

async function* linesOf(
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const chunk = await reader?.read();
    if (chunk === undefined || chunk.done) return undefined;
    rest += decoder.decode(chunk.value, { stream: true });
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') yield line;
  }
}

function withDeadline<T>(promise: Promise<T>, ms: number, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${what}: no line within ${ms} ms`)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
