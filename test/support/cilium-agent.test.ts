import test from 'ava';
import { readCiliumNode } from '../../crd/cilium-node.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { CILIUM_NODES, CUSTOM_RESOURCE_DEFINITIONS } from '../../kube/resource-types.ts';
import { startInProcessApi } from '../../sim/kube-api/in-process.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { CiliumAgent } from './cilium-agent.ts';
import { CILIUM_NODE_DEFINITION } from './cilium-node-definition.ts';
import { VirtualClock } from './virtual-clock.ts';

const NAME = 'n1';
const FOUR = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4'];
/** Longer than anything takes that is waited for. */
const PATIENCE_MS = 60_000;

/** An API server with one CiliumNode, and lives of its agent. */
async function openScene() {
  const clock = new VirtualClock();
  const server = startInProcessApi({ clock, latencyMs: 4 });
  const kube = server.client();
  await clock.run(kube.create(CUSTOM_RESOURCE_DEFINITIONS, CILIUM_NODE_DEFINITION));
  const life = { end: new AbortController() };
  const read = async () => {
    const object = await clock.run(kube.get(CILIUM_NODES, { name: NAME }));
    if (object === undefined) throw new Error('no CiliumNode');
    return { object, ...readCiliumNode(object).ipam };
  };
  return {
    clock,
    read,
    start: (more: Partial<ConstructorParameters<typeof CiliumAgent>[0]> = {}) => {
      const agent = new CiliumAgent({ kube, clock, random: seededRandom(1), nodeName: NAME, ...more });
      life.end = new AbortController();
      return { agent, started: agent.start(life.end.signal) };
    },
    kill: () => life.end.abort(new Error('killed')),
    pool: (ips: readonly string[], more: object = {}) =>
      clock.run(patch(kube, { spec: { ipam: { pool: Object.fromEntries(ips.map((ip) => [ip, {}])), ...more } } })),
    spec: (ipam: object) => clock.run(patch(kube, { spec: { ipam } })),
    release: (entries: Readonly<Record<string, string | null>>) =>
      clock.run(patch(kube, { status: { ipam: { 'release-ips': entries } } }, 'status')),
    annotate: (value: string) => clock.run(patch(kube, { metadata: { annotations: { value } } })),
    /** Returns how many milliseconds pass until it holds; at most a minute. */
    untilMs: async (holds: (node: Awaited<ReturnType<typeof read>>) => boolean): Promise<number> => {
      const fromMs = clock.monotonicMs();
      while (!holds(await read())) {
        await clock.advance(250);
        if (clock.monotonicMs() - fromMs > PATIENCE_MS) throw new Error('it does not come to hold within a minute');
      }
      return clock.monotonicMs() - fromMs;
    },
  };
}

async function patch(kube: KubeClient, body: object, subresource?: 'status'): Promise<void> {
  const options = subresource === undefined ? {} : { subresource };
  await kube.patch(CILIUM_NODES, { name: NAME }, { kind: 'merge', body, ...options });
}

/** A scene whose agent has started, with two of four addresses free, and a status that it has just written. */
async function openStarted() {
  const scene = await openScene();
  const { agent, started } = scene.start();
  await scene.clock.advance(1_000);
  await scene.pool(FOUR);
  await scene.clock.run(started);
  await scene.untilMs(({ used }) => used.size === 2);
  return { ...scene, agent, free: FOUR.filter((ip) => !agent.dump().has(ip)) as [string, string] };
}

test('it makes the object, and waits for two addresses', async (t) => {
  const { clock, read, start, pool } = await openScene();
  const { agent, started } = start({ labels: { zone: 'a' } });
  await clock.advance(1_000);
  t.deepEqual((await read()).object.metadata.labels, { zone: 'a' });
  await pool(FOUR.slice(0, 1));
  await clock.advance(30_000);
  t.is(agent.dump().size, 0);
  await pool(FOUR);
  await clock.run(started);
  t.deepEqual([...agent.dump().values()].sort(), ['health', 'router']);
});

test('it waits for as many as pre-allocate says', async (t) => {
  const { clock, start, pool, spec } = await openScene();
  const { agent, started } = start();
  await clock.advance(1_000);
  await pool(FOUR, { 'pre-allocate': 8 });
  await clock.advance(30_000);
  t.is(agent.dump().size, 0);
  await spec({ 'min-allocate': 4 });
  await clock.run(started);
  t.is(agent.dump().size, 2);
});

