import test from 'ava';
import { runSweep } from '../../../ipamd/audit/run-sweep.ts';
import { type EniSweepDeps, sweptEnis } from '../../../ipamd/audit/sweep-enis.ts';
import { AuditWorld, CLUSTER, intentOf, OWN_TAGS, see, statusOf, TKE_TAGS } from './audit-world.ts';

test('Audit: deletes what nobody names once it was nobody’s in two looks and for the grace', async (t) => {
  const world = new AuditWorld();
  const instanceId = world.addNode('n1');
  const orphan = world.addEni();
  const named = world.addEni({ on: instanceId });
  world.setNec('n1', { status: { instanceID: instanceId, ...statusOf([named]) } });
  const audit = world.audit();
  t.like(await world.look(audit), { orphans: { length: 1 }, areTooMany: false });
  t.true(world.has(orphan));
  const report = await world.look(audit);
  t.like(report, { kind: 'done' });
  t.deepEqual(report.kind === 'done' ? [...report.outcomes] : [], [[orphan, { kind: 'removed' }]]);
  t.false(world.has(orphan));
  t.true(world.has(named));
  t.deepEqual(
    world.events.map((event) => event.reason),
    ['OrphanENIDeleted'],
  );
});

test('Audit: waits for the grace, from its own first look on', async (t) => {
  const world = new AuditWorld();
  const orphan = world.addEni();
  await world.clock.advance(3_600_000);
  const audit = world.audit({ orphanGraceMs: 14 * 60_000 });
  for (let look = 1; look <= 3; look++) await world.look(audit);
  t.true(world.has(orphan));
  await world.look(audit);
  t.false(world.has(orphan));
});

test('Audit: leaves what others made, what is primary, and what is being changed', async (t) => {
  const world = new AuditWorld();
  const instanceId = world.addNode('n1');
  const kept = [
    world.addEni(),
    world.addEni({ tags: { ...OWN_TAGS, 'tke-clusterId': 'cls-other' } }),
    world.addEni({ tags: { 'tke-clusterId': CLUSTER } }),
    world.addEni({ tags: TKE_TAGS }),
    world.addEni({ tags: { ...TKE_TAGS, 'tke-node': 'n1', 'tke-nec-uid': '' } }),
    world.addEni({ tags: {} }),
  ];
  const moving = world.host.model.state.enis.get(kept[0] ?? '');
  if (moving !== undefined) moving.state = 'DELETING';
  const audit = world.audit();
  for (let look = 1; look <= 10; look++) t.like(await world.look(audit), { orphans: [] });
  t.true(kept.every((eniId) => world.has(eniId)));
  t.is(world.host.model.state.enisOf(instanceId).length, 1);
});

test('Audit: an ENI is somebody’s by intent, by name, by instance, and by an object that cannot be read or trusted', async (t) => {
  const world = new AuditWorld();
  const [byIntent, byName] = [world.addEni(), world.addEni({ name: 'tke-cls-test-abc' })];
  const bare = world.addNode('bare');
  world.necs.delete('bare');
  const byInstance = world.addEni({ on: bare });
  world.addNode('n1');
  const intents = [
    intentOf({ action: 'DeleteNetworkInterface', eniID: byIntent }),
    intentOf({ id: 'i2', action: 'CreateNetworkInterface', resourceName: 'tke-cls-test-abc' }),
  ];
  world.setNec('n1', { status: { intents } });
  const tagsOf = (node: string) => ({ ...OWN_TAGS, 'tke-node': node });
  const [byWrong, byText, byRestored] = [
    world.addEni({ tags: tagsOf('wrong') }),
    world.addEni(),
    world.addEni({ tags: tagsOf('restored') }),
  ];
  world.setNec('wrong', { status: { eniInfos: 'nonsense', left: [{ over: byText }] } });
  t.is(world.necs.get('wrong')?.decoded, undefined);
  world.setNec('restored', { spec: { observedSupplyEpoch: 9 }, status: { supplyEpoch: 3 } });
  const audit = world.audit();
  for (let look = 1; look <= 3; look++) t.like(await world.look(audit), { orphans: [] });
  for (const eniId of [byIntent, byName, byInstance, byWrong, byText, byRestored]) t.true(world.has(eniId));
});

test('Audit: an owner that comes at the last moment is heard of, from the cache or from the API server alone', async (t) => {
  const world = new AuditWorld();
  world.addNode('n1');
  const tags = { ...OWN_TAGS, 'tke-node': 'n1' };
  const orphan = world.addEni({ tags });
  const audit = world.audit();
  await world.look(audit);
  const object = world.necs.get('n1')?.object;
  t.truthy(object);
  if (object === undefined) return;
  world.live.set('n1', { ...object, status: statusOf([orphan]) });
  const swept = await world.look(audit);
  t.deepEqual(swept.kind === 'done' ? [...swept.outcomes] : [], [[orphan, { kind: 'spared' }]]);
  t.true(world.has(orphan));
});

