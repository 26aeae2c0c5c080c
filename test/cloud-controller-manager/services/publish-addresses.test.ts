import test from 'ava';
import { eniAround, listObjects, patchNec, published, startWithLists, unprotected } from './published-lists.ts';
import { ServicePods } from './service-pods.ts';
import { ServiceWorld } from './service-world.ts';

const DIRECT = { 'service.cloud.tencent.com/direct-access': 'true' };
const SECOND_MS = 1_000;

test('an address that is offered back, or that its ENI lacks, is registered when that is over', async (t) => {
  const { world, pods } = await startWithLists();
  await world.create('web', { metadata: { annotations: DIRECT } });
  const b = await pods.run('web', 'b', { node: 'n2' });
  await world.advance(40 * SECOND_MS);
  const a = await pods.run('web', 'a', { node: 'n1', isReady: false });
  const eni = eniAround(a);
  const addresses = [{ ip: a, assignmentID: 'as-1', state: 'Assigned' }];
  const alone = [`${b}:8080 10`];
  await patchNec(world, 'n1', { status: { eniInfos: [eni] } });
  await pods.setContainersReady('a', true);
  await world.advance(10 * SECOND_MS);
  t.deepEqual(world.listeners()['TCP/80'], alone);
  const releasableIPs = [{ ip: a, assignmentID: 'as-1' }];
  await patchNec(world, 'n1', { spec: { releasableIPs }, status: { eniInfos: [{ ...eni, addresses }] } });
  await world.advance(10 * SECOND_MS);
  t.deepEqual(world.listeners()['TCP/80'], alone);
  await patchNec(world, 'n1', { spec: { releasableIPs: [] } });
  await world.advance(20 * SECOND_MS);
  t.deepEqual(world.listeners()['TCP/80'], [...alone, `${a}:8080 10`].toSorted());
  t.deepEqual(unprotected(world), []);
  await world.stop();
});

test('a list has addresses of its own node alone, whatever kubelets say of their Pods', async (t) => {
  const { world, pods } = await startWithLists();
  await world.create('web', { metadata: { annotations: DIRECT } });
  const b = await pods.run('web', 'b', { node: 'n2', isReady: false });
  const eni = { ...eniAround(b), addresses: [{ ip: b, assignmentID: 'as-1', state: 'Assigned' }] };
  await patchNec(world, 'n2', { status: { eniInfos: [eni] } });
  await pods.run('web', 'z', { node: 'n1', ip: b });
  await pods.setContainersReady('b', true);
  await world.advance(40 * SECOND_MS);
  t.deepEqual(world.listeners()['TCP/80'], [`${b}:8080 10`]);
  t.deepEqual([published(world, 'n1') ?? [], published(world, 'n2')], [[], [b]]);
  // The address moves with a kept claim: the list of its node has it before a Pod there says so.
  await pods.end('b');
  await patchNec(world, 'n2', { status: { eniInfos: [{ ...eni, addresses: [] }] } });
  await patchNec(world, 'n1', { status: { eniInfos: [eni] } });
  await world.advance(10 * SECOND_MS);
  t.deepEqual(published(world, 'n1'), [b]);
  await world.stop();
});

test('a new process takes nothing out before it has read all Services, writes nothing at rest, and mends what was edited', async (t) => {
  const { world, pods } = await startWithLists();
  await world.create('web', { metadata: { annotations: DIRECT } });
  const a = await pods.run('web', 'a', { node: 'n1' });
  await world.advance(1_300 * SECOND_MS);
  const versionOf = () => listObjects(world).map(({ metadata }) => metadata.resourceVersion);
  const before = versionOf();
  await world.replace();
  await world.advance(120 * SECOND_MS);
  t.deepEqual(versionOf(), before);
  await patchNec(world, 'n1', { loadBalancers: { registeredIPs: ['10.9.9.9'] } });
  await world.advance(120 * SECOND_MS);
  t.deepEqual(published(world, 'n1'), [a]);
  await world.stop();
});

test('what a process left in the lists is taken out, though no Service has Pods as targets any more', async (t) => {
  const { world } = await startWithLists();
  await world.create('web');
  await patchNec(world, 'n2', { loadBalancers: { registeredIPs: ['10.9.9.9'] } });
  await world.replace();
  await world.advance(180 * SECOND_MS);
  t.deepEqual(published(world, 'n2'), []);
  await world.stop();
});

test('without NodeENIConfigs in the cluster nothing is published, and Pods are bound', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  const pods = new ServicePods(world);
  await world.create('web', { metadata: { annotations: DIRECT } });
  const a = await pods.run('web', 'a', { node: 'n1' });
  await world.advance(40 * SECOND_MS);
  t.deepEqual(world.listeners(), { 'TCP/80': [`${a}:8080 10`] });
  await world.stop();
});
