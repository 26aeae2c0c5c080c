import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, credentials, status } from '@grpc/grpc-js';
import test, { type ExecutionContext } from 'ava';
import { Child } from '../../../sim/support/child.ts';
import { freePort } from '../../support/free-port.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { waitUntil } from '../../support/wait-until.ts';

const ADD = '/tke.eni.v1.Agent/Add';
const HEADERS = { ':method': 'POST', ':path': ADD, 'content-type': 'application/grpc', te: 'trailers' };

async function startAgent(t: ExecutionContext) {
  const dir = createTempDir('grpc-limits');
  const socketPath = dir.join('agent.sock');
  const tcpAddress = `127.0.0.1:${await freePort()}`;
  const pluginSocket = dir.join('tke-eni-ip.sock');
  const program = join(import.meta.dirname, 'idle-agent.ts');
  const child = new Child([process.execPath, program, socketPath, tcpAddress, pluginSocket]);
  t.teardown(async () => {
    await child.stop();
    dir.close();
  });
  await waitUntil(() => child.stdout.includes('ready') || undefined, {
    what: 'the agent serves',
    timeoutMs: 30_000,
    everyMs: 20,
    explain: () => child.stderr,
  });
  return { child, socketPath, tcpAddress, pluginSocket };
}

/** Opens requests, each with a part of a message; resolves when each part is taken in or its request refused. */
async function openHalfRequests(session: ClientHttp2Session, count: number, part: Buffer, path = ADD): Promise<void> {
  await once(session, 'remoteSettings');
  const sent = Array.from({ length: count }, () => {
    const taken = Promise.withResolvers<void>();
    const stream = session.request({ ...HEADERS, ':path': path });
    stream.on('error', () => undefined).on('close', taken.resolve);
    stream.write(part, () => taken.resolve());
    return taken.promise;
  });
  // What the server lets wait, waits forever.
  await Promise.race([Promise.all(sent), sleep(1_500)]);
}

/** The beginning of a message of `size` bytes, as long as a server would take in. */
function messageStart(size: number, length: number): Buffer {
  const start = Buffer.alloc(length);
  start.writeUInt32BE(size, 1);
  return start;
}

function residentMib(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;
}

test('serveGrpc: half-sent requests of many connections cost at most 64 MiB on TCP', async (t) => {
  const { child, tcpAddress } = await startAgent(t);
  const before = residentMib(child.pid);
  const size = 130_000;
  const sessions = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const session = connectHttp2(`http://${tcpAddress}`);
      session.on('error', () => undefined);
      await openHalfRequests(session, 800, messageStart(size, size - 1));
      return session;
    }),
  );
  const cost = residentMib(child.pid) - before;
  for (const session of sessions) session.destroy();
  t.log(`${cost.toFixed(0)} MiB for ${sessions.length * 800} requests of ${size} bytes`);
  t.true(child.isRunning);
  t.true(cost < 100, `${cost} MiB`);
});

test('serveGrpc: a request in frames of one byte costs no memory, and ends its call alone', async (t) => {
  const { child, socketPath, tcpAddress, pluginSocket } = await startAgent(t);
  const before = residentMib(child.pid);
  const size = 120_000;
  for (const [target, path] of [
    [socketPath, ADD],
    [tcpAddress, ADD],
    [pluginSocket, '/v1beta1.DevicePlugin/Allocate'],
  ] as const) {
    const [host, port] = target.split(':');
    const session = connectHttp2('http://localhost', {
      createConnection: () => (port === undefined ? connect(target) : connect(Number(port), host)),
    });
    session.on('error', () => undefined);
    await once(session, 'remoteSettings');
    const ended = Array.from({ length: 8 }, async () => {
      const stream = session.request({ ...HEADERS, ':path': path });
      const closed = Promise.withResolvers<number>();
      stream.on('error', () => undefined).on('close', () => closed.resolve(stream.rstCode ?? 0));
      stream.write(messageStart(size, 5));
      // Each write is a frame of its own once it is sent alone.
      for (let sent = 0; sent < size && !stream.destroyed; sent += 100) {
        for (let one = 0; one < 100; one++) stream.write('x');
        await sleep(0);
      }
      return await closed.promise;
    });
    t.deepEqual([...new Set(await Promise.all(ended))], [constants.NGHTTP2_ENHANCE_YOUR_CALM], target);
    session.destroy();
  }
  const cost = residentMib(child.pid) - before;
  t.log(`${cost.toFixed(0)} MiB`);
  t.true(child.isRunning);
  t.true(cost < 32, `${cost} MiB`);
});