test('Audit: keeps an ENI that a VpcENI names which the cache lacks', async (t) => {
  const world = new AuditWorld();
  const tags = { ...OWN_TAGS, 'tke-node': 'n1' };
  const kept = world.addEni({ tags });
  const metadata = { name: kept };
  const vpcEni = {
    apiVersion: 'networking.tke.cloud.tencent.com/v1',
    kind: 'VpcENI',
    metadata,
    status: { eniID: kept },
  };
  const audit = world.audit();
  world.live.set(kept, vpcEni);
  await world.look(audit);
  t.like(await world.look(audit), { orphans: { length: 1 } });
  t.true(world.has(kept));
});

test('Audit: an orphan on a stopped instance that is none of the cluster’s is detached first', async (t) => {
  const world = new AuditWorld();
  world.host.model.state.addInstance({ instanceId: 'ins-foreign0', cores: 2, subnetId: 'subnet-a0000000' });
  world.host.model.state.instance('ins-foreign0').state = 'STOPPED';
  const orphan = world.addEni({ on: 'ins-foreign0' });
  const audit = world.audit();
  await world.look(audit);
  await world.look(audit);
  t.false(world.has(orphan));
  t.is(world.host.counts()['DetachNetworkInterface'], 1);
});

test('Audit: takes nothing off an instance that runs: it may be of a cluster of the same id, or have been forgotten', async (t) => {
  const world = new AuditWorld();
  world.host.model.state.addInstance({ instanceId: 'ins-foreign0', cores: 2, subnetId: 'subnet-a0000000' });
  const orphan = world.addEni({ on: 'ins-foreign0' });
  const audit = world.audit();
  for (let look = 1; look <= 4; look++) await world.look(audit);
  t.true(world.has(orphan));
  t.is(world.host.counts()['DetachNetworkInterface'], undefined);
  t.regex(world.events[0]?.message ?? '', /has no owner: .*ins-foreign0, which is RUNNING/);
});

test('Audit: orphans that have to stay keep no others from being deleted', async (t) => {
  const world = new AuditWorld();
  world.host.model.state.addInstance({ instanceId: 'ins-foreign0', cores: 16, subnetId: 'subnet-a0000000' });
  for (let index = 0; index < 3; index++) world.addEni({ on: 'ins-foreign0' });
  const orphan = world.addEni();
  const audit = world.audit({ orphanLimit: 2 });
  for (let look = 1; look <= 3; look++) await world.look(audit);
  t.false(world.has(orphan));
});

test('Audit: takes nothing off an instance that the cloud does not describe', async (t) => {
  const world = new AuditWorld();
  world.host.model.state.addInstance({ instanceId: 'ins-foreign0', cores: 2, subnetId: 'subnet-a0000000' });
  const orphan = world.addEni({ on: 'ins-foreign0' });
  world.host.faults.add({ fault: { kind: 'error', code: 'UnauthorizedOperation' }, actions: ['DescribeInstances'] });
  const audit = world.audit();
  for (let look = 1; look <= 3; look++) await world.look(audit);
  t.true(world.has(orphan));
  t.is(world.host.counts()['DetachNetworkInterface'], undefined);
});

test('Audit: deletes at most the limit a look, and in a dry run nothing', async (t) => {
  const world = new AuditWorld();
  const orphans = Array.from({ length: 7 }, () => world.addEni());
  const left = (): number => orphans.filter((eniId) => world.has(eniId)).length;
  const dry = world.audit({ orphanDryRun: true });
  await world.look(dry);
  t.like(await world.look(dry), { outcomes: { size: 7 } });
  t.is(left(), 7);
  t.true(world.events.every((event) => event.reason === 'OrphanENI'));
  const audit = world.audit({ orphanLimit: 3 });
  const counts: number[] = [];
  for (let look = 1; look <= 4; look++) {
    await world.look(audit);
    counts.push(left());
  }
  t.deepEqual(counts, [7, 4, 1, 0]);
});

test('Audit: does nothing before caches are synced, nor after a sweep that failed or that ENIs moved under', async (t) => {
  const world = new AuditWorld();
  const orphan = world.addEni();
  const audit = world.audit();
  await world.look(audit);
  world.isSynced = false;
  t.deepEqual(await world.look(audit), { kind: 'skipped', why: 'NotSynced' });
  world.isSynced = true;
  const mend = world.host.faults.add({
    fault: { kind: 'error', code: 'AuthFailure.UnauthorizedOperation' },
    actions: ['DescribeNetworkInterfaces'],
  });
  t.deepEqual(await world.look(audit), { kind: 'skipped', why: 'SweepFailed' });
  mend();
  const enis = { ...world.cloud.enis, sweep: async () => ({ enis: [], isConsistent: false }) };
  const shaky = world.audit({}, { cloud: { ...world.cloud, enis } });
  t.deepEqual(await world.look(shaky), { kind: 'skipped', why: 'SweepInconsistent' });
  t.true(world.has(orphan));
  await world.look(audit);
  t.false(world.has(orphan));
});

