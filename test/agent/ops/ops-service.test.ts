import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { Client, credentials } from '@grpc/grpc-js';
import test, { type ExecutionContext } from 'ava';
import { EVENT_KIND } from '../../../agent/api/ops-messages.ts';
import { OPS_SERVICE } from '../../../agent/api/ops-service.ts';
import { type OpsUseCases, opsService } from '../../../agent/ops/ops-service.ts';
import { EventHub } from '../../../agent/recorder/event-hub.ts';
import { type AgentUseCases, agentImplementation } from '../../../agent/server/agent-service.ts';
import { serveGrpc } from '../../../agent/server/grpc-server.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { openAgentCaller } from '../../support/agent-call.ts';
import { freePort } from '../../support/free-port.ts';
import { openOpsCaller } from '../../support/ops-call.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { waitUntil } from '../../support/wait-until.ts';

const UNAVAILABLE = 14;
const UNIMPLEMENTED = 12;
const RESOURCE_EXHAUSTED = 8;

async function serve(t: ExecutionContext, change: Partial<OpsUseCases> = {}) {
  const dir = createTempDir('ops');
  const hub = new EventHub(10);
  const useCases: OpsUseCases = {
    pool: async () => ({ supplyEpoch: 7, families: [4, 6] }),
    summary: async () => ({ nodeName: 'n1' }),
    repair: async ({ dryRun }) => ({ dryRun, operations: ['ip rule add'] }),
    recorder: (pod) => ({ pods: [{ pod, operations: [] }] }),
    explain: async ({ subject }) => ({ declined: `no ${subject} here` }),
    watch: (watcher) => hub.watch(watcher),
    watchers: () => hub.watchers,
    close: () => hub.close(),
    ...change,
  };
  const socketPath = dir.join('agent.sock');
  const tcpAddress = `127.0.0.1:${await freePort()}`;
  const agent = { status: () => undefined } as AgentUseCases;
  const implementation = agentImplementation(agent, 'r1', new AbortController().signal);
  const server = await serveGrpc(
    implementation,
    { socketPath, tcp: { address: tcpAddress, log: silentLogger, clock: systemClock } },
    opsService(useCases, 'r1'),
  );
  const ops = openOpsCaller(`unix:${socketPath}`);
  t.teardown(async () => {
    ops.close();
    await server.drain(0);
    dir.close();
  });
  return { ops, hub, server, socketPath, tcpAddress };
}

test('opsService: answers each call on the unix socket', async (t) => {
  const { ops } = await serve(t);
  t.like(await ops.call('pool', {}), { supplyEpoch: 7, families: [4, 6], agentVersion: 'r1' });
  t.like(await ops.call('summary', {}), { nodeName: 'n1', agentVersion: 'r1' });
  t.like(await ops.call('repair', { dryRun: true }), { dryRun: true, operations: ['ip rule add'], agentVersion: 'r1' });
  t.like(await ops.call('recorder', { pod: 'ns/p' }), { pods: [{ pod: 'ns/p' }] });
  t.like(await ops.call('explain', { subject: 'ns/p' }), { declined: 'no ns/p here', agentVersion: 'r1' });
});

test('serveGrpc: offers service Ops to nobody on TCP, where any user of the node may connect', async (t) => {
  const { tcpAddress } = await serve(t, {
    repair: async () => {
      throw new Error('a repair was run for a stranger');
    },
  });
  const stranger = openOpsCaller(tcpAddress);
  t.teardown(() => stranger.close());
  for (const method of ['pool', 'summary', 'repair', 'recorder'] as const) {
    await t.throwsAsync(stranger.call(method, {}), { code: UNIMPLEMENTED }, method);
  }
  t.is(await (await stranger.watch({})).ended, UNIMPLEMENTED);
  const agent = new Client(tcpAddress, credentials.createInsecure());
  t.teardown(() => agent.close());
  const ready = Promise.withResolvers<unknown>();
  agent.waitForReady(Date.now() + 10_000, ready.resolve);
  t.is(await ready.promise, undefined, 'the address itself is served');
});

test('opsService: a use case that throws is an error of the call and of no other', async (t) => {
  const { ops, socketPath } = await serve(t, {
    pool: () => {
      throw new Error('out of luck');
    },
  });
  await t.throwsAsync(ops.call('pool', {}), { message: /out of luck/ });
  const agent = openAgentCaller(socketPath);
  t.teardown(() => agent.close());
  t.is((await agent.call('status', {})).error, undefined);
});

test('Watch: tells from when its call is taken, and forgets a watcher that goes away', async (t) => {
  const { ops, hub } = await serve(t);
  const watch = await ops.watch({ kinds: [EVENT_KIND.EVENT_KIND_FIGHT] });
  t.is(hub.watchers, 1);
  hub.publish(EVENT_KIND.EVENT_KIND_ADD, () => ({ text: 'not asked for' }));
  hub.publish(EVENT_KIND.EVENT_KIND_FIGHT, () => ({ kind: EVENT_KIND.EVENT_KIND_FIGHT, text: 'one' }));
  await waitUntil(() => watch.events.length > 0, { what: 'the event' });
  t.like(watch.events, { length: 1, 0: { text: 'one', kind: EVENT_KIND.EVENT_KIND_FIGHT } });
  watch.cancel();
  await waitUntil(() => hub.watchers === 0, { what: 'the watcher to be forgotten' });
  t.pass();
});

test('Watch: refuses more watchers than there can be people', async (t) => {
  const { ops, hub } = await serve(t);
  for (let count = 0; count < 32; count++) await ops.watch({});
  t.is(hub.watchers, 32);
  t.is(await (await ops.watch({})).ended, RESOURCE_EXHAUSTED);
});

test('drain: ends watches with UNAVAILABLE, and waits for none that is not read', async (t) => {
  // The grace is longer than the test may take: a watcher that held it up would fail it.
  t.timeout(20_000);
  const { ops, hub, server, socketPath } = await serve(t);
  const watch = await ops.watch({});
  const session = await watchWithoutReading(socketPath);
  t.teardown(() => session.destroy());
  t.is(hub.watchers, 2);
  // More than the stream's window: the rest of it waits for a reader.
  const text = 'x'.repeat(200_000);
  for (let count = 0; count < 3; count++) hub.publish(EVENT_KIND.EVENT_KIND_ADD, () => ({ text }));
  await waitUntil(() => watch.events.length === 3, { what: 'the events, by the one that reads' });
  await server.drain(60_000);
  t.is(await watch.ended, UNAVAILABLE);
});

/** Calls Watch by HTTP/2 and takes nothing of the answer, as a client that was stopped. */
async function watchWithoutReading(socketPath: string): Promise<ClientHttp2Session> {
  const session = connectHttp2('http://localhost', { createConnection: () => connect(socketPath) });
  // The server ends it.
  session.on('error', () => {});
  const stream = session.request({
    ':method': 'POST',
    ':path': OPS_SERVICE.watch.path,
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  stream.on('error', () => {});
  // An empty message: no flags, length 0.
  stream.end(Buffer.alloc(5));
  await once(stream, 'response');
  return session;
}
