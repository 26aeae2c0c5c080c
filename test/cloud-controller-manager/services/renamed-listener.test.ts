/** A person renames a listener of a Service in the console: it stays the listener of the Service. */
import test from 'ava';
import { isCloudError } from '../../../cloud/cloud-error.ts';
import { listenerNameOf } from '../../../cloud-controller-manager/balancers/balancer-owner.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import { published, startWithLists, unprotected } from './published-lists.ts';
import { CLUSTER, ServiceWorld } from './service-world.ts';

const DONE_MS = 40_000;
/** Longer than the period of comparisons. */
const RESYNC_MS = 630_000;
const GATE = 'cloud.tencent.com/load-balancer-backendgroup-ready';
const DIRECT = { 'service.cloud.tencent.com/direct-access': 'true' };
const EXISTED = 'service.kubernetes.io/tke-existed-lbid';
const POOL = 'tke.cloud.tencent.com/load-balancer-pool';
const PLACES = ['own', 'existing', 'pool'] as const;

/** What places a Service of one kind. */
async function annotationsFor(world: ServiceWorld, place: (typeof PLACES)[number]): Promise<Record<string, string>> {
  if (place === 'own') return {};
  return place === 'pool' ? { [POOL]: 'p' } : { [EXISTED]: await world.buy() };
}

/** Renames a listener of TCP as a person does. */
async function rename(world: ServiceWorld, port = 80, name = 'web of the shop'): Promise<void> {
  const { host, clock } = world.world.scene;
  const { loadBalancerId } = world.balancer();
  const listenerId = world.listener('TCP', port)?.listenerId ?? '';
  const request = { LoadBalancerId: loadBalancerId, ListenerId: listenerId, ListenerName: name };
  for (let tries = 0; tries < 10; tries += 1) {
    try {
      await clock.run(createInProcessApi(host).call('ModifyListener', request, new AbortController().signal));
      return;
    } catch (error) {
      if (!isCloudError(error, 'busy')) throw error;
      await world.advance(1_000);
    }
  }
}

function nameOf(world: ServiceWorld): string {
  return listenerNameOf(CLUSTER, world.service('web')?.metadata.uid ?? '', 'service');
}

for (const place of PLACES)
  test(`${place}: it is named again, its targets follow, and it goes with the Service`, async (t) => {
    const world = await ServiceWorld.start();
    const ip = await world.join('n1');
    const ports = [{ port: 80, nodePort: 30_080 }];
    await world.create('web', { metadata: { annotations: await annotationsFor(world, place) }, spec: { ports } });
    await world.advance(DONE_MS);
    const name = nameOf(world);
    await rename(world);
    await world.patch('web', { spec: { ports: [{ port: 80, nodePort: 30_081 }] } });
    await world.advance(120_000);
    t.deepEqual(world.listeners()['TCP/80'], [`${ip}:30081 10`]);
    t.is(world.listener('TCP', 80)?.name, name);
    t.deepEqual(world.events('ListenerClash'), []);
    t.regex(
      world.events('DriftFound').join(),
      /name of TCP\/80 is web of the shop and was tke-eni-.*\. It is set again$/,
    );
    await rename(world);
    await world.advance(RESYNC_MS);
    t.is(world.listener('TCP', 80)?.name, name);
    await rename(world);
    await world.delete('web');
    await world.advance(240_000);
    t.is(world.service('web'), undefined);
    const left = world.balancers().flatMap(({ listeners }) => [...listeners.values()]);
    t.deepEqual(
      left.flatMap(({ targets }) => [...targets.values()]),
      [],
      'nothing leads to the Service any more',
    );
    await world.stop();
  });