test('Audit: stops and raises an alarm when most ENIs seem to be nobody’s', async (t) => {
  const world = new AuditWorld();
  const orphans = Array.from({ length: 11 }, () => world.addEni());
  const audit = world.audit();
  for (let look = 1; look <= 4; look++) t.like(await world.look(audit), { areTooMany: true, outcomes: { size: 0 } });
  t.true(orphans.every((eniId) => world.has(eniId)));
  t.is(world.events[0]?.reason, 'TooManyOrphanENIs');
});

test('Audit: asks a node to describe itself when it differs, but not when its object changed during the sweep', async (t) => {
  const world = new AuditWorld();
  const instanceId = world.addNode('n1');
  world.setNec('n1', { status: { instanceID: instanceId, ...statusOf(['eni-00000gone']) } });
  await world.look(world.audit());
  t.deepEqual(world.suspected, ['n1']);
  const { sweep } = world.cloud.enis;
  const enis = {
    ...world.cloud.enis,
    sweep: async (...args: Parameters<typeof sweep>) => {
      const found = await sweep(...args);
      world.setNec('n1', { status: { instanceID: instanceId, ...statusOf(['eni-00000gone']) } }, '2');
      return found;
    },
  };
  t.like(await world.look(world.audit({}, { cloud: { ...world.cloud, enis } })), { kind: 'done' });
  t.deepEqual(world.suspected, ['n1']);
});

test('Audit: compares an ENI with the node of its VpcENI, else its creator, its instance, its tag', async (t) => {
  const world = new AuditWorld();
  const on = world.addNode('b');
  for (const [name, status] of [
    ['a', {}],
    ['b', { instanceID: on }],
    ['c', { instanceID: 'ins-of-c' }],
  ] as const)
    world.setNec(name, { metadata: { name, uid: `uid-${name}` }, status });
  const tagsOf = (node: string, uid: string) => ({ ...TKE_TAGS, 'tke-node': node, 'tke-nec-uid': uid });
  const expected = new Map([
    [world.addEni({ tags: tagsOf('b', 'uid-b') }), 'a'],
    [world.addEni({ tags: tagsOf('a', 'uid-a'), on }), 'a'],
    [world.addEni({ tags: tagsOf('a', 'uid-of-a-former-a'), on }), 'b'],
    [world.addEni({ tags: tagsOf('a', 'uid-of-a-former-a') }), 'a'],
    [world.addEni({ tags: tagsOf('c', 'uid-c') }), 'c'],
    [world.addEni({ tags: tagsOf('c', 'uid-c'), on }), 'b'],
  ]);
  world.addEni({ tags: tagsOf('gone', 'uid-gone') });
  const [moved] = expected.keys();
  const detached = world.addEni({ tags: tagsOf('a', 'uid-a'), on });
  expected.set(detached, 'b');
  const compared = new Map<string, string>();
  const convertEni: EniSweepDeps['convertEni'] = (eni, nodeName) => {
    compared.set(eni.eniId, nodeName);
    return see(eni);
  };
  const findStatic: EniSweepDeps['findStatic'] = (eniId) =>
    eniId === moved ? { nodeName: 'a' } : eniId === detached ? {} : undefined;
  await world.look(world.audit({}, { convertEni, findStatic }));
  t.deepEqual(new Map([...compared].toSorted()), expected);
});

test('runSweep: sweeps once an interval, and sooner when that came to nothing, until it is aborted', async (t) => {
  const world = new AuditWorld();
  const controller = new AbortController();
  const swept: string[] = [];
  const deps = world.deps();
  let isWanted = true;
  const run = runSweep(sweptEnis(deps), deps, controller.signal, {
    isWanted: () => isWanted,
    onSwept: ({ kind }) => swept.push(kind),
  }).catch((error: unknown) => error);
  await world.clock.advance(11 * 60_000);
  t.deepEqual(swept, ['done', 'done']);
  isWanted = false;
  await world.clock.advance(15 * 60_000);
  t.is(swept.length, 2);
  [isWanted, world.isSynced] = [true, false];
  // After a minute, and then after two.
  await world.clock.advance(9 * 60_000);
  t.deepEqual(swept.slice(2), ['skipped', 'skipped', 'skipped']);
  controller.abort(new Error('the term is over'));
  t.regex(String(await run), /the term is over/);
});
