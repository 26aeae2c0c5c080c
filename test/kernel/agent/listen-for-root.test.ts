import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { Server } from '@grpc/grpc-js';
import test, { type ExecutionContext } from 'ava';
import { listenForRoot } from '../../../agent/server/listen-for-root.ts';
import { type LogFields, silentLogger } from '../../../runtime/log.ts';
import { freePort } from '../../support/free-port.ts';
import { waitUntil } from '../../support/wait-until.ts';

const NOBODY = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--'];

/** A listener, the connections that it reported, and a clock that the test moves. */
async function listen(t: ExecutionContext, host = '127.0.0.1') {
  const port = await freePort();
  const refused: LogFields[] = [];
  let nowMs = 0;
  const server = new Server();
  const stop = await listenForRoot(server, {
    address: `${host}:${port}`,
    connections: 8,
    log: { ...silentLogger, warn: (_message, fields = {}) => void refused.push(fields) },
    monotonicMs: () => nowMs,
  });
  t.teardown(() => {
    stop();
    server.forceShutdown();
  });
  return {
    port,
    refused,
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

/** Connects as root; the server of HTTP/2 speaks first. */
async function answerTo(host: string, port: number): Promise<number> {
  const socket = connect(port, host);
  try {
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    return bytes.length;
  } finally {
    socket.destroy();
  }
}

/** Connects as another user by bash, and reads until the other side closes. Returns the bytes that came. */
async function bytesFor(user: readonly string[], port: number): Promise<string> {
  const script = `exec 3<>/dev/tcp/127.0.0.1/${port}; cat <&3`;
  const [command = '', ...args] = [...user, 'bash', '-c', script];
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  let read = '';
  child.stdout.on('data', (chunk: Buffer) => {
    read += chunk.toString('latin1');
  });
  await once(child, 'close');
  return read;
}

test('listenForRoot: root is served by either family of socket', async (t) => {
  const v4 = await listen(t);
  t.true((await answerTo('127.0.0.1', v4.port)) > 0);
  t.true((await answerTo('::ffff:127.0.0.1', v4.port)) > 0, 'an IPv6 socket with an IPv4 address in it');
  const v6 = await listen(t, '[::1]');
  t.true((await answerTo('::1', v6.port)) > 0);
  t.deepEqual([...v4.refused, ...v6.refused], []);
});

test('listenForRoot: another user gets no byte, and one line in ten seconds says so', async (t) => {
  const { port, refused, pass } = await listen(t);
  for (let attempt = 0; attempt < 3; attempt++) t.is(await bytesFor(NOBODY, port), '');
  t.like(refused, [{ address: `127.0.0.1:${port}`, why: 'a process of uid 65534', unreported: 0 }]);
  pass(10_000);
  t.is(await bytesFor(NOBODY, port), '');
  t.is(refused.length, 2);
  t.like(refused[1], { why: 'a process of uid 65534', unreported: 2 });
  t.true((await answerTo('127.0.0.1', port)) > 0, 'root is served meanwhile');
});

// The kernel reports uid 0 for a socket that no process has open.
for (const [what, end] of [
  ['closes its socket', 'exec 3>&-'],
  ['ends', 'exit 0'],
] as const) {
  test(`listenForRoot: another user that ${what} before it is looked up is refused`, async (t) => {
    const { port, refused } = await listen(t);
    const script = `exec 3<>/dev/tcp/127.0.0.1/${port}; printf 'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n' >&3; ${end}`;
    // The connection waits in the listener's queue until this process is no longer held up.
    execFileSync(NOBODY[0] ?? '', [...NOBODY.slice(1), 'bash', '-c', script]);
    await waitUntil(() => refused[0], { what: 'it is refused' });
    t.regex(String(refused[0]?.['why']), /the caller has closed its socket|no such socket/);
  });
}