test('serveGrpc: closes further connections on TCP, and serves the unix socket meanwhile', async (t) => {
  const { child, socketPath, tcpAddress } = await startAgent(t);
  const [host, port] = tcpAddress.split(':');
  let closed = 0;
  const connections = Array.from({ length: 200 }, () =>
    connect(Number(port), host)
      .on('error', () => undefined)
      .on('close', () => closed++)
      .resume(),
  );
  await waitUntil(() => closed >= 136 || undefined, { what: '136 of 200 are closed', timeoutMs: 30_000 });
  t.is(closed, 136);
  t.is(await callAdd(t, `unix:${socketPath}`, sandboxRequest(), 500), status.DEADLINE_EXCEEDED);
  for (const connection of connections) connection.destroy();
  t.true(child.isRunning);
});

test('serveGrpc: refuses a request that is too long, and further calls while too many are in flight', async (t) => {
  const { socketPath, tcpAddress } = await startAgent(t);
  t.is(await callAdd(t, tcpAddress, Buffer.alloc((1 << 17) + 1)), status.RESOURCE_EXHAUSTED);
  t.is(await callAdd(t, `unix:${socketPath}`, Buffer.alloc((1 << 20) + 1)), status.RESOURCE_EXHAUSTED);
  const [host, port] = tcpAddress.split(':');
  t.is(await callWhenFull(t, () => connect(Number(port), host), 140, tcpAddress), status.RESOURCE_EXHAUSTED);
  t.is(await callAdd(t, `unix:${socketPath}`, sandboxRequest(), 500), status.DEADLINE_EXCEEDED, 'counted apart');
  t.is(await callWhenFull(t, () => connect(socketPath), 600, `unix:${socketPath}`), status.RESOURCE_EXHAUSTED);
});

test('openPluginEndpoint: half-sent requests of many connections cost at most 32 MiB; further connections are closed', async (t) => {
  const { child, pluginSocket } = await startAgent(t);
  const before = residentMib(child.pid);
  const size = 130_000;
  const path = '/v1beta1.DevicePlugin/Allocate';
  const sessions = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const session = connectHttp2('http://localhost', { createConnection: () => connect(pluginSocket) });
      session.on('error', () => undefined);
      await openHalfRequests(session, 800, messageStart(size, size - 1), path);
      return session;
    }),
  );
  const cost = residentMib(child.pid) - before;
  t.log(`${cost.toFixed(0)} MiB for ${sessions.length * 800} requests of ${size} bytes`);
  t.true(cost < 100, `${cost} MiB`);
  let closed = 0;
  const connections = Array.from({ length: 60 }, () =>
    connect(pluginSocket)
      .on('error', () => undefined)
      .on('close', () => closed++)
      .resume(),
  );
  await waitUntil(() => closed >= 36 || undefined, { what: '36 of 60 are closed', timeoutMs: 30_000 });
  t.is(closed, 36);
  for (const each of [...sessions, ...connections]) each.destroy();
  t.true(child.isRunning);
});

/** Begins calls until a further one is refused; on a busy machine the server may miss some that their peer ends at once. */
async function callWhenFull(
  t: ExecutionContext,
  open: () => Socket,
  count: number,
  address: string,
): Promise<status | undefined> {
  let code: status | undefined;
  for (let round = 0; round < 5 && code !== status.RESOURCE_EXHAUSTED; round++) {
    await beginCalls(t, open(), count);
    code = await callAdd(t, address, Buffer.alloc(0));
  }
  return code;
}

/** Begins calls that do not end, on one connection. The peer ends each stream at once; the calls go on. */
async function beginCalls(t: ExecutionContext, socket: Socket, count: number): Promise<void> {
  const session = connectHttp2('http://localhost', { createConnection: () => socket });
  t.teardown(() => session.destroy());
  session.on('error', () => undefined);
  await once(session, 'remoteSettings');
  const del = { ...HEADERS, ':path': ADD.replace('Add', 'Del') };
  const message = Buffer.concat([Buffer.from([0, 0, 0, 0, sandboxRequest().length]), sandboxRequest()]);
  for (let index = 0; index < count; index++) {
    const stream = session.request(del);
    stream.on('error', () => undefined);
    stream.end(message);
    await sleep(1);
    stream.close();
  }
}

/** Plugin 1, sandbox c1, eth0. */
function sandboxRequest(): Buffer {
  const sandbox = Buffer.from('\x0a\x02c1\x12\x04eth0\x1a\x0d/run/netns/c1', 'latin1');
  return Buffer.concat([Buffer.from([0x08, 1, 0x12, sandbox.length]), sandbox]);
}

async function callAdd(
  t: ExecutionContext,
  address: string,
  message: Buffer,
  deadlineMs = 30_000,
): Promise<status | undefined> {
  const client = new Client(address, credentials.createInsecure());
  t.teardown(() => client.close());
  const bytes = (value: Buffer): Buffer => value;
  return await new Promise((resolve) => {
    client.makeUnaryRequest(ADD, bytes, bytes, message, { deadline: Date.now() + deadlineMs }, (error) =>
      resolve(error === null ? undefined : error.code),
    );
  });
}
