import test from 'ava';
import { BACKEND_READY_GATE as GATE } from '../../../crd/names.ts';
import { published, startWithLists, unprotected } from './published-lists.ts';
import type { ServiceWorld } from './service-world.ts';

const DIRECT = 'service.cloud.tencent.com/direct-access';
const DONE_MS = 60_000;

type Change = Parameters<ServiceWorld['patch']>[1];
const CHANGES: readonly (readonly [string, Change, string])[] = [
  [
    'an annotation that cannot be read',
    annotated({ 'service.cloud.tencent.com/security-groups': 'nonsense' }),
    'AnnotationInvalid',
  ],
  [
    'a port that no listener can have',
    {
      spec: {
        ports: [
          { name: 'a', port: 80 },
          { name: 'b', port: 81, protocol: 'SCTP' },
        ],
      },
    },
    'ServiceRefused',
  ],
  [
    'another subnet',
    annotated({ 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': 'subnet-node0001' }),
    'ImmutableChangeRefused',
  ],
];

function annotated(annotations: Readonly<Record<string, string>>): Change {
  return { metadata: { annotations } };
}

for (const [title, change, reason] of CHANGES) {
  test(`while ${title} is refused, Pods that come are bound, and those that end are drained`, async (t) => {
    const { world, pods } = await startWithLists();
    await world.create('web', annotated({ [DIRECT]: 'true' }));
    const old = [await pods.run('web', 'a', { node: 'n1' }), await pods.run('web', 'b', { node: 'n2' })];
    await world.advance(DONE_MS);
    t.is(world.listeners()['TCP/80']?.length, old.length);
    const { loadBalancerId } = world.balancer();
    await world.patch('web', change);
    await pods.sync();
    await world.advance(DONE_MS);
    t.not(world.events(reason).length, 0);
    const c = await pods.run('web', 'c', { node: 'n1', gates: [GATE] });
    await world.advance(DONE_MS);
    await pods.sync();
    t.regex(pods.condition('c', GATE) ?? '', /^True/);
    for (const name of ['a', 'b']) {
      await pods.delete(name);
      await world.advance(5_000);
      await pods.end(name);
    }
    await world.replace();
    await world.advance(3 * DONE_MS);
    t.deepEqual(world.listeners(), { 'TCP/80': [`${c}:8080 10`] });
    t.deepEqual([published(world, 'n1'), published(world, 'n2'), unprotected(world)], [[c], [], []]);
    t.is(world.balancer().loadBalancerId, loadBalancerId);
    await world.stop();
  });
}

test('what somebody else changed stays while a Service is refused, where drift is only reported', async (t) => {
  const { world, pods } = await startWithLists('--load-balancer-drift=report');
  await world.create('web', annotated({ [DIRECT]: 'true' }));
  const a = await pods.run('web', 'a', { node: 'n1' });
  const b = await pods.run('web', 'b', { node: 'n2' });
  await world.advance(DONE_MS);
  await world.setWeight(a, 77);
  await world.patch('web', annotated({ 'service.cloud.tencent.com/security-groups': 'nonsense' }));
  await world.advance(DONE_MS);
  const c = await pods.run('web', 'c', { node: 'n1' });
  await pods.delete('b');
  await world.advance(DONE_MS);
  const targets = [`${a}:8080 77`, `${b}:8080 0`, `${c}:8080 10`].toSorted();
  t.deepEqual(world.listeners(), { 'TCP/80': targets });
  await world.patch('web', { metadata: { annotations: { 'service.cloud.tencent.com/security-groups': null } } });
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners(), { 'TCP/80': targets });
  t.notRegex(world.events('DriftFound').join(), new RegExp(`${b}|${c}`), 'these were changed here');
  await world.stop();
});

test('addresses of a Service with mode skip stay published while they are targets, also for the next process', async (t) => {
  const { world, pods } = await startWithLists();
  await world.create('web', annotated({ [DIRECT]: 'true' }));
  const a = await pods.run('web', 'a', { node: 'n1' });
  const b = await pods.run('web', 'b', { node: 'n2' });
  await world.advance(DONE_MS);
  await world.patch('web', annotated({ 'service.cloud.tencent.com/mode': 'skip' }));
  await pods.end('a');
  await world.advance(3 * DONE_MS);
  t.deepEqual([published(world, 'n1'), published(world, 'n2'), unprotected(world)], [[a], [b], []]);
  await world.replace();
  await world.advance(3 * DONE_MS);
  t.deepEqual([published(world, 'n1'), unprotected(world)], [[a], []], 'it is a target still');
  await world.deregister(a);
  await world.advance(20 * DONE_MS);
  t.deepEqual(published(world, 'n1'), [], 'a person has deregistered it');
  await world.stop();
});
