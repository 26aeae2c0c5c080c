import test from 'ava';
import { NodeWorld } from '../node-world.ts';

const ID = 'ins-aaaa0001';
const SHUTDOWN = 'node.cloudprovider.kubernetes.io/shutdown';
const MINUTE_MS = 60_000;

/** A Node whose instance is known, and another that is ready. */
async function worldOfTwo(...flags: readonly string[]): Promise<NodeWorld> {
  const world = await NodeWorld.start(...flags);
  await world.joinInstance('stays', 'ins-stays001');
  await world.joinInstance('n1', ID);
  await world.advance(6 * MINUTE_MS);
  return world;
}

test('runLifecycleController: deletes a Node whose instance is gone, after two answers apart', async (t) => {
  const world = await worldOfTwo();
  world.scene.host.model.state.removeInstance(ID);
  await world.advance(MINUTE_MS);
  t.deepEqual(world.names(), ['n1', 'stays']);
  await world.setReady('n1', 'Unknown');
  await world.advance(8_000);
  t.deepEqual(world.names(), ['n1', 'stays']);
  await world.advance(20_000);
  t.deepEqual(world.names(), ['stays']);
  t.deepEqual(world.scene.events('DeletingNode'), ['Deleting node n1 because it does not exist in the cloud provider']);
  await world.stop();
});

test('runLifecycleController: a new process deletes too, by what the Node says was seen', async (t) => {
  const world = await worldOfTwo();
  world.scene.host.model.state.removeInstance(ID);
  await world.lead();
  await world.setReady('n1', 'Unknown');
  await world.advance(MINUTE_MS);
  t.deepEqual(world.names(), ['stays']);
  await world.stop();
});

test('runLifecycleController: taints Nodes that are shut down, and removes the taint of a ready one', async (t) => {
  for (const change of [
    { state: 'STOPPED' },
    { state: 'SHUTDOWN' },
    { restrictState: 'EXPIRED' },
    { restrictState: 'PROTECTIVELY_ISOLATED' },
  ]) {
    const world = await worldOfTwo();
    const instance = world.scene.host.model.state.instances.get(ID);
    Object.assign(instance ?? {}, change);
    await world.setReady('n1', 'Unknown');
    await world.advance(MINUTE_MS);
    t.deepEqual(world.node('n1')?.taints, [{ key: SHUTDOWN, effect: 'NoSchedule' }], JSON.stringify(change));
    Object.assign(instance ?? {}, { state: 'RUNNING', restrictState: 'NORMAL' });
    await world.setReady('n1', 'True');
    await world.advance(MINUTE_MS);
    t.deepEqual(world.node('n1')?.taints, []);
    await world.stop();
  }
});

const kept = test.macro(async (t, fault: 'empty' | 'http' | 'stale') => {
  const world = await worldOfTwo();
  const { faults } = world.scene.host;
  const rule = {
    empty: { kind: 'empty' },
    http: { kind: 'http', status: 502 },
    stale: { kind: 'stale', ms: 3_600_000 },
  } as const;
  faults.add({ fault: rule[fault], actions: ['DescribeInstances'] });
  await world.setReady('n1', 'Unknown');
  await world.advance(30 * MINUTE_MS);
  t.deepEqual(world.names(), ['n1', 'stays']);
  t.deepEqual(world.scene.events('DeletingNode'), []);
  t.is(
    world.scene.events('NodeDeletionHeld').some((text) => /no answer of the cloud has any instance/.test(text)),
    fault !== 'http',
  );
  await world.stop();
});
test('runLifecycleController: deletes none while the cloud lists nothing', kept, 'empty');
test('runLifecycleController: deletes none while the cloud fails', kept, 'http');
test('runLifecycleController: deletes none while the cloud answers from before', kept, 'stale');

test('runLifecycleController: a young Node stays although answers lag behind its instance', async (t) => {
  const world = await worldOfTwo();
  await world.joinInstance('young', 'ins-young001');
  await world.advance(2_000);
  t.truthy(world.node('young')?.annotations['tke.cloud.tencent.com/seen-instance']);
  const heal = world.scene.host.faults.add({ fault: { kind: 'stale', ms: 60_000 }, actions: ['DescribeInstances'] });
  await world.setReady('young', 'Unknown');
  await world.advance(90_000);
  heal();
  await world.advance(5 * MINUTE_MS);
  t.deepEqual(world.names(), ['n1', 'stays', 'young']);
  await world.stop();
});

