import test from 'ava';
import { BACKEND_READY_GATE as GATE } from '../../../crd/names.ts';
import { eniAround, patchNec, published, startWithLists, unprotected } from './published-lists.ts';

const DIRECT = { metadata: { annotations: { 'service.cloud.tencent.com/direct-access': 'true' } } };
const DONE_MS = 60_000;
const MINUTE_MS = 60_000;

test('an address that its NodeENIConfig does not have is reported, asked about seldom, and keeps no Pod for ever', async (t) => {
  const { world, pods } = await startWithLists();
  await world.create('web', DIRECT);
  const b = await pods.run('web', 'b', { node: 'n2' });
  await world.advance(DONE_MS);
  const a = await pods.run('web', 'a', { node: 'n1', isReady: false, gates: [GATE] });
  await patchNec(world, 'n1', { status: { eniInfos: [eniAround(a)] } });
  await pods.setContainersReady('a', true);
  await world.advance(2 * MINUTE_MS);
  t.is(pods.condition('a', GATE), 'False NotRegistered');
  t.regex(world.events('DirectAccessImpossible').join(), new RegExp(`^not registered: ${a}, as the NodeENIConfig`));
  const { host } = world.world.scene;
  host.forget();
  await world.advance(10 * MINUTE_MS);
  const calls = host.seen.length;
  t.true(calls < 200, `${calls} calls in ten minutes`);
  t.is(pods.condition('a', GATE), 'True NotRegistered');
  t.deepEqual(world.listeners()['TCP/80'], [`${b}:8080 10`]);
  const addresses = [{ ip: a, assignmentID: 'as-1', state: 'Assigned' }];
  await patchNec(world, 'n1', { status: { eniInfos: [{ ...eniAround(a), addresses }] } });
  await world.advance(2 * MINUTE_MS);
  t.deepEqual(world.listeners()['TCP/80'], [`${a}:8080 10`, `${b}:8080 10`].toSorted());
  await world.stop();
});

test('a slice that a person writes does not publish an address that its Pod does not have', async (t) => {
  const { world, pods } = await startWithLists();
  await world.create('web', DIRECT);
  const a = await pods.run('web', 'a', { node: 'n1' });
  const targetRef = { kind: 'Pod', name: 'a', namespace: 'default', uid: pods.pod('a')?.metadata.uid };
  const endpoints = [{ addresses: ['10.0.0.77'], conditions: { ready: true }, targetRef }];
  await pods.putSlice('web', 'by-hand', { ports: [{ name: '', protocol: 'TCP', port: 8_080 }], endpoints });
  await world.advance(3 * MINUTE_MS);
  t.deepEqual(world.listeners()['TCP/80'], [`${a}:8080 10`]);
  t.deepEqual(published(world, 'n1'), [a]);
  t.deepEqual(unprotected(world), []);
  await world.stop();
});

test('a Pod that ends while its load balancer is being read is not registered', async (t) => {
  const { world, pods } = await startWithLists();
  await world.create('web', DIRECT);
  const b = await pods.run('web', 'b', { node: 'n2' });
  await world.advance(DONE_MS);
  const { host } = world.world.scene;
  host.faults.add({ fault: { kind: 'latency', ms: 6_000 }, actions: ['DescribeTargets'] });
  const a = await pods.run('web', 'a', { node: 'n1' });
  await world.advance(4_000);
  pods.holdSlices();
  await pods.end('a');
  for (let at = 0; at < 60; at++) {
    await world.advance(500);
    t.deepEqual(unprotected(world), [], `${a} after ${at}`);
  }
  t.deepEqual(world.listeners()['TCP/80'], [`${b}:8080 10`]);
  await world.stop();
});