test('it writes what is used at once, and then every 15 s', async (t) => {
  const { agent, untilMs, read } = await openStarted();
  agent.allocate('shop/a');
  agent.allocate('shop/b');
  t.throws(() => agent.allocate('shop/c'), { message: 'No more IPs available' });
  const ms = await untilMs(({ used }) => used.size === 4);
  t.true(ms > 13_000 && ms <= 15_250, `${ms}`);
  t.deepEqual([...(await read()).used.values()].map(({ owner }) => owner).sort(), [
    'health',
    'router',
    'shop/a',
    'shop/b',
  ]);
});

test('a pinned address is given to its Pod alone, and to that twice', async (t) => {
  const { agent, spec, clock, free } = await openStarted();
  const [pinned, other] = free;
  await spec({ pool: { [pinned]: { owner: 'shop/db-0' } } });
  await clock.advance(100);
  t.is(agent.allocate('shop/a'), other);
  t.throws(() => agent.allocate('shop/b'));
  t.deepEqual([agent.allocate('shop/db-0'), agent.allocate('shop/db-0')], [pinned, pinned]);
});

test('marks are answered by what is allocated', async (t) => {
  const { agent, release, untilMs, read, free } = await openStarted();
  const used = agent.allocate('shop/a');
  const [left] = free.filter((ip) => ip !== used);
  await release({ [used]: 'marked-for-release', [left ?? '']: 'marked-for-release', '10.9.9.9': 'marked-for-release' });
  t.throws(() => agent.allocate('shop/b'));
  const ms = await untilMs(({ releases }) => ![...releases.values()].includes('marked-for-release'));
  t.true(ms <= 15_250, `${ms}`);
  t.deepEqual(
    new Map((await read()).releases),
    new Map([
      [used, 'do-not-release'],
      [left, 'ready-for-release'],
      ['10.9.9.9', 'do-not-release'],
    ]),
  );
});

test('a released entry is removed once the pool does not have the address', async (t) => {
  const { release, spec, untilMs, clock, read, free } = await openStarted();
  const [ip] = free;
  await release({ [ip]: 'released' });
  await clock.advance(40_000);
  t.is((await read()).releases.get(ip), 'released');
  await spec({ pool: { [ip]: null } });
  t.true((await untilMs(({ releases }) => releases.size === 0)) <= 15_250);
});

test('an answer is lost when the metadata changes before it is written', async (t) => {
  const { release, annotate, untilMs, clock, read, agent, free } = await openStarted();
  const [ip] = free;
  await release({ [ip]: 'marked-for-release' });
  await clock.advance(2_000);
  await annotate('x');
  await clock.advance(40_000);
  t.is((await read()).releases.get(ip), 'marked-for-release');
  agent.allocate('shop/a');
  await untilMs(({ releases }) => releases.get(ip) === 'ready-for-release');
});

test('a mark that is there at the start is answered before the endpoints are known', async (t) => {
  const { agent, kill, start, release, annotate, clock, untilMs, spec } = await openStarted();
  const used = agent.allocate('shop/a');
  const endpoints = new Map([...agent.dump()].map(([ip, owner]) => [owner, ip]));
  kill();
  await release({ [used]: 'marked-for-release' });
  const next = start({ endpoints, restoreAfterMs: 3_000 });
  await clock.advance(1_000);
  await annotate('not looked at');
  await spec({ pool: { '10.0.0.9': {} } });
  await clock.run(next.started);
  await untilMs(({ releases }) => releases.get(used) === 'ready-for-release');
  t.deepEqual([...next.agent.lost], [['shop/a', 'IP not available, marked or ready for release']]);
});

test('what was taken out of the pool in use is lost at the next start', async (t) => {
  const { agent, kill, start, spec, clock, untilMs } = await openStarted();
  const used = agent.allocate('shop/a');
  const endpoints = new Map([...agent.dump()].map(([ip, owner]) => [owner, ip]));
  await spec({ pool: { [used]: null } });
  await untilMs((node) => node.used.has(used));
  kill();
  const next = start({ endpoints });
  await clock.run(next.started);
  t.deepEqual([...next.agent.lost], [['shop/a', `IP ${used} is not available`]]);
});
