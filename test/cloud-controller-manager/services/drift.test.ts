/** What people change of load balancers by hand, and restarts when nothing has changed. */
import test from 'ava';
import type { CallContext } from '../../../cloud/cloud.ts';
import { decidePriority } from '../../../cloud-controller-manager/balancers/decide-priority.ts';
import { desiredHashOf } from '../../../cloud-controller-manager/balancers/desired-hash.ts';
import type { DesiredLoadBalancer } from '../../../cloud-controller-manager/balancers/desired-load-balancer.ts';
import { ServiceWorld } from './service-world.ts';

const DONE_MS = 40_000;
/** Longer than the period of comparisons. */
const RESYNC_MS = 630_000;
const PERSON: CallContext = { priority: 'warm', owner: 'person', signal: new AbortController().signal };
const WRITE = /^(Create|Modify|Set|Delete|Batch)/;

/** A Service of two ports with a load balancer, and what a person did to it. */
async function changedByHand(...flags: readonly string[]) {
  const world = await ServiceWorld.start({ flags });
  const ip = await world.join('n1');
  await world.join('n2');
  const ports = [
    { name: 'a', port: 80, nodePort: 30_080 },
    { name: 'b', port: 81, nodePort: 30_081 },
  ];
  await world.create('web', { spec: { ports } });
  await world.advance(DONE_MS);
  const { clock } = world.world.scene;
  const { loadBalancers, listeners, targets } = world.cloud;
  const { loadBalancerId: id } = world.balancer();
  const settle = async (task: Promise<Awaited<ReturnType<typeof loadBalancers.modify>>>): Promise<void> => {
    await clock.run(loadBalancers.settle(await clock.run(task), PERSON));
  };
  const all = await clock.run(listeners.list(id, PERSON));
  const [listenerId = '', otherId = ''] = all
    .toSorted((one, next) => one.port - next.port)
    .map((one) => one.listenerId);
  await settle(listeners.modify(id, listenerId, { scheduler: 'LEAST_CONN', idleSeconds: 60 }, PERSON));
  const [target] = await clock.run(targets.list(id, [listenerId], PERSON));
  if (target === undefined) throw new Error('no target');
  await settle(targets.setWeights(id, [{ ...target, weight: 77 }], PERSON));
  await settle(listeners.delete(id, [otherId], PERSON));
  return { world, id, ip, weighted: `${target.ip}:30080 77` };
}

test('what somebody else changed is named, counted and set again', async (t) => {
  const { world, weighted } = await changedByHand();
  await world.advance(RESYNC_MS);
  t.is(world.listener('TCP', 80)?.scheduler, 'WRR');
  t.is(world.listener('TCP', 80)?.sessionExpireTime, 0);
  t.is(Object.values(world.listeners()).flat().length, 4);
  t.false(Object.values(world.listeners()).flat().includes(weighted));
  const [message, ...others] = world.events('DriftFound');
  t.deepEqual(others, []);
  t.regex(message ?? '', /scheduler of TCP\/80 is "LEAST_CONN" and was "WRR"/);
  t.regex(message ?? '', /weight of TCP\/80 10\.0\.[0-9.]+:30080 is 77 and was 10/);
  t.regex(message ?? '', /the listener TCP\/81 was removed.*set again/);
  const metrics = await world.world.metrics();
  for (const field of ['scheduler', 'weight', 'listener'])
    t.true(metrics.includes(`_load_balancer_drifts_repaired_total{field="${field}"} 1`), field);
  t.false(metrics.includes('idleSeconds'), 'the Service says nothing about it');
  await world.advance(RESYNC_MS);
  t.is(world.events('DriftFound').length, 1);
  await world.stop();
});

test('with --load-balancer-drift=report it stays, also when other things of the Service change', async (t) => {
  const { world, ip, weighted } = await changedByHand('--load-balancer-drift=report');
  world.world.scene.host.forget();
  await world.advance(2 * RESYNC_MS);
  const { host } = world.world.scene;
  t.deepEqual(
    Object.keys(host.counts()).filter((action) => WRITE.test(action)),
    [],
  );
  t.regex(world.events('DriftFound').join(), /LEAST_CONN.*It stays/);
  t.is(world.events('DriftFound').length, 1);
  t.regex(await world.world.metrics(), /_load_balancer_drifts\{field="scheduler"\} 1/);
  const third = await world.join('n3');
  await world.patchNode('n1', {
    metadata: { annotations: { 'tke.cloud.tencent.com/load-balancer-backend': 'false' } },
  });
  await world.advance(DONE_MS + 90_000);
  const now = world.listeners();
  t.true(now['TCP/80']?.includes(`${third}:30080 10`), 'what the Service asks for again is done');
  t.false(
    now['TCP/80']?.some((one) => one.startsWith(`${ip}:`)),
    'and a backend that goes is removed',
  );
  t.true(weighted.startsWith(`${ip}:`) || now['TCP/80']?.includes(weighted));
  t.is(now['TCP/81'], undefined);
  t.is(world.listener('TCP', 80)?.scheduler, 'LEAST_CONN');
  await world.patch('web', { spec: { sessionAffinity: 'ClientIP' } });
  await world.advance(DONE_MS);
  t.is(world.listener('TCP', 80)?.sessionExpireTime, 3_600);
  t.is(world.listener('TCP', 80)?.scheduler, 'LEAST_CONN');
  await world.stop();
});

