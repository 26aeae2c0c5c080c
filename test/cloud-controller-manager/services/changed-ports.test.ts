import test from 'ava';
import { ServicePods } from './service-pods.ts';
import { ServiceWorld } from './service-world.ts';

const DIRECT = 'service.cloud.tencent.com/direct-access';
/** Longer than a creation, the registration of its targets and their first checks. */
const DONE_MS = 60_000;

async function start() {
  const world = await ServiceWorld.start();
  const pods = new ServicePods(world);
  for (const name of ['n1', 'n2']) await world.join(name);
  return { world, pods };
}

const direct = (value = 'true') => ({ metadata: { annotations: { [DIRECT]: value } } });

test('Pods serve on while a port gets a name, until their slice has the name too', async (t) => {
  const { world, pods } = await start();
  await world.create('web', direct());
  const ips = [await pods.run('web', 'a', { node: 'n1' }), await pods.run('web', 'b', { node: 'n2' })];
  await world.advance(DONE_MS);
  const all = ips.map((ip) => `${ip}:8080 10`).toSorted();
  t.deepEqual(world.listeners(), { 'TCP/80': all });
  pods.holdSlices();
  const ports = [
    { name: 'http', port: 80 },
    { name: 'metrics', port: 9_090 },
  ];
  await world.patch('web', { spec: { ports } });
  for (let ms = 0; ms < 20_000; ms += 500) {
    await world.advance(500);
    t.deepEqual(world.listeners()['TCP/80'], all, `${ms}`);
  }
  await pods.releaseSlices();
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners(), { 'TCP/80': all, 'TCP/9090': all });
  await world.stop();
});

test('a target port that is taken back within minutes is checked again before the other one is drained', async (t) => {
  const { world, pods } = await start();
  await world.create('web', direct());
  const ip = await pods.run('web', 'a', { node: 'n1' });
  await world.advance(DONE_MS);
  for (const port of [9_090, 8_080, 9_090, 8_080]) {
    await pods.setTargetPort('web', port);
    for (let ms = 0; ms < 150_000; ms += 500) {
      await world.advance(500);
      t.true(world.healthy('TCP', 80).length > 0, `${port} after ${ms} ms: ${world.listeners()['TCP/80']}`);
    }
    t.deepEqual(world.listeners()['TCP/80'], [`${ip}:${port} 10`]);
  }
  await world.stop();
});
