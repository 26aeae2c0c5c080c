import test from 'ava';
import { NODES } from '../../../kube/resource-types.ts';
import { CidrScene } from './cidr-scene.ts';

// The block of a Node that went while leaders changed: the record alone tells the next leader whose it was.

const MINUTE_MS = 60_000;
const ONE_BLOCK = { clusterCidrs: ['10.4.0.0/24'], serviceCidr: '' };

/** A scene in which a leader gave n1 the first block and n2 the second, recorded it, and has ended. */
async function afterLeader(options: ConstructorParameters<typeof CidrScene>[0] = {}): Promise<CidrScene> {
  const scene = new CidrScene(options);
  const leader = scene.lead();
  for (const name of ['n1', 'n2']) await scene.join(name);
  await scene.clock.advance(5_000);
  leader.stop();
  return scene;
}

/** Sets the machine of n1, as a cloud controller manager does. */
async function nameMachine(scene: CidrScene): Promise<void> {
  const body = { spec: { providerID: 'qcloud:///100003/ins-n1' } };
  await scene.clock.run(scene.kube.patch(NODES, { name: 'n1' }, { kind: 'merge', body }));
  await scene.clock.advance(10_000);
}

/** The same record in a cluster with other blocks, where none of the Nodes is. */
async function withRecordOf(
  former: CidrScene,
  options: ConstructorParameters<typeof CidrScene>[0],
): Promise<CidrScene> {
  const scene = new CidrScene(options);
  await scene.clock.advance(1_000);
  const leader = scene.lead();
  await scene.clock.advance(5_000);
  leader.stop();
  await scene.edit(former.record());
  scene.lead();
  await scene.clock.advance(5_000);
  return scene;
}

test('keepPodCidrs: a Node that goes after its leader ended gets its block from the next', async (t) => {
  const scene = await afterLeader();
  await scene.leave('n1');
  scene.lead();
  await scene.clock.advance(5_000);
  await scene.join('n3');
  await scene.join('n1');
  await scene.clock.advance(5_000);
  t.is(scene.cidrs().get('n1'), '10.4.0.0/24');
  t.is(scene.cidrs().get('n3'), '10.4.2.0/24');
});

test('keepPodCidrs: a Node that registers again between two leaders gets its block', async (t) => {
  const scene = await afterLeader();
  await scene.leave('n1');
  await scene.join('n1');
  scene.lead();
  await scene.clock.advance(5_000);
  t.is(scene.cidrs().get('n1'), '10.4.0.0/24');
});

test('keepPodCidrs: a Node that goes in the moment in which its leader ends gets its block', async (t) => {
  const scene = new CidrScene();
  const leader = scene.lead();
  for (const name of ['n1', 'n2']) await scene.join(name);
  await scene.clock.advance(5_000);
  await scene.join('n3');
  await scene.clock.advance(1_000);
  // The leader sees that it went, and has recorded a moment before.
  await scene.leave('n1');
  await scene.clock.advance(500);
  leader.stop();
  scene.lead();
  await scene.clock.advance(1_000);
  await scene.join('n1');
  await scene.clock.advance(5_000);
  t.is(scene.cidrs().get('n1'), '10.4.0.0/24');
});

test('keepPodCidrs: the next leader repeats a block whose write it cannot see', async (t) => {
  const lateMs = (leader: number, name: string) => (leader === 1 && name === 'n1' ? 40_000 : undefined);
  const scene = new CidrScene({ lateMs });
  const leader = scene.lead();
  await scene.join('n1');
  await scene.clock.advance(1_000);
  leader.stop();
  scene.lead();
  await scene.clock.advance(5_000);
  t.is(scene.cidrs().get('n1'), '10.4.0.0/24');
});