test('runLifecycleController: leaves Nodes of others, and those whose instance was never seen', async (t) => {
  const world = await worldOfTwo();
  const isReady = false;
  const nodes = {
    aws: { providerID: 'aws:///eu-west-1/i-0123' },
    malformed: { providerID: 'qcloud:///100003/ins-' },
    native: { providerID: 'tencentcloud://kn-aaaa0001' },
    'native-cvm': { providerID: 'tencentcloud://ins-none0002' },
    never: { providerID: 'qcloud:///100003/ins-none0003' },
    none: {},
    super: { labels: { 'node.kubernetes.io/instance-type': 'eklet' }, providerID: 'qcloud:///1/ins-none0004' },
    elsewhere: {
      providerID: 'qcloud:///200003/ins-none0005',
      annotations: { 'tke.cloud.tencent.com/seen-instance': 'vpc-other001/ins-none0005' },
    },
  };
  for (const [name, spec] of Object.entries(nodes)) await world.join(name, { ...spec, isReady });
  await world.lead('--vpc-id=vpc-00000001');
  await world.advance(10 * MINUTE_MS);
  t.deepEqual(world.names(), [...Object.keys(nodes), 'n1', 'stays'].sort());
  t.deepEqual(
    world.scene
      .events('NodeDeletionHeld')
      .map((text) => text.slice(text.indexOf(': ') + 2))
      .sort(),
    [
      'its instance was in vpc-other001, the cluster is in vpc-00000001',
      'its instance was never described in this VPC; delete the Node if its instance is gone',
    ],
  );
  await world.stop();
});

test('runLifecycleController: where no instance is left, none is deleted, and the Node says so; one instance more, and it goes', async (t) => {
  const world = await worldOfTwo();
  await world.terminate('stays', 'ins-stays001');
  await world.terminate('n1', ID);
  await world.advance(10 * MINUTE_MS);
  t.deepEqual(world.names(), ['n1', 'stays']);
  t.like(world.scene.events('NodeDeletionHeld'), { length: 2 });
  await world.joinInstance('new', 'ins-new00001');
  await world.advance(MINUTE_MS);
  t.deepEqual(world.names(), ['new']);
  await world.stop();
});

test('runLifecycleController: the brake holds many deletions at once', async (t) => {
  const world = await worldOfTwo();
  const ids = Array.from({ length: 20 }, (_, index) => `ins-many${String(index).padStart(4, '0')}`);
  for (const id of ids) await world.joinInstance(`node-${id}`, id);
  await world.advance(6 * MINUTE_MS);
  for (const id of ids) {
    world.scene.host.model.state.removeInstance(id);
    await world.setReady(`node-${id}`, 'Unknown');
  }
  await world.advance(10 * MINUTE_MS);
  t.is(world.names().length, 22 - 3);
  t.regex(world.scene.events('NodeDeletionHeld')[0] ?? '', /--node-release-percent/);
  await world.advance(60 * MINUTE_MS);
  t.is(world.names().length, 22 - 6);
  await world.stop();
});

test('runLifecycleController: the brake counts what leaders before deleted, one that died included', async (t) => {
  const flags = ['--leader-elect=true', '--leader-elect-lease-duration=15s'];
  const world = await worldOfTwo(...flags);
  const ids = Array.from({ length: 20 }, (_, index) => `ins-many${String(index).padStart(4, '0')}`);
  for (const id of ids) await world.joinInstance(`node-${id}`, id);
  await world.advance(6 * MINUTE_MS);
  for (const id of ids) await world.terminate(`node-${id}`, id);
  for (let leader = 1; leader <= 4; leader++) {
    if (leader === 3) world.lives.begin();
    await world.lead(...flags);
    await world.advance(5 * MINUTE_MS);
    t.is(world.names().length, 22 - 3, `leader ${leader}`);
  }
  await world.advance(60 * MINUTE_MS);
  t.is(world.names().length, 22 - 6);
  await world.lead(...flags);
  await world.advance(10 * MINUTE_MS);
  t.is(world.names().length, 22 - 6);
  t.regex(
    JSON.stringify(world.scene.server.objects('endpoints')),
    /"tke\.cloud\.tencent\.com\/releases":"\{\\"[\d:TZ-]+\\":3\}"/,
  );
  await world.stop();
});

test('runLifecycleController: a Node that is ready again when it is read stays', async (t) => {
  const world = await worldOfTwo();
  world.scene.host.model.state.removeInstance(ID);
  await world.setReady('n1', 'Unknown');
  await world.advance(9_000);
  await world.setReady('n1', 'True');
  await world.advance(5 * MINUTE_MS);
  t.deepEqual(world.names(), ['n1', 'stays']);
  await world.stop();
});
