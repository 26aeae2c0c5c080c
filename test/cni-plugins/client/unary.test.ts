import { rename } from 'node:fs/promises';
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import { createServer, type Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { createAgentCall } from '../../../cni-plugins/agent-client.ts';
import { CallError } from '../../../cni-plugins/client/call-error.ts';
import { callUnary } from '../../../cni-plugins/client/unary.ts';
import { makeFolder, serve } from '../support/test-agent.ts';

const GENEROUS_MS = 20_000;

test('createAgentCall: gets the reply of a grpc-js server on a unix socket', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const agent = await serve(`unix:${folder.socket}`, {
    add: ({ sandbox, network }) => ({ attachment: { routes: [{ dst: sandbox?.containerId, gw: network }] } }),
  });
  t.teardown(agent.close);
  const call = createAgentCall({ kind: 'unix', path: folder.socket });
  const reply = await call('add', { sandbox: { containerId: 'c1' }, network: 'net' }, GENEROUS_MS);
  t.deepEqual(reply.attachment?.routes, [{ dst: 'c1', gw: 'net' }]);
});

test('createAgentCall: gets the reply of a grpc-js server over TCP', async (t) => {
  const agent = await serve('127.0.0.1:0', { status: () => ({ error: { code: 51, msg: 'limited' } }) });
  t.teardown(agent.close);
  const call = createAgentCall({ kind: 'tcp', host: '127.0.0.1', port: agent.port });
  t.like(await call('status', {}, GENEROUS_MS), { error: { code: 51, msg: 'limited' } });
});

for (const bytes of [1, 16_384, 65_530, 70_000, 1_000_000]) {
  test(`createAgentCall: carries a request of ${bytes} bytes`, async (t) => {
    const folder = makeFolder();
    t.teardown(folder.remove);
    const agent = await serve(`unix:${folder.socket}`, {
      check: ({ prevResult }) => ({ differences: [`${prevResult.length} ${prevResult.every((byte) => byte === 7)}`] }),
    });
    t.teardown(agent.close);
    const call = createAgentCall({ kind: 'unix', path: folder.socket });
    const reply = await call('check', { prevResult: Buffer.alloc(bytes, 7) }, GENEROUS_MS);
    t.deepEqual(reply.differences, [`${bytes} true`]);
  });
}

for (const lines of [1, 1_000, 40_000]) {
  test(`createAgentCall: takes a reply of ${lines} lines`, async (t) => {
    const folder = makeFolder();
    t.teardown(folder.remove);
    const differences = Array.from({ length: lines }, (_, line) => `difference number ${line} and what it means`);
    const agent = await serve(`unix:${folder.socket}`, { check: () => ({ differences }) });
    t.teardown(agent.close);
    const call = createAgentCall({ kind: 'unix', path: folder.socket });
    t.deepEqual((await call('check', {}, GENEROUS_MS)).differences, differences);
  });
}

test('callUnary: answers pings while it waits', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const server = createHttp2Server();
  let pongs = 0;
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.session?.ping(() => {
      pongs++;
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
      stream.end(Buffer.from([0, 0, 0, 0, 1, 42]));
    });
  });
  await new Promise<void>((resolve) => server.listen(folder.socket, resolve));
  t.teardown(() => server.close());
  t.deepEqual([...(await callUnary({ kind: 'unix', path: folder.socket }, anyCall(GENEROUS_MS)))], [42]);
  t.is(pongs, 1);
});

test('callUnary: sends headers that an HTTP/2 server reads, long ones included', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const server = createHttp2Server();
  const seen: Record<string, unknown>[] = [];
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    seen.push({ ...headers });
    stream.respond({ ':status': 200 });
    stream.end(Buffer.from([0, 0, 0, 0, 0]));
  });
  await new Promise<void>((resolve) => server.listen(folder.socket, resolve));
  t.teardown(() => server.close());
  const path = `/${'long'.repeat(200)}`;
  const reply = await callUnary({ kind: 'unix', path: folder.socket }, { ...anyCall(61234), path });
  t.is(reply.length, 0);
  t.like(seen[0], {
    ':method': 'POST',
    ':scheme': 'http',
    ':authority': 'localhost',
    ':path': path,
    te: 'trailers',
    'content-type': 'application/grpc+proto',
    'grpc-timeout': '61234m',
    'user-agent': 'test',
  });
});

