import { fileURLToPath } from 'node:url';
import type { Child } from '../../sim/support/child.ts';
import { isObject, type JsonObject } from '../../sim/support/netns.ts';
import type { TrafficEnd } from './traffic.ts';
import { waitUntil } from './wait-until.ts';

/** A running TCP connection, over which numbers go there and back. */
export type TcpStream = {
  /** Stops sending, waits for what is on its way, and says what went wrong, a line each. Ends the processes. */
  finish(): Promise<readonly string[]>;
  /** Ends the processes without a report. Idempotent. */
  close(): Promise<void>;
};

/** What a stream is like. */
type StreamOptions = {
  /** Bytes of a number; default 4. */
  readonly numberBytes?: number;
  /** Where the client connects to instead, as the address of a Service. */
  readonly by?: { readonly ip: string; readonly port: number };
};

/**
 * Connects from one namespace to another and sends 500 numbers a second over the one connection, which are sent back.
 * The caller finishes or closes it.
 * @throws Error when the connection is not made within 30 s
 */
export async function startTcpStream(
  from: TrafficEnd,
  to: TrafficEnd,
  port: number,
  { numberBytes = 4, by = { ip: to.ip, port } }: StreamOptions = {},
): Promise<TcpStream> {
  const script = fileURLToPath(new URL('tcp-endpoint.ts', import.meta.url));
  const start = (end: TrafficEnd, role: string, at: { readonly ip: string; readonly port: number }): Child =>
    end.netns.start([process.execPath, script, role, at.ip, `${at.port}`, `${numberBytes}`]);
  const server = start(to, 'serve', { ip: to.ip, port });
  let client: Child | undefined;
  const close = async (): Promise<void> => {
    await Promise.all([server.stop('SIGKILL'), client?.stop('SIGKILL')]);
  };
  try {
    await heard(server, 'bound');
    client = start(from, 'ask', by);
    await heard(client, 'bound');
  } catch (error) {
    await close();
    throw error;
  }
  const asking = client;
  return {
    finish: async () => {
      try {
        asking.writeLine('stop');
        return problemsOf(await settled(asking));
      } finally {
        await close();
      }
    },
    close,
  };
}

/** Waits until all numbers are back, or the connection is over. */
async function settled(client: Child): Promise<JsonObject> {
  let last: JsonObject = {};
  await waitUntil(
    () => {
      client.writeLine('report');
      last = messagesOf(client).findLast(({ event }) => event === 'report') ?? {};
      return last['sent'] !== undefined && (last['sent'] === last['returned'] || last['problem'] !== '');
    },
    { what: 'the end of a TCP stream', everyMs: 50 },
  ).catch(() => {});
  return last;
}

function problemsOf({ sent, returned, problem }: JsonObject): readonly string[] {
  if (sent === undefined) return ['the client did not answer'];
  return [
    ...(problem === '' ? [] : [`the connection failed: ${String(problem)}`]),
    ...(sent === returned ? [] : [`${String(returned)} of ${String(sent)} numbers came back`]),
  ];
}

async function heard(child: Child, event: string): Promise<void> {
  await waitUntil(() => messagesOf(child).some((message) => message['event'] === event), {
    what: `a TCP stream to be ${event}`,
    explain: () => child.stderr,
  });
}

function messagesOf(child: Child): readonly JsonObject[] {
  return child.stdout
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line): unknown => JSON.parse(line))
    .filter(isObject);
}
