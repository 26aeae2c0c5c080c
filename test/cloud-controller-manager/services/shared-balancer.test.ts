import test from 'ava';
import { ServicePods } from './service-pods.ts';
import { ServiceWorld } from './service-world.ts';

const DONE_MS = 60_000;

/** Two Services with direct access whose listeners are on one load balancer that exists for others too. */
async function start() {
  const world = await ServiceWorld.start();
  const pods = new ServicePods(world);
  for (const name of ['n1', 'n2']) await world.join(name);
  const annotations = {
    'service.cloud.tencent.com/direct-access': 'true',
    'service.kubernetes.io/tke-existed-lbid': await world.buy(),
  };
  await world.create('web', { metadata: { annotations } });
  await world.create('api', { metadata: { annotations }, spec: { ports: [{ port: 81 }] } });
  return { world, pods };
}

test('a target that drained is deregistered in its time, though another Service of the load balancer keeps changing', async (t) => {
  const { world, pods } = await start();
  await pods.run('web', 'web-0', { node: 'n1' });
  const kept = await pods.run('web', 'web-1', { node: 'n1' });
  await pods.run('api', 'api-0', { node: 'n2' });
  await world.advance(DONE_MS);
  t.is(world.listeners()['TCP/80']?.length, 2);
  await pods.end('web-0');
  for (let at = 0; at < 12; at++) {
    await pods.setContainersReady('api-0', at % 2 === 1);
    await world.advance(10_000);
  }
  t.deepEqual(world.listeners()['TCP/80'], [`${kept}:8080 10`]);
  await world.stop();
});

test('a refused target is left alone, and reported for its own Service alone, while another Service keeps changing', async (t) => {
  const { world, pods } = await start();
  const { host } = world.world.scene;
  const good = await pods.run('web', 'good', { node: 'n1' });
  await pods.run('web', 'bad', { node: 'n1', ip: '10.0.200.9' });
  await pods.run('api', 'api-0', { node: 'n2' });
  await world.advance(2 * DONE_MS);
  t.deepEqual(world.listeners()['TCP/80'], [`${good}:8080 10`]);
  host.forget();
  for (let at = 0; at < 60; at++) {
    await pods.setContainersReady('api-0', at % 2 === 1);
    await pods.setContainersReady('good', at % 2 === 1);
    await world.advance(5_000);
  }
  const tries = host.seen.filter(({ action }) => action === 'BatchRegisterTargets').length;
  t.true(tries <= 6, `${tries} in five minutes`);
  const reported = world.world.scene.server
    .objects('events')
    .filter((one) => one['reason'] === 'SyncLoadBalancerFailed')
    .map((one) => (one['involvedObject'] as { readonly name: string }).name);
  t.deepEqual([...new Set(reported)], ['web']);
  await world.stop();
});
