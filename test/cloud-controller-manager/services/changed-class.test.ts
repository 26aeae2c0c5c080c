import test from 'ava';
import { LOAD_BALANCER_ID_ANNOTATION } from '../../../crd/foreign-names.ts';
import { SERVICE_FINALIZER } from '../../../crd/names.ts';
import { published, startWithLists } from './published-lists.ts';
import { ServiceWorld } from './service-world.ts';

const DONE_MS = 60_000;
const OTHER = { spec: { type: 'LoadBalancer', loadBalancerClass: 'example.com/other' } };

test('a Service that gets the class of others takes its load balancer with it when it is deleted', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  await world.create('web');
  await world.advance(DONE_MS);
  t.is(world.balancers().length, 1);
  const { lives } = world.world;
  lives.crash = { of: 'read', moment: 'before', at: lives.made.read + 1 };
  await world.patch('web', { spec: { type: 'ClusterIP' } });
  await world.patch('web', OTHER);
  await world.advance(5_000);
  t.true(lives.isOver);
  await world.replace();
  await world.advance(DONE_MS);
  t.is(world.balancers().length, 1, 'a mistake, or a changed flag, deletes none');
  await world.delete('web');
  await world.advance(3 * DONE_MS);
  t.deepEqual([world.service('web'), world.balancers()], [undefined, []]);
  await world.stop();
});

test('a Service of others with a record of ours keeps no address in the lists', async (t) => {
  const { world, pods } = await startWithLists();
  const record = JSON.stringify({ serial: 1, loadBalancerId: 'lb-a1b2c3d4' });
  await world.create('other', {
    ...OTHER,
    metadata: { annotations: { 'tke.cloud.tencent.com/load-balancer-record': record } },
  });
  await world.create('web', { metadata: { annotations: { 'service.cloud.tencent.com/direct-access': 'true' } } });
  const a = await pods.run('web', 'a', { node: 'n1' });
  const b = await pods.run('web', 'b', { node: 'n2' });
  await world.advance(DONE_MS);
  t.deepEqual([published(world, 'n1'), published(world, 'n2')], [[a], [b]]);
  await pods.end('a');
  await world.advance(3 * DONE_MS);
  t.deepEqual([published(world, 'n1'), published(world, 'n2')], [[], [b]]);
  await world.stop();
});

test('a Service of another controller that has the finalizer of all keeps it, and one of ours without its record does not', async (t) => {
  const world = await ServiceWorld.start();
  const metadata = {
    annotations: { [LOAD_BALANCER_ID_ANNOTATION]: 'lb-0f0f0f0f' },
    finalizers: [SERVICE_FINALIZER],
  };
  await world.create('theirs', { metadata, ...OTHER });
  await world.create('ours');
  await world.advance(DONE_MS);
  for (const name of ['theirs', 'ours'])
    await world.patch(name, {
      metadata: { annotations: { 'tke.cloud.tencent.com/load-balancer-record': null } },
      spec: { type: 'ClusterIP', loadBalancerClass: null },
    });
  await world.advance(3 * DONE_MS);
  const rest = (name: string) => [
    world.service(name)?.metadata.finalizers ?? [],
    world.annotation(name, LOAD_BALANCER_ID_ANNOTATION),
  ];
  t.deepEqual(rest('theirs'), [[SERVICE_FINALIZER], 'lb-0f0f0f0f']);
  t.deepEqual(rest('ours'), [[], undefined]);
  t.deepEqual(world.balancers(), []);
  await world.delete('theirs');
  await world.advance(DONE_MS);
  t.deepEqual(rest('theirs'), [[SERVICE_FINALIZER], 'lb-0f0f0f0f'], 'its controller ends it');
  await world.stop();
});