test('a replica that leads no more shows no drifts', async (t) => {
  const { world } = await changedByHand('--load-balancer-drift=report');
  await world.advance(2 * RESYNC_MS);
  t.regex(await world.world.metrics(), /_load_balancer_drifts\{field="scheduler"\} 1/);
  await world.stop();
  const metrics = await world.world.metrics();
  t.regex(metrics, /_manager_leader 0/);
  t.notRegex(metrics, /_load_balancer_drifts\{/);
});

test('a load balancer that somebody deleted is made again, or with report is not', async (t) => {
  for (const [mode, count] of [
    ['repair', 1],
    ['report', 0],
  ] as const) {
    const world = await ServiceWorld.start({ flags: [`--load-balancer-drift=${mode}`] });
    await world.join('n1');
    await world.create('web');
    await world.advance(DONE_MS);
    const { loadBalancerId } = world.balancer();
    await world.discard(loadBalancerId);
    await world.advance(RESYNC_MS + 150_000);
    t.is(world.balancers().length, count, mode);
    t.regex(world.events('DriftFound').join(), new RegExp(`deleted the load balancer ${loadBalancerId}`));
    await world.stop();
  }
});

test('a restart with nothing changed lists the load balancers and writes nothing; the next comparison is due later', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  await world.join('n2');
  const names = Array.from({ length: 12 }, (_, at) => `web${at}`);
  for (const name of names) await world.create(name);
  await world.advance(DONE_MS);
  const { host } = world.world.scene;
  const restart = async (): Promise<Readonly<Record<string, number>>> => {
    host.forget();
    await world.replace();
    await world.advance(5_000);
    const counts = host.counts();
    return Object.fromEntries(Object.entries(counts).filter(([action]) => /LoadBalancer|Listener|Target/.test(action)));
  };
  const versions = () => names.map((name) => world.service(name)?.metadata.resourceVersion);
  const each = names.length;
  const young = await restart();
  t.deepEqual(
    young,
    { DescribeLoadBalancers: 1, DescribeListeners: each, DescribeTargets: each },
    'nothing is on record; load balancers are described by twenties',
  );
  await world.advance(2 * RESYNC_MS);
  const before = versions();
  t.deepEqual(await restart(), { DescribeLoadBalancers: 1 });
  t.deepEqual(versions(), before);
  t.deepEqual(
    names.filter((name) => world.ingress(name).length !== 1),
    [],
  );
  await world.advance(RESYNC_MS);
  t.true((host.counts()['DescribeTargets'] ?? 0) >= each, 'each is compared within a period');
  t.deepEqual(versions(), before, 'and nothing is written');
  await world.stop();
});

test('the record goes before the first change, so that a restart reads what it cannot know', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  await world.create('web', { spec: { ports: [{ port: 80, nodePort: 30_080 }] } });
  await world.advance(2 * RESYNC_MS);
  const RECORD = 'tke.cloud.tencent.com/load-balancer-record';
  t.regex(world.annotation('web', RECORD) ?? '', /"settled":"[0-9a-f]{16}"/);
  const written: (string | undefined)[] = [];
  const { host } = world.world.scene;
  host.gate = async ({ action, moment }) => {
    if (action === 'BatchRegisterTargets' && moment === 'before') written.push(world.annotation('web', RECORD));
    return 'go';
  };
  const before = world.service('web')?.metadata.resourceVersion;
  await world.join('n2');
  await world.advance(DONE_MS);
  t.is(written.length, 1);
  t.false(written[0]?.includes('settled'));
  // While the Service changes, the record is not written at each change.
  const once = world.service('web')?.metadata.resourceVersion;
  t.not(once, before);
  for (const name of ['n3', 'n4', 'n5']) {
    await world.join(name);
    await world.advance(DONE_MS);
  }
  t.is(world.service('web')?.metadata.resourceVersion, once);
  // A Node that came and went while no process ran leaves the Service as it was.
  await world.replace();
  await world.advance(DONE_MS);
  t.is(world.listeners()['TCP/80']?.length, 5);
  await world.stop();
});

const target = (ip: string, weight = 10) => ({ ip, port: 1, weight });
const desired = (...targets: readonly ReturnType<typeof target>[]): DesiredLoadBalancer => ({
  source: { kind: 'existing', loadBalancerId: 'lb-1' },
  listenerName: 'ours',
  allowsAddressChange: false,
  listeners: [{ protocol: 'TCP', port: 80, settings: {}, targets }],
});

test('whose calls go first: a target that drains, a change, a comparison', (t) => {
  const both = desired(target('10.0.0.1'), target('10.0.0.2'));
  t.is(decidePriority(both, desired(target('10.0.0.1'))), 'pod');
  t.is(decidePriority(both, desired(target('10.0.0.1'), target('10.0.0.2', 0))), 'pod');
  t.is(decidePriority(both, desired(target('10.0.0.1'), target('10.0.0.2'), target('10.0.0.3'))), 'warm');
  t.is(decidePriority(both, both), 'gc');
  t.is(decidePriority(undefined, both), 'warm');
});

test('the hash of what is in force: order does not matter, all else does', (t) => {
  const [one, other] = [target('10.0.0.1'), target('10.0.0.2')];
  const hash = desiredHashOf('lb-1', desired(one, other));
  t.is(desiredHashOf('lb-1', desired(other, one)), hash);
  t.not(desiredHashOf('lb-2', desired(one, other)), hash);
  t.not(desiredHashOf('lb-1', desired(one)), hash);
  t.not(desiredHashOf('lb-1', desired(one, target('10.0.0.2', 0))), hash);
  t.not(desiredHashOf('lb-1', { ...desired(one, other), passesToTarget: true }), hash);
  const withRange = (cidr: string) => {
    const rules = [{ isAccepted: true, cidr, protocol: 'TCP' }];
    return { ...desired(one, other), sourceGroup: { spec: { name: 'g', description: '', tags: {} }, rules } };
  };
  const closed = desiredHashOf('lb-1', withRange('10.0.0.0/8'));
  t.not(closed, hash);
  t.not(desiredHashOf('lb-1', withRange('192.0.2.0/24')), closed);
});