test('keepPodCidrs: a Node of the same name on another machine gets another block, before and after', async (t) => {
  const scene = await afterLeader();
  await scene.leave('n1');
  const next = scene.lead();
  await scene.clock.advance(5_000);
  const other = { providerID: 'qcloud:///100003/ins-other' };
  await scene.join('n1', other);
  await scene.clock.advance(5_000);
  t.is(scene.cidrs().get('n1'), '10.4.2.0/24');
  // Each of the two machines has a block of its own under the name: both are held.
  next.stop();
  await scene.leave('n1');
  scene.lead();
  await scene.clock.advance(5_000);
  await scene.join('n1', other);
  await scene.clock.advance(5_000);
  t.is(scene.cidrs().get('n1'), '10.4.2.0/24');
  await scene.leave('n1');
  await scene.join('n1');
  await scene.clock.advance(5_000);
  t.is(scene.cidrs().get('n1'), '10.4.0.0/24');
});

test('keepPodCidrs: the machine of a Node that registered without one is recorded when it is known', async (t) => {
  const scene = new CidrScene();
  const leader = scene.lead();
  await scene.join('n1', {});
  await scene.clock.advance(5_000);
  await nameMachine(scene);
  leader.stop();
  await scene.leave('n1');
  scene.lead();
  await scene.join('n2');
  await scene.join('n1');
  await scene.clock.advance(5_000);
  t.is(scene.cidrs().get('n1'), '10.4.0.0/24');
});

test('keepPodCidrs: of two blocks that a Node had, it gets the last', async (t) => {
  const scene = await afterLeader();
  const second = scene.lead();
  await scene.leave('n1');
  await scene.clock.advance(5_000);
  // Its machine is known too late for its block: it gets another.
  await scene.join('n1', {});
  await scene.clock.advance(MINUTE_MS);
  await nameMachine(scene);
  t.is(scene.cidrs().get('n1'), '10.4.2.0/24');
  second.stop();
  await scene.leave('n1');
  scene.lead();
  await scene.join('n1');
  await scene.clock.advance(5_000);
  t.is(scene.cidrs().get('n1'), '10.4.2.0/24');
});

test('keepPodCidrs: a former block that another Node has meanwhile stays with that one', async (t) => {
  const scene = await afterLeader();
  await scene.leave('n1');
  await scene.join('n3', { podCIDR: '10.4.0.0/24', podCIDRs: ['10.4.0.0/24'] });
  scene.lead();
  await scene.clock.advance(5_000);
  await scene.join('n1');
  await scene.clock.advance(5_000);
  t.is(scene.cidrs().get('n1'), '10.4.2.0/24');
  t.deepEqual(scene.problems, []);
});

test('keepPodCidrs: the block of a Node that does not come back is free when its hold is over', async (t) => {
  const scene = await afterLeader();
  await scene.leave('n1');
  scene.lead();
  await scene.clock.advance(9 * MINUTE_MS);
  t.is(scene.counts?.held, 1);
  await scene.clock.advance(2 * MINUTE_MS);
  t.is(scene.counts?.held, 0);
  t.is(scene.record()['owners'], '[[1,"n2","qcloud:///100003/ins-n2"]]');
});

test('keepPodCidrs: a refusal frees no block of which an earlier write may still land', async (t) => {
  let writes = 0;
  const lateMs = (_leader: number, name: string) => (name === 'n1' && writes++ === 0 ? 40_000 : undefined);
  const scene = new CidrScene({ ...ONE_BLOCK, lateMs });
  scene.lead();
  await scene.join('n1');
  await scene.clock.advance(4_000);
  const action = { kind: 'status', code: 403 } as const;
  scene.server.api.faults.add({ verbs: ['patch'], resources: ['nodes'], name: 'n1', action, times: 5 });
  await scene.join('n2');
  await scene.clock.advance(5 * MINUTE_MS);
  t.deepEqual(Object.fromEntries(scene.cidrs()), { n1: '10.4.0.0/24', n2: '' });
});