for (const place of PLACES)
  for (const flag of ['repair', 'report'] as const)
    test(`${place}, ${flag}, restarts: addresses stay published, gates wait, and Pods follow`, async (t) => {
      const { world, pods } = await startWithLists(`--load-balancer-drift=${flag}`);
      await world.create('web', { metadata: { annotations: { ...DIRECT, ...(await annotationsFor(world, place)) } } });
      await pods.run('web', 'old-0', { node: 'n1' });
      await pods.run('web', 'old-1', { node: 'n2' });
      await world.advance(DONE_MS);
      await rename(world);
      await world.advance(RESYNC_MS);
      t.deepEqual(unprotected(world), []);
      await world.replace();
      await rename(world, 80, 'again');
      const next = [
        await pods.run('web', 'new-0', { node: 'n1', gates: [GATE] }),
        await pods.run('web', 'new-1', { node: 'n2', gates: [GATE] }),
      ];
      await world.advance(60_000);
      t.deepEqual(unprotected(world), []);
      t.deepEqual(
        ['new-0', 'new-1'].map((name) => pods.condition(name, GATE)),
        ['True Registered', 'True Registered'],
      );
      for (const name of ['old-0', 'old-1']) {
        await pods.delete(name);
        await world.advance(30_000);
        await pods.end(name);
        t.deepEqual(unprotected(world), []);
      }
      await world.advance(300_000);
      t.deepEqual(world.listeners()['TCP/80'], next.map((ip) => `${ip}:8080 10`).toSorted());
      t.deepEqual(['n1', 'n2'].flatMap((node) => published(world, node) ?? []).toSorted(), next.toSorted());
      t.deepEqual(world.events('ListenerClash'), []);
      await rename(world);
      await world.delete('web');
      await world.advance(300_000);
      t.is(world.service('web'), undefined);
      t.deepEqual(unprotected(world), []);
      t.deepEqual(
        ['n1', 'n2'].flatMap((node) => published(world, node) ?? []),
        [],
      );
      await world.stop();
    });

test('a port that goes while its listener is renamed: the listener goes, or leads nowhere where it is of others by its name', async (t) => {
  for (const place of PLACES)
    for (const flag of ['repair', 'report'] as const) {
      const { world, pods } = await startWithLists(`--load-balancer-drift=${flag}`);
      const ports = [
        { name: 'a', port: 80 },
        { name: 'b', port: 81 },
      ];
      const annotations = { ...DIRECT, ...(await annotationsFor(world, place)) };
      await world.create('web', { metadata: { annotations }, spec: { ports } });
      await pods.run('web', 'web-0', { node: 'n1' });
      await world.advance(DONE_MS);
      await rename(world, 81);
      await world.advance(5_000);
      await world.patch('web', { spec: { ports: ports.slice(0, 1) } });
      await pods.sync();
      await world.advance(DONE_MS + 120_000);
      t.is(world.listeners()['TCP/80']?.length, 1, `${place} ${flag}`);
      t.deepEqual(
        world.listeners()['TCP/81'],
        place === 'own' || flag === 'repair' ? undefined : [],
        `${place} ${flag}`,
      );
      t.deepEqual(unprotected(world), []);
      await world.stop();
    }
});

test('a listener that got a name such as other owners have is still known, and what it leads to is published', async (t) => {
  for (const place of PLACES) {
    const { world, pods } = await startWithLists();
    await world.create('web', { metadata: { annotations: { ...DIRECT, ...(await annotationsFor(world, place)) } } });
    await pods.run('web', 'web-0', { node: 'n1' });
    await world.advance(DONE_MS);
    const name = nameOf(world);
    await world.replace('--load-balancers=none');
    await rename(world, 80, 'tke-eni-0123456789abcdef');
    await world.advance(5_000);
    await world.replace();
    await pods.delete('web-0');
    await pods.end('web-0');
    const ip = await pods.run('web', 'web-1', { node: 'n1' });
    await world.advance(RESYNC_MS);
    t.deepEqual(world.listeners()['TCP/80'], [`${ip}:8080 10`], place);
    t.is(world.listener('TCP', 80)?.name, name, place);
    t.deepEqual(unprotected(world), [], place);
    await world.stop();
  }
});