test('callUnary: rejects with UNREACHABLE when there is no socket', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const call = callUnary({ kind: 'unix', path: folder.socket }, anyCall(GENEROUS_MS));
  await t.throwsAsync(call, { instanceOf: CallError, code: 'UNREACHABLE', message: /ENOENT/ });
});

test('callUnary: rejects with UNREACHABLE when nobody listens', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const server = await listen(folder.socket, () => {});
  // Closing the server would remove the socket; a crash leaves it.
  const { path, socket } = folder;
  await rename(socket, `${path}/left.sock`);
  server.close();
  const call = callUnary({ kind: 'unix', path: `${path}/left.sock` }, anyCall(GENEROUS_MS));
  await t.throwsAsync(call, { instanceOf: CallError, code: 'UNREACHABLE', message: /ECONNREFUSED/ });
});

test('callUnary: rejects with DEADLINE when the agent takes the call and is silent', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const server = await listen(folder.socket, (socket) => socket.resume());
  t.teardown(() => server.close());
  const call = callUnary({ kind: 'unix', path: folder.socket }, anyCall(150));
  await t.throwsAsync(call, { instanceOf: CallError, code: 'DEADLINE', message: /150 ms/ });
});

test('callUnary: rejects with DEADLINE when the answer comes too late', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const agent = await serve(`unix:${folder.socket}`, { status: () => sleep(5_000, {}, { ref: false }) });
  t.teardown(agent.close);
  const call = createAgentCall({ kind: 'unix', path: folder.socket })('status', {}, 150);
  await t.throwsAsync(call, { instanceOf: CallError, code: 'DEADLINE' });
});

test('callUnary: rejects with CLOSED when the agent hangs up', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const server = await listen(folder.socket, (socket) => socket.once('data', () => socket.destroy()));
  t.teardown(() => server.close());
  const call = callUnary({ kind: 'unix', path: folder.socket }, anyCall(GENEROUS_MS));
  await t.throwsAsync(call, { instanceOf: CallError, code: 'CLOSED' });
});

test('callUnary: rejects with CLOSED when the agent resets the stream', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const server = createHttp2Server();
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => {});
    stream.close(2);
  });
  await new Promise<void>((resolve) => server.listen(folder.socket, resolve));
  t.teardown(() => server.close());
  const call = callUnary({ kind: 'unix', path: folder.socket }, anyCall(GENEROUS_MS));
  await t.throwsAsync(call, { instanceOf: CallError, code: 'CLOSED', message: /HTTP\/2 error 2/ });
});

test('callUnary: rejects with NO_MESSAGE when the agent knows no such call', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const agent = await serve(`unix:${folder.socket}`, { status: () => ({}) });
  t.teardown(agent.close);
  const call = createAgentCall({ kind: 'unix', path: folder.socket })('gc', {}, GENEROUS_MS);
  await t.throwsAsync(call, { instanceOf: CallError, code: 'NO_MESSAGE' });
});

test('callUnary: rejects with PROTOCOL when something else than HTTP/2 answers', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const server = await listen(folder.socket, (socket) => {
    socket.on('error', () => {});
    socket.write('HTTP/1.1 400 Bad Request\r\n\r\n');
  });
  t.teardown(() => server.close());
  const call = callUnary({ kind: 'unix', path: folder.socket }, anyCall(GENEROUS_MS));
  await t.throwsAsync(call, { instanceOf: CallError, code: 'PROTOCOL' });
});

test('callUnary: rejects with PROTOCOL when the message is no protobuf', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const server = createHttp2Server();
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.respond({ ':status': 200 });
    stream.end(Buffer.from([0, 0, 0, 0, 2, 0, 0]));
  });
  await new Promise<void>((resolve) => server.listen(folder.socket, resolve));
  t.teardown(() => server.close());
  const call = createAgentCall({ kind: 'unix', path: folder.socket })('add', {}, GENEROUS_MS);
  await t.throwsAsync(call, { instanceOf: CallError, code: 'PROTOCOL', message: /no message of ours/ });
});

function anyCall(timeoutMs: number) {
  return { path: '/tke.eni.v1.Agent/Add', request: Buffer.from('x'), timeoutMs, userAgent: 'test' };
}

function listen(path: string, onConnection: Parameters<typeof createServer>[1] & {}): Promise<Server> {
  const server = createServer(onConnection);
  return new Promise((resolve) => server.listen(path, () => resolve(server)));
}
