import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { queryObjects } from 'node:v8';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import test from 'ava';
import { type AgentUseCases, agentImplementation } from '../../../agent/server/agent-service.ts';
import { serveGrpc } from '../../../agent/server/grpc-server.ts';
import { openAgentCaller } from '../../support/agent-call.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { sampleLease } from '../pool/supply-sample.ts';

const LEASE = sampleLease('c1', 'eni-1', ['10.0.0.5'], {
  hostVeth: { name: 'eni1', mac: '02:00:00:00:00:01', ifindex: 9 },
  podMac: '02:00:00:00:00:02',
});
const IDLE: AgentUseCases = {
  attach: async () => ({ kind: 'attached', lease: LEASE }),
  detach: async () => undefined,
  check: async () => ({ kind: 'checked', lease: LEASE, differences: ['one', 'two'] }),
  status: () => undefined,
  collectInvalid: async () => ({ released: 2, failed: 0 }),
  addressing: () => [{ family: 4, ip: '10.0.0.2', gateway: '10.0.0.1', subnetCidr: '10.0.0.0/24' }],
  ignoredKeys: () => undefined,
};
const SANDBOX = { containerId: 'c1', ifName: 'eth0', netns: '/run/netns/c1' };

async function serve(t: { teardown(run: () => Promise<void>): void }, change: Partial<AgentUseCases> = {}) {
  const dir = createTempDir('grpc');
  const down = new AbortController();
  const socketPath = dir.join('agent.sock');
  const server = await serveGrpc(agentImplementation({ ...IDLE, ...change }, 'r1', down.signal), { socketPath });
  const caller = openAgentCaller(socketPath);
  t.teardown(async () => {
    caller.close();
    await server.drain(0);
    dir.close();
  });
  return { server, caller, socketPath, down };
}

test('Add: answers with both interfaces, the address and the default route', async (t) => {
  const { caller } = await serve(t);
  const { attachment, agentVersion } = await caller.call('add', { plugin: 1, sandbox: SANDBOX });
  t.is(agentVersion, 'r1');
  t.deepEqual(
    attachment?.interfaces.map(({ name, mac }) => [name, mac]),
    [
      ['eni1', '02:00:00:00:00:01'],
      ['eth0', '02:00:00:00:00:02'],
    ],
  );
  t.deepEqual(attachment?.ips, [{ address: '10.0.0.5/32', gateway: '169.254.1.1', interfaceIndex: 1, eniId: 'eni-1' }]);
  t.deepEqual(attachment?.routes, [{ dst: '0.0.0.0/0', gw: '169.254.1.1' }]);
});

test('Add: refuses what would become a bad name in the kernel, every fault at once', async (t) => {
  const { caller } = await serve(t);
  const { error } = await caller.call('add', {
    plugin: 1,
    sandbox: { containerId: '../x', ifName: 'a/b', netns: 'relative' },
  });
  t.is(error?.code, 4);
  for (const part of ['../x', 'a/b', 'relative']) t.true(error?.msg.includes(part), part);
});

test('Add: refuses a plugin that this agent does not serve', async (t) => {
  const { caller } = await serve(t);
  const { error } = await caller.call('add', { plugin: 9, sandbox: SANDBOX });
  t.is(error?.code, 2);
  t.regex(error?.msg ?? '', /plugin 9/);
});

test('Add: a use case that throws is an error in the reply, not of the transport', async (t) => {
  const { caller } = await serve(t, {
    attach: async () => {
      throw new Error('unexpected');
    },
  });
  t.like((await caller.call('add', { plugin: 1, sandbox: SANDBOX })).error, { code: 999, msg: 'agent: unexpected' });
});

test('Add: the use case is told when the caller goes away, and when the agent goes down', async (t) => {
  const reasons: unknown[] = [];
  const { caller, down } = await serve(t, {
    attach: (_command, signal) =>
      new Promise((resolve) => {
        const giveUp = (): void => {
          reasons.push(signal.reason);
          resolve({ kind: 'failed', failure: { code: 11, msg: 'gave up', details: '' } });
        };
        // On a slow machine the agent goes down before the call arrives.
        if (signal.aborted) giveUp();
        else signal.addEventListener('abort', giveUp);
      }),
  });
  // On a slow machine a caller gives up before its call arrived: then there is nobody to tell.
  const giveUp = async (): Promise<boolean> => {
    await t.throwsAsync(caller.call('add', { plugin: 1, sandbox: SANDBOX }, 100));
    return reasons.length > 0;
  };
  await waitUntil(giveUp, { what: 'a use case that is told' });
  const waiting = caller.call('add', { plugin: 1, sandbox: SANDBOX });
  await sleep(50);
  down.abort('down');
  t.is((await waiting).error?.code, 11);
  // On a slow machine the end of an earlier call is not known yet: it is told of the agent's, too.
  t.deepEqual([reasons.at(0), reasons.at(-1)], ['the caller went away', 'down']);
  t.deepEqual(new Set(reasons), new Set(['the caller went away', 'down']));
});

test('Check, Status, Gc, Del: translate', async (t) => {
  const { caller } = await serve(t, {
    detach: async () => ({ code: 105, msg: 'refused', details: 'ip link del' }),
    status: () => ({ code: 50, msg: 'starting', details: '' }),
    collectInvalid: async () => ({ released: 1, failed: 1 }),
  });
  t.deepEqual((await caller.call('check', { plugin: 1, sandbox: SANDBOX })).differences, ['one', 'two']);
  t.like((await caller.call('status', { plugin: 1 })).error, { code: 50, msg: 'starting' });
  t.is((await caller.call('gc', { plugin: 1 })).error?.code, 11);
  t.like((await caller.call('del', { plugin: 1, sandbox: { ...SANDBOX, netns: '' } })).error, { code: 105 });
});