test('keepPodCidrs: a former block that is refused is not tried again and again', async (t) => {
  const scene = await afterLeader();
  await scene.leave('n1');
  scene.lead();
  await scene.clock.advance(5_000);
  const action = { kind: 'status', code: 403 } as const;
  scene.server.api.faults.add({ verbs: ['patch'], resources: ['nodes'], name: 'n1', action, times: 3 });
  await scene.join('n1');
  await scene.clock.advance(MINUTE_MS);
  t.is(scene.cidrs().get('n1'), '10.4.2.0/24');
});

test('keepPodCidrs: a block is recorded as that of its new owner before it is given', async (t) => {
  const scene = new CidrScene(ONE_BLOCK);
  const leader = scene.lead();
  await scene.join('n1');
  await scene.clock.advance(5_000);
  await scene.leave('n1');
  await scene.join('n2');
  await scene.clock.advance(10 * MINUTE_MS - 5_000);
  // Nodes that wait make rounds, and records that are not due.
  for (let at = 3; (scene.cidrs().get('n2') ?? '') === '' && at < 40; at++) {
    await scene.join(`n${at}`);
    await scene.clock.advance(300);
  }
  t.is(scene.cidrs().get('n2'), '10.4.0.0/24');
  t.is(scene.record()['owners'], '[[0,"n2","qcloud:///100003/ins-n2"]]');
  leader.stop();
  await scene.leave('n2');
  scene.lead();
  await scene.clock.advance(1_000);
  await scene.join('n1');
  await scene.clock.advance(MINUTE_MS);
  t.is(scene.cidrs().get('n1'), '', 'n2 had it a moment ago');
});

test('keepPodCidrs: smaller blocks than before: a Node gets a part of its own', async (t) => {
  const scene = await withRecordOf(await afterLeader(), { maskSize: 26 });
  await scene.join('n2');
  await scene.join('n3');
  await scene.join('n1');
  await scene.clock.advance(5_000);
  t.is(scene.cidrs().get('n1'), '10.4.0.0/26');
  t.is(scene.cidrs().get('n2'), '10.4.1.0/26');
  t.is(scene.cidrs().get('n3'), '10.4.2.0/26');
});

test('keepPodCidrs: a former block that Services or a subnet have now is given to nobody', async (t) => {
  const options = { serviceCidr: '10.4.0.0/24', vpcCidrs: () => ['10.4.1.0/24'] };
  const scene = await withRecordOf(await afterLeader(), options);
  for (const name of ['n1', 'n2']) await scene.join(name);
  await scene.clock.advance(5_000);
  t.deepEqual(Object.fromEntries(scene.cidrs()), { n1: '10.4.2.0/24', n2: '10.4.3.0/24' });
});

test('keepPodCidrs: larger blocks than before: none goes to one of those that had a part of it', async (t) => {
  const former = await afterLeader();
  await former.leave('n1');
  const next = former.lead();
  await former.clock.advance(10_000);
  next.stop();
  t.regex(former.record()['held'] ?? '', /"node":"n1"/);
  const scene = await withRecordOf(former, { maskSize: 23 });
  for (const name of ['n2', 'n1']) await scene.join(name);
  await scene.clock.advance(5_000);
  t.deepEqual([...scene.cidrs().values()].toSorted(), ['10.4.2.0/23', '10.4.4.0/23']);
});

test('keepPodCidrs: a record without owners, as releases before wrote it, holds blocks as ever', async (t) => {
  const scene = await afterLeader(ONE_BLOCK);
  await scene.edit({ owners: '' });
  await scene.leave('n1');
  await scene.leave('n2');
  scene.lead();
  await scene.join('n3');
  await scene.clock.advance(9 * MINUTE_MS);
  t.is(scene.cidrs().get('n3'), '');
  await scene.clock.advance(2 * MINUTE_MS);
  t.is(scene.cidrs().get('n3'), '10.4.0.0/24');
});
