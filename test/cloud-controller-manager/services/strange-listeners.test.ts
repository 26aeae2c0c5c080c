/** A listener of somebody else on a shared load balancer goes while it is read, or cannot be read: owners are served and released. */
import test from 'ava';
import { published, startWithLists } from './published-lists.ts';

const DONE_MS = 60_000;
/** Longer than the period of comparisons. */
const RESYNC_MS = 630_000;
const PERSON = { priority: 'warm', owner: 'person', signal: new AbortController().signal } as const;
const DIRECT = { 'service.cloud.tencent.com/direct-access': 'true' };
const EXISTED = 'service.kubernetes.io/tke-existed-lbid';
const STRANGE_PORT = 9_000;
/** More than the API documents. */
const STRANGE_WEIGHT = 5_000;

/** A Service with a Pod, to which a listener of somebody else leads too. */
async function start() {
  const { world, pods } = await startWithLists();
  const { clock, host } = world.world.scene;
  const id = await world.buy();
  await world.create('web', { metadata: { annotations: { ...DIRECT, [EXISTED]: id } } });
  const ip = await pods.run('web', 'web-0', { node: 'n1' });
  await world.advance(DONE_MS);
  await world.addListener(id, STRANGE_PORT);
  const listenerId = world.listener('TCP', STRANGE_PORT)?.listenerId ?? '';
  const target = { listenerId, ip, port: 8_080 };
  await clock.run(world.cloud.targets.register(id, [{ ...target, weight: 10 }], PERSON));
  await world.advance(RESYNC_MS);
  const strange = world.listener('TCP', STRANGE_PORT);
  const [registered] = strange?.targets.values() ?? [];
  if (strange === undefined || registered === undefined) throw new Error('no target');
  const breaks = {
    'cannot be read': () => {
      const { weight } = registered;
      const set = (value: number) => void Object.assign(registered, { weight: value });
      set(STRANGE_WEIGHT);
      return () => set(weight);
    },
    'goes each time that it is read': () => {
      host.gate = async ({ action, params, moment }) => {
        const ids = action === 'DescribeTargets' ? params['ListenerIds'] : undefined;
        if (!Array.isArray(ids) || !ids.includes(listenerId)) return 'go';
        // What the cloud has is replaced by each change: the load balancer as it is now.
        const listeners = world.balancer().listeners as Map<string, typeof strange>;
        if (moment === 'before') listeners.delete(listenerId);
        else listeners.set(listenerId, strange);
        return 'go';
      };
      return () => {
        host.gate = undefined;
      };
    },
  };
  const deregister = async () => void (await clock.run(world.cloud.targets.deregister(id, [target], PERSON)));
  return { world, pods, ip, breaks, deregister };
}

for (const how of ['cannot be read', 'goes each time that it is read'] as const) {
  test(`a listener of somebody else ${how}: Pods follow, and what it may lead to stays published`, async (t) => {
    const { world, pods, ip, breaks, deregister } = await start();
    t.deepEqual(published(world, 'n1'), [ip]);
    const heal = breaks[how]();
    const next = await pods.run('web', 'web-1', { node: 'n2' });
    await pods.delete('web-0');
    await pods.end('web-0');
    await world.advance(RESYNC_MS);
    t.deepEqual(world.listeners()['TCP/80'], [`${next}:8080 10`]);
    t.deepEqual(world.events('SyncLoadBalancerFailed'), []);
    t.deepEqual(published(world, 'n1'), [ip], 'the listener that is not read leads to it');
    t.deepEqual(published(world, 'n2'), [next]);
    heal();
    await deregister();
    await world.advance(2 * RESYNC_MS);
    t.deepEqual(published(world, 'n1'), []);
    await world.stop();
  });

  test(`a listener of somebody else ${how}: a Service is released, and is served after a restart`, async (t) => {
    const { world, pods, breaks } = await start();
    const ports = [{ port: 81 }];
    const annotations = { ...DIRECT, [EXISTED]: world.balancer().loadBalancerId };
    await world.create('api', { metadata: { annotations }, spec: { ports } });
    await world.advance(DONE_MS);
    breaks[how]();
    await world.replace();
    await world.delete('web');
    const ip = await pods.run('api', 'api-0', { node: 'n2' });
    await world.advance(RESYNC_MS);
    t.is(world.service('web'), undefined);
    t.is(world.listeners()['TCP/80'], undefined);
    t.deepEqual(world.listeners()['TCP/81'], [`${ip}:8080 10`]);
    await world.stop();
  });
}

