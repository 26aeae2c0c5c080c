import test from 'ava';
import { BACKEND_READY_GATE as GATE } from '../../../crd/names.ts';
import { eniAround, patchNec, published, startWithLists, unprotected } from './published-lists.ts';

const DIRECT = { metadata: { annotations: { 'service.cloud.tencent.com/direct-access': 'true' } } };
const DONE_MS = 60_000;
const MINUTE_MS = 60_000;

test('an address that its NodeENIConfig does not have is reported, asked about seldom, and keeps no Pod forever', async (t) => {
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

test('of two Services that share Pods one goes while a Pod drains: its address stays published until the other has ended too', async (t) => {
  const { world, pods } = await startWithLists();
  pods.alsoSelects('dns', 'web');
  await world.create('web', { ...DIRECT, spec: { sessionAffinity: 'ClientIP' } });
  await world.create('dns', { ...DIRECT, spec: { ports: [{ port: 53, protocol: 'UDP' }] } });
  const a = await pods.run('web', 'a', { node: 'n1' });
  const b = await pods.run('web', 'b', { node: 'n2', gates: [GATE] });
  await world.advance(DONE_MS);
  await pods.sync();
  t.is(pods.condition('b', GATE), 'True Registered');
  const weightsOf = (ip: string) =>
    world
      .balancers()
      .flatMap(({ listeners }) => [...listeners.values()].flatMap((one) => [...one.targets.values()]))
      .flatMap((target) => (target.ip === ip ? [target.weight] : []));
  t.deepEqual(
    [weightsOf(a), weightsOf(b)],
    [
      [10, 10],
      [10, 10],
    ],
  );
  await pods.delete('a');
  await world.advance(5_000);
  t.deepEqual(weightsOf(a), [0, 0]);
  await world.delete('dns');
  await pods.end('a');
  for (let at = 0; at < 60; at++) {
    await world.advance(1_000);
    t.deepEqual(unprotected(world), [], `${at}`);
  }
  await world.advance(2 * MINUTE_MS);
  t.deepEqual([weightsOf(a), weightsOf(b)], [[], [10]]);
  t.deepEqual([published(world, 'n1'), published(world, 'n2')], [[], [b]]);
  await world.stop();
});

test('Pods in many slices, of which one is split: each is a target once, and none that stays is touched', async (t) => {
  const { world, pods } = await startWithLists();
  const { host } = world.world.scene;
  host.model.state.clb.limits.targets = 2_000;
  await world.create('web', { ...DIRECT, spec: { selector: null } });
  const ips: string[] = [];
  pods.holdSlices();
  for (let at = 0; at < 24; at++) ips.push(await pods.run('web', `p${at}`, { node: at % 2 === 0 ? 'n1' : 'n2' }));
  const ports = [{ name: '', protocol: 'TCP', port: 8_080 }];
  const endpointsOf = (from: number, to: number) =>
    ips.slice(from, to).map((ip, at) => ({
      addresses: [ip],
      conditions: { ready: true },
      targetRef: {
        kind: 'Pod',
        name: `p${from + at}`,
        namespace: 'default',
        uid: pods.pod(`p${from + at}`)?.metadata.uid,
      },
    }));
  for (let at = 0; at < 3; at++)
    await pods.putSlice('web', `s${at}`, { ports, endpoints: endpointsOf(at * 8, at * 8 + 8) });
  await world.advance(2 * DONE_MS);
  const all = ips.map((ip) => `${ip}:8080 10`).toSorted();
  t.deepEqual(world.listeners()['TCP/80'], all);
  host.forget();
  await pods.putSlice('web', 's6', { ports, endpoints: endpointsOf(5, 8) });
  await world.advance(DONE_MS);
  await pods.putSlice('web', 's0', { ports, endpoints: endpointsOf(0, 5) });
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners()['TCP/80'], all);
  t.deepEqual(
    host.seen.filter(({ action }) => action.startsWith('Batch')),
    [],
  );
  await world.stop();
});