test('while a Service is refused its renamed listener is followed, and nothing is said to be set again', async (t) => {
  const world = await ServiceWorld.start();
  const ip = await world.join('n1');
  await world.create('web', { spec: { ports: [{ port: 80, nodePort: 30_080 }] } });
  await world.advance(DONE_MS);
  const annotations = { 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': 'subnet-node0001' };
  await world.patch('web', { metadata: { annotations } });
  await world.advance(DONE_MS);
  await rename(world);
  await world.advance(5_000);
  await world.patch('web', { spec: { ports: [{ port: 80, nodePort: 30_081 }] } });
  await world.advance(120_000);
  t.deepEqual(world.listeners()['TCP/80'], [`${ip}:30081 10`]);
  t.deepEqual(
    world.events('DriftFound').filter((message) => !message.includes('It is not set again yet')),
    [],
  );
  await world.patch('web', { metadata: { annotations: { [Object.keys(annotations)[0] ?? '']: null } } });
  await world.advance(DONE_MS);
  t.is(world.listener('TCP', 80)?.name, nameOf(world));
  t.regex(world.events('DriftFound').join(), /It is set again$/);
  await world.stop();
});

test('a listener of others that nobody knows keeps the addresses that it leads to published', async (t) => {
  const { world, pods } = await startWithLists();
  const id = await world.buy();
  await world.create('web', { metadata: { annotations: { ...DIRECT, [EXISTED]: id } } });
  const ip = await pods.run('web', 'web-0', { node: 'n1' });
  await world.advance(DONE_MS);
  await world.addListener(id, 9_000);
  const other = world.listener('TCP', 9_000)?.listenerId ?? '';
  const { clock } = world.world.scene;
  const context = { priority: 'warm', owner: 'person', signal: new AbortController().signal } as const;
  await clock.run(world.cloud.targets.register(id, [{ listenerId: other, ip, port: 8_080, weight: 10 }], context));
  await world.advance(RESYNC_MS);
  await world.replace();
  await pods.delete('web-0');
  await pods.end('web-0');
  await world.advance(RESYNC_MS);
  t.deepEqual(published(world, 'n1'), [ip], 'the listener of the person still leads to it');
  t.deepEqual(world.listeners(), { 'TCP/80': [], 'TCP/9000': [`${ip}:8080 10`], 'UDP/53': [] });
  await clock.run(world.cloud.targets.deregister(id, [{ listenerId: other, ip, port: 8_080 }], context));
  await world.advance(RESYNC_MS);
  t.deepEqual(published(world, 'n1'), []);
  await world.stop();
});

test('a gate whose port a listener of others has waits as in a refused Service', async (t) => {
  const { world, pods } = await startWithLists();
  const id = await world.buy();
  await world.addListener(id, 80);
  await world.create('web', { metadata: { annotations: { ...DIRECT, [EXISTED]: id } } });
  await pods.run('web', 'web-0', { node: 'n1', gates: [GATE] });
  await world.advance(240_000);
  t.is(pods.condition('web-0', GATE), 'False NotRegistered');
  await world.advance(120_000);
  t.is(pods.condition('web-0', GATE), 'True NotRegistered');
  t.regex(world.events('ListenerClash').join(), /port 80 of TCP/);
  await world.stop();
});

test('DriftFound says that it is set again only when it is', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  const id = await world.buy();
  await world.create('web', { metadata: { annotations: { [EXISTED]: id } } });
  await world.advance(DONE_MS);
  const { clock } = world.world.scene;
  const { listeners, loadBalancers } = world.cloud;
  const context = { priority: 'warm', owner: 'person', signal: new AbortController().signal } as const;
  const listenerId = world.listener('TCP', 80)?.listenerId ?? '';
  await clock.run(loadBalancers.settle(await clock.run(listeners.delete(id, [listenerId], context)), context));
  await world.addListener(id, 80);
  await world.advance(RESYNC_MS);
  t.is(world.listener('TCP', 80)?.name, 'of-a-person');
  const said = world.events('DriftFound').join();
  t.regex(said, /the listener TCP\/80 was removed/);
  t.regex(said, /Not set again/);
  t.notRegex(said, /It is set again/);
  await world.stop();
});