test('a renamed listener is known by its targets after a restart, though one of somebody else cannot be read', async (t) => {
  const { world, pods, breaks } = await start();
  const { loadBalancerId } = world.balancer();
  const mine = world.listener('TCP', 80);
  Object.assign(mine ?? {}, { name: 'web of the shop' });
  breaks['cannot be read']();
  await world.replace();
  const next = await pods.run('web', 'web-1', { node: 'n2' });
  await world.advance(RESYNC_MS);
  t.true(world.listeners()['TCP/80']?.includes(`${next}:8080 10`));
  t.regex(world.listener('TCP', 80)?.name ?? '', /^tke-eni-/);
  t.is(world.balancer().loadBalancerId, loadBalancerId);
  await world.stop();
});

test('a listener of the Service itself that cannot be read is an event', async (t) => {
  const { world, pods } = await start();
  const [one] = world.listener('TCP', 80)?.targets.values() ?? [];
  Object.assign(one ?? {}, { weight: STRANGE_WEIGHT });
  await pods.run('web', 'web-1', { node: 'n2' });
  await world.advance(DONE_MS);
  t.regex(world.events('SyncLoadBalancerFailed').join(), /DescribeTargets/);
  await world.stop();
});

/** As no answer has it that this program can read. */
const BROKEN = { sessionExpireTime: -1 };

test('a listener of somebody else whose settings cannot be read: owners are served and released, and it stays as it is', async (t) => {
  const { world, pods } = await start();
  const strange = world.listener('TCP', STRANGE_PORT);
  Object.assign(strange ?? {}, BROKEN);
  const next = await pods.run('web', 'web-1', { node: 'n2' });
  await world.advance(RESYNC_MS);
  t.true(world.listeners()['TCP/80']?.includes(`${next}:8080 10`));
  t.deepEqual(world.events('SyncLoadBalancerFailed'), []);
  await world.replace();
  await world.delete('web');
  await world.advance(RESYNC_MS);
  t.is(world.service('web'), undefined);
  t.is(world.listeners()['TCP/80'], undefined);
  t.like(world.listener('TCP', STRANGE_PORT), { listenerId: strange?.listenerId ?? '', ...BROKEN });
  await world.stop();
});

test('a listener of a Service whose settings cannot be read keeps them, and targets follow on all its listeners', async (t) => {
  const { world, pods, ip } = await start();
  const annotations = { ...DIRECT, [EXISTED]: world.balancer().loadBalancerId };
  await world.create('api', { metadata: { annotations }, spec: { ports: [{ port: 81 }] } });
  await world.patch('web', {
    spec: { ports: [80, 82].map((port) => ({ name: `p${port}`, port, targetPort: 8_080 })) },
  });
  await world.advance(DONE_MS);
  const mine = world.listener('TCP', 80);
  const { sessionExpireTime } = mine ?? { sessionExpireTime: 0 };
  Object.assign(mine ?? {}, BROKEN);
  const more = await pods.run('web', 'web-1', { node: 'n2' });
  const other = await pods.run('api', 'api-0', { node: 'n2' });
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners()['TCP/81'], [`${other}:8080 10`]);
  await pods.delete('web-0');
  await world.advance(DONE_MS);
  const followed = [`${ip}:8080 0`, `${more}:8080 10`].toSorted();
  for (const port of [80, 82]) t.deepEqual(world.listeners()[`TCP/${port}`], followed);
  t.like(world.listener('TCP', 80), { listenerId: mine?.listenerId ?? '', ...BROKEN });
  t.regex(world.events('SyncLoadBalancerFailed').join('\n'), /lbl-\w+ .*cannot be read.*SessionExpireTime/);
  Object.assign(world.listener('TCP', 80) ?? {}, { sessionExpireTime });
  await world.advance(3 * DONE_MS);
  t.deepEqual(world.listeners()['TCP/80'], followed);
  t.true(world.events('EnsuredLoadBalancer').length > 0);
  await world.stop();
});