test('health: answers NOT_SERVING until told, then SERVING', async (t) => {
  const { server, socketPath } = await serve(t);
  const client = new Client(`unix:${socketPath}`, credentials.createInsecure());
  t.teardown(() => client.close());
  const ask = (): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        '/grpc.health.v1.Health/Check',
        () => Buffer.alloc(0),
        (bytes) => bytes[1],
        null,
        new Metadata(),
        (error, status) => (error === null ? resolve(status) : reject(error)),
      );
    });
  t.is(await ask(), 2);
  server.health.setServing(true);
  t.is(await ask(), 1);
});

test('drain: lets a call in flight finish, takes no more, and removes the socket', async (t) => {
  const entered = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const { server, caller, socketPath } = await serve(t, {
    detach: async () => {
      entered.resolve();
      await gate.promise;
      return undefined;
    },
  });
  t.is(statSync(socketPath).mode & 0o777, 0o600);
  const inFlight = caller.call('del', { plugin: 1, sandbox: SANDBOX });
  await entered.promise;
  const drained = server.drain(5_000);
  gate.resolve();
  t.is((await inFlight).error, undefined);
  await drained;
  t.is(statSync(socketPath, { throwIfNoEntry: false }), undefined);
});

test('drain: ends the streams of those who watch the health, and does not wait for them', async (t) => {
  const { server, socketPath } = await serve(t);
  const client = new Client(`unix:${socketPath}`, credentials.createInsecure());
  t.teardown(() => client.close());
  server.health.setServing(true);
  const path = '/grpc.health.v1.Health/Watch';
  const stream = client.makeServerStreamRequest<Buffer, number | undefined>(
    path,
    (bytes) => bytes,
    (bytes) => bytes[1],
    Buffer.alloc(0),
  );
  const seen: (number | undefined)[] = [];
  const ended = Promise.withResolvers<void>();
  const first = Promise.withResolvers<void>();
  stream.on('data', (status: number) => {
    seen.push(status);
    first.resolve();
  });
  stream.on('end', ended.resolve).on('error', ended.reject);
  await first.promise;
  // Cut off at the end of its grace, the stream would end with an error.
  await server.drain(60_000);
  await t.notThrowsAsync(ended.promise);
  t.deepEqual(seen, [1, 2]);
});

test.serial('agentImplementation: keeps nothing of calls that are over', async (t) => {
  const { caller } = await serve(t);
  const add = async (times: number): Promise<number> => {
    for (let time = 0; time < times; time++) await caller.call('add', { plugin: 1, sandbox: SANDBOX });
    return queryObjects(AbortSignal, { format: 'count' });
  };
  const before = await add(50);
  const after = await add(500);
  t.true(after - before < 100, `${before} signals, after 500 calls ${after}`);
});

test('serveGrpc: closes a connection on which nothing is asked', async (t) => {
  const dir = createTempDir('grpc');
  const socketPath = dir.join('agent.sock');
  const implementation = agentImplementation(IDLE, 'r1', new AbortController().signal);
  const server = await serveGrpc(implementation, { socketPath, idleMs: 50 });
  t.teardown(async () => {
    await server.drain(0);
    dir.close();
  });
  const silent = connect(socketPath);
  silent.resume();
  await once(silent, 'close');
  t.pass();
});

function replaceByFile(path: string): void {
  rmSync(path);
  writeFileSync(path, '');
}

function replaceByFolder(path: string): void {
  rmSync(path);
  mkdirSync(path);
}

for (const [what, harm] of [
  ['removed', (path: string) => rmSync(path)],
  ['moved', (path: string) => renameSync(path, `${path}.theirs`)],
  ['replaced by a file', replaceByFile],
  ['replaced by a folder', replaceByFolder],
] as const) {
  test(`ensureSocket: puts a socket back that was ${what}, again and again, and calls in flight go on`, async (t) => {
    const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<undefined>()];
    const detach = (): Promise<undefined> => {
      begun.resolve();
      return gate.promise;
    };
    const { server, caller, socketPath } = await serve(t, { detach });
    t.false(await server.ensureSocket());
    const running = caller.call('del', { plugin: 1, sandbox: SANDBOX });
    await begun.promise;
    for (let turn = 0; turn < 3; turn++) {
      harm(socketPath);
      t.true(await server.ensureSocket());
      t.false(await server.ensureSocket());
      t.is(statSync(socketPath).mode & 0o777, 0o600);
      const later = openAgentCaller(socketPath);
      t.truthy((await later.call('add', { plugin: 1, sandbox: SANDBOX })).attachment);
      later.close();
    }
    gate.resolve(undefined);
    await t.notThrowsAsync(running);
    await server.drain(1_000);
    t.false(readdirSync(dirname(socketPath)).includes('agent.sock'));
  });
}

test('ensureSocket: takes away what others may do with it, and leaves the socket of another process', async (t) => {
  const { server, socketPath } = await serve(t);
  chmodSync(socketPath, 0o666);
  await server.ensureSocket();
  t.is(statSync(socketPath).mode & 0o777, 0o600);
  rmSync(socketPath);
  const other = createServer().listen(socketPath);
  t.teardown(() => void other.close());
  await once(other, 'listening');
  const { ino } = statSync(socketPath);
  t.false(await server.ensureSocket());
  t.is(statSync(socketPath).ino, ino);
});
