import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Agent, createServer, Agent as HttpsAgent, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { makeKeyPair } from '../../sim/kube-api/pki.ts';

/**
 * What went through since the proxy started, by kind of call: `WATCH pods`, `LIST nodes`, `PUT nodeeniconfigs`. What was
 * refused counts a second time, with its status before it: `409 PUT nodeeniconfigs`.
 */
export type Traffic = ReadonlyMap<string, { readonly calls: number; readonly bytes: number }>;

/** An API server with a meter in front: HTTPS on both sides, on loopback only. */
export type CountingProxy = {
  readonly url: string;
  readonly ca: string;
  /** Calls, and bytes of the bodies of their answers, so far. */
  traffic(): Traffic;
  /** Kinds of the watches that are open now. */
  openWatches(): readonly string[];
  close(): void;
};

/** Starts the proxy; its certificate is made in `dir`. A broken connection of one side breaks that of the other. */
export async function startCountingProxy(
  dir: string,
  target: { readonly url: string; readonly ca: string },
): Promise<CountingProxy> {
  const { cert, key } = await makeKeyPair(dir, 'proxy');
  const agent = new HttpsAgent({ keepAlive: true, ca: target.ca });
  const meter = new Meter();
  const server = createServer({ cert, key }, (incoming, answer) =>
    forward({ target: target.url, agent, meter }, incoming, answer),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ca: cert,
    traffic: () => meter.snapshot(),
    openWatches: () => meter.open(),
    close: () => {
      server.close();
      server.closeAllConnections();
      agent.destroy();
    },
  };
}

class Meter {
  readonly #counts = new Map<string, { calls: number; bytes: number }>();
  readonly #watches = new Map<IncomingMessage, string>();

  begin(kind: string): void {
    this.#of(kind).calls += 1;
  }

  read(kind: string, bytes: number): void {
    this.#of(kind).bytes += bytes;
  }

  opened(kind: string, answer: IncomingMessage): void {
    if (!kind.startsWith('WATCH ')) return;
    this.#watches.set(answer, kind);
    answer.once('close', () => this.#watches.delete(answer));
  }

  open(): readonly string[] {
    return [...this.#watches.values()];
  }

  snapshot(): Traffic {
    return new Map([...this.#counts].map(([kind, count]) => [kind, { ...count }]));
  }

  #of(kind: string): { calls: number; bytes: number } {
    const count = this.#counts.get(kind) ?? { calls: 0, bytes: 0 };
    this.#counts.set(kind, count);
    return count;
  }
}

type Way = { readonly target: string; readonly agent: Agent; readonly meter: Meter };

function forward({ target, agent, meter }: Way, incoming: IncomingMessage, answer: ServerResponse): void {
  const { method = 'GET', url = '/', headers } = incoming;
  const kind = kindOf(method, url);
  meter.begin(kind);
  const outgoing = request(`${target}${url}`, { method, headers, agent }, (reply) => {
    meter.opened(kind, reply);
    if ((reply.statusCode ?? 0) >= 400) meter.begin(`${reply.statusCode} ${kind}`);
    answer.writeHead(reply.statusCode ?? 502, reply.headers);
    // A watch is answered when its first event comes; its caller waits for the head.
    answer.flushHeaders();
    reply.on('data', (chunk: Buffer) => meter.read(kind, chunk.length));
    reply.on('error', () => answer.destroy());
    reply.pipe(answer);
  });
  outgoing.on('error', () => answer.destroy());
  answer.on('close', () => outgoing.destroy());
  incoming.pipe(outgoing);
}

/** Names a call by its verb and resource. */
function kindOf(method: string, url: string): string {
  const { pathname, searchParams } = new URL(url, 'https://proxy');
  const parts = pathname.split('/').filter((part) => part !== '');
  const after = parts.slice(parts[0] === 'api' ? 2 : 3);
  const own = after[0] === 'namespaces' && after.length > 2 ? after.slice(2) : after;
  const [resource = pathname, name] = own;
  if (method !== 'GET') return `${method} ${resource}`;
  if (searchParams.get('watch') === 'true') return `WATCH ${resource}`;
  return `${name === undefined ? 'LIST' : 'GET'} ${resource}`;
}
