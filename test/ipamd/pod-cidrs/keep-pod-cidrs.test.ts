import test, { type ExecutionContext } from 'ava';
import type { FaultRule } from '../../../sim/kube-api/faults.ts';
import { CidrScene } from './cidr-scene.ts';

const MINUTE_MS = 60_000;

test('keepPodCidrs: gives each Node a block, in order, and records it before', async (t) => {
  const scene = new CidrScene();
  const leader = scene.lead();
  for (const name of ['n1', 'n2', 'n3']) await scene.join(name);
  await scene.join('super', {});
  await scene.clock.advance(5_000);
  t.deepEqual(
    [...scene.cidrs()],
    [
      ['n1', '10.4.0.0/24'],
      ['n2', '10.4.1.0/24'],
      ['n3', '10.4.2.0/24'],
      ['super', '10.4.3.0/24'],
    ],
  );
  await scene.clock.advance(5_000);
  t.is(scene.record()['taken'], '0-3');
  t.is(scene.record()['next'], '4');
  t.deepEqual(scene.counts, { reserved: 4, used: 4, held: 0, free: 8 });
  leader.stop();
  await scene.clock.run(leader.ended);
});

test('keepPodCidrs: goes on after the block of the youngest Node where there is no record', async (t) => {
  const scene = new CidrScene();
  await scene.join('old', { podCIDR: '10.4.5.0/24', podCIDRs: ['10.4.5.0/24'] });
  scene.lead();
  await scene.join('new');
  await scene.clock.advance(5_000);
  t.is(scene.cidrs().get('new'), '10.4.6.0/24');
});

test('keepPodCidrs: respects a foreign podCIDR outside of the range, with a warning and nothing more', async (t) => {
  const scene = new CidrScene();
  await scene.join('odd', { podCIDR: '172.16.0.0/24', podCIDRs: ['172.16.0.0/24'] });
  const leader = scene.lead();
  await scene.join('n1');
  await scene.clock.advance(5_000);
  t.is(scene.cidrs().get('n1'), '10.4.0.0/24');
  t.deepEqual(scene.problems, [{ kind: 'CIDROutOfRange', name: 'odd' }]);
  t.regex(scene.events.join('\n'), /^CIDROutOfRange Node\/odd: podCIDR 172.16.0.0\/24 is not within --cluster-cidr/);
  t.is(leader.allocator.found, undefined);
});

test('keepPodCidrs: never gives a block that overlaps a subnet of the VPC', async (t) => {
  const scene = new CidrScene({ vpcCidrs: () => ['10.4.0.0/23', '10.0.0.0/24'] });
  scene.lead();
  await scene.join('n1');
  await scene.clock.advance(MINUTE_MS);
  t.is(scene.cidrs().get('n1'), '10.4.2.0/24');
  t.is(scene.events.length, 1);
  t.regex(
    scene.events[0] ?? '',
    /^CIDROverlap ConfigMap\/tke-eni-ipamd: .* overlaps subnets of the VPC: 10.4.0.0\/23; no node/,
  );
});

test('keepPodCidrs: says once that no block is left, and gives the one that is freed when its hold is over', async (t) => {
  const scene = new CidrScene({ clusterCidrs: ['10.4.0.0/23'], serviceCidr: '' });
  scene.lead();
  for (const name of ['n1', 'n2', 'n3']) await scene.join(name);
  await scene.clock.advance(MINUTE_MS);
  t.is(scene.cidrs().get('n3'), '');
  t.deepEqual(scene.problems, [{ kind: 'CIDRNotAvailable', name: 'n3' }]);
  t.is(scene.events.length, 1);
  t.regex(scene.events[0] ?? '', /^CIDRNotAvailable Node\/n3: no block of 10.4.0.0\/23 is free .*0 free; none is held/);
  await scene.leave('n1');
  await scene.clock.advance(9 * MINUTE_MS);
  t.is(scene.cidrs().get('n3'), '');
  t.regex(scene.events[1] ?? '', /1 blocks are held/);
  await scene.clock.advance(2 * MINUTE_MS);
  t.is(scene.cidrs().get('n3'), '10.4.0.0/24');
  t.deepEqual(scene.problems, []);
});

test('keepPodCidrs: a node that registers again gets its block, from the next leader too', async (t) => {
  const scene = new CidrScene();
  const first = scene.lead();
  for (const name of ['n1', 'n2']) await scene.join(name);
  await scene.clock.advance(5_000);
  await scene.leave('n1');
  await scene.clock.advance(10_000);
  first.stop();
  scene.lead();
  await scene.clock.advance(5_000);
  await scene.join('n1');
  await scene.join('n3');
  await scene.clock.advance(5_000);
  t.is(scene.cidrs().get('n1'), '10.4.0.0/24');
  t.is(scene.cidrs().get('n3'), '10.4.2.0/24');
});

test('keepPodCidrs: a block whose Node went while no ipamd ran is held', async (t) => {
  const scene = new CidrScene({ clusterCidrs: ['10.4.0.0/24'], serviceCidr: '' });
  const first = scene.lead();
  await scene.join('n1');
  await scene.clock.advance(5_000);
  first.stop();
  await scene.leave('n1');
  await scene.join('n2');
  scene.lead();
  await scene.clock.advance(9 * MINUTE_MS);
  t.is(scene.cidrs().get('n2'), '');
  await scene.clock.advance(2 * MINUTE_MS);
  t.is(scene.cidrs().get('n2'), '10.4.0.0/24');
});

async function stops(t: ExecutionContext, race: (scene: CidrScene) => Promise<void>, name: string): Promise<void> {
  const scene = new CidrScene();
  const leader = scene.lead();
  await scene.join('n1');
  await scene.clock.advance(5_000);
  await race(scene);
  await scene.clock.advance(5_000);
  t.is(leader.allocator.found?.node, name);
  await scene.join('later');
  await scene.clock.advance(MINUTE_MS);
  t.is(scene.cidrs().get('later'), '');
  t.regex(scene.record()['stopped'] ?? '', /--allocate-node-cidrs=false/);
  t.deepEqual(scene.problems, [{ kind: 'CIDRAllocatorConflict', name }]);
  const told = scene.events.map((event) => event.split(':')[0]);
  t.deepEqual(told.toSorted(), ['CIDRAllocatorConflict ConfigMap/tke-eni-ipamd', `CIDRAllocatorConflict Node/${name}`]);
  // A leader that starts again allocates until it finds a sign of its own.
  leader.stop();
  const next = scene.lead();
  await scene.clock.advance(MINUTE_MS);
  t.is(next.allocator.found, undefined);
  t.not(scene.cidrs().get('later'), '');
}

test('keepPodCidrs: stops when a new Node has a podCIDR of another allocator from its first moment', async (t) => {
  const race = (scene: CidrScene) => scene.join('k1', { podCIDR: '10.4.7.0/24', podCIDRs: ['10.4.7.0/24'] });
  await stops(t, race, 'k1');
});

test('keepPodCidrs: stops when another allocator was faster by a moment', async (t) => {
  const race = async (scene: CidrScene): Promise<void> => {
    await scene.join('k2');
    t.true(await scene.give('k2', '10.4.7.0/24'));
  };
  await stops(t, race, 'k2');
});

test('keepPodCidrs: does not stop for a Node that a person gave a podCIDR long after it registered', async (t) => {
  const scene = new CidrScene({ clusterCidrs: ['10.4.0.0/24'], serviceCidr: '' });
  const leader = scene.lead();
  for (const name of ['n1', 'n2']) await scene.join(name);
  await scene.clock.advance(2 * MINUTE_MS);
  t.true(await scene.give('n2', '10.9.0.0/24'));
  await scene.clock.advance(MINUTE_MS);
  t.is(leader.allocator.found, undefined);
});

test('keepPodCidrs: two leaders at once give no block twice, and end up with one record', async (t) => {
  const scene = new CidrScene();
  const leaders = [scene.lead(), scene.lead()];
  for (let at = 0; at < 8; at++) await scene.join(`n${at}`);
  await scene.clock.advance(MINUTE_MS);
  const given = [...scene.cidrs().values()];
  t.is(new Set(given).size, 8);
  t.false(given.includes(''));
  for (const { allocator } of leaders) t.is(allocator.found, undefined);
});

const survives = test.macro(async (t, rule: Omit<FaultRule, 'userAgent'>) => {
  const scene = new CidrScene();
  scene.lead();
  await scene.clock.advance(2_000);
  scene.server.api.faults.add({ ...rule, userAgent: 'ipamd-1' });
  for (const name of ['n1', 'n2']) await scene.join(name);
  await scene.clock.advance(3 * MINUTE_MS);
  scene.server.api.faults.clear();
  await scene.clock.advance(3 * MINUTE_MS);
  const given = [...scene.cidrs().values()];
  t.false(given.includes(''), given.join());
  t.is(new Set(given).size, 2);
  t.deepEqual(scene.problems, []);
});
const NODE_WRITES = { verbs: ['patch'], resources: ['nodes'] };
test('keepPodCidrs: a lost answer of a write', survives, { ...NODE_WRITES, action: { kind: 'drop-after' }, times: 1 });
test('keepPodCidrs: answers that never come', survives, { ...NODE_WRITES, action: { kind: 'hang' }, times: 4 });
test('keepPodCidrs: errors of the server', survives, { ...NODE_WRITES, action: { kind: 'status', code: 500 } });
test('keepPodCidrs: a right that lacks', survives, { ...NODE_WRITES, action: { kind: 'status', code: 403 } });
test('keepPodCidrs: a cache that is behind', survives, {
  verbs: ['watch'],
  action: { kind: 'watch-delay', ms: 20_000 },
});
test('keepPodCidrs: a record that cannot be written', survives, {
  verbs: ['create', 'update'],
  resources: ['configmaps'],
  action: { kind: 'status', code: 500 },
});
test('keepPodCidrs: a lost answer of the record', survives, {
  verbs: ['create', 'update'],
  resources: ['configmaps'],
  action: { kind: 'drop-after' },
  times: 2,
});

test('keepPodCidrs: a fault of ipamd in a write ends it with that fault', async (t) => {
  const fault = new TypeError('a fault of ipamd');
  const scene = new CidrScene({
    lateMs: (_leader, name) => {
      if (name === 'n1') throw fault;
      return undefined;
    },
  });
  const ended = t.throwsAsync(scene.lead().ended, { is: fault });
  await scene.join('n1');
  await scene.clock.advance(20_000);
  await ended;
});

test('keepPodCidrs: says on the Node that its podCIDR could not be written', async (t) => {
  const scene = new CidrScene();
  scene.lead();
  await scene.clock.advance(2_000);
  scene.server.api.faults.add({ ...NODE_WRITES, userAgent: 'ipamd-1', action: { kind: 'status', code: 403 } });
  await scene.join('n1');
  await scene.clock.advance(MINUTE_MS);
  t.deepEqual(scene.problems, [{ kind: 'CIDRAssignmentFailed', name: 'n1' }]);
  t.regex(
    scene.events[0] ?? '',
    /^CIDRAssignmentFailed Node\/n1: podCIDR 10.4.0.0\/24 could not be written: .*nodes\/n1/,
  );
  // The block went back each time.
  t.is(scene.counts?.used, 0);
});

test('keepPodCidrs: repairs a record that a person broke, and one that was deleted', async (t) => {
  const scene = new CidrScene();
  scene.lead();
  await scene.join('n1');
  await scene.clock.advance(5_000);
  await scene.edit({ taken: 'all' });
  await scene.join('n2');
  await scene.clock.advance(10_000);
  t.is(scene.record()['taken'], '0-1');
  await scene.edit(undefined);
  await scene.join('n3');
  await scene.clock.advance(10_000);
  t.is(scene.record()['taken'], '0-2');
  t.is(scene.cidrs().get('n3'), '10.4.2.0/24');
});

test('keepPodCidrs: finds the blocks of a record of another mask', async (t) => {
  const first = new CidrScene();
  const leader = first.lead();
  await first.join('n1');
  await first.clock.advance(5_000);
  leader.stop();
  await first.leave('n1');
  const { taken = '', settings = '', blocks = '', held = '', next = '' } = first.record();
  t.is(taken, '0');
  const scene = new CidrScene({ maskSize: 26 });
  scene.lead();
  await scene.clock.advance(5_000);
  await scene.edit({ term: '7', taken, settings, blocks, held, next });
  scene.lead();
  await scene.clock.advance(20_000);
  await scene.join('n2');
  await scene.clock.advance(20_000);
  // The first four blocks of 64 addresses were one of 256.
  t.is(scene.cidrs().get('n2'), '10.4.1.0/26');
});

const REFUSED = { kind: 'status', code: 403 } as const;
const ONE_BLOCK = { clusterCidrs: ['10.4.0.0/24'], serviceCidr: '' };

test('keepPodCidrs: the block of a leader that died right after its write is known to the next', async (t) => {
  const scene = new CidrScene();
  const first = scene.lead();
  await scene.clock.advance(1_000);
  await scene.join('n1');
  while ((scene.cidrs().get('n1') ?? '') === '') await scene.clock.advance(1);
  first.stop();
  await scene.leave('n1');
  await scene.join('n2');
  scene.lead();
  await scene.clock.advance(MINUTE_MS);
  t.is(scene.cidrs().get('n2'), '10.4.1.0/24');
});

test('keepPodCidrs: a former leader that goes on, with an old cache, gives no block of the next', async (t) => {
  const scene = new CidrScene();
  const { faults } = scene.server.api;
  scene.lead();
  await scene.clock.advance(1_000);
  faults.add({ ...NODE_WRITES, name: 'n1', userAgent: 'ipamd-1', action: REFUSED, times: 3 });
  faults.add({ ...NODE_WRITES, name: 'n1', userAgent: 'ipamd-2', action: REFUSED });
  await scene.join('n1');
  await scene.clock.advance(1_000);
  faults.add({ verbs: ['watch'], userAgent: 'ipamd-1', action: { kind: 'watch-delay', ms: MINUTE_MS } });
  scene.server.cutWatches('ipamd-1');
  scene.lead();
  await scene.clock.advance(1_000);
  await scene.join('n2');
  await scene.clock.advance(2 * MINUTE_MS);
  const given = [...scene.cidrs().values()];
  t.is(new Set(given).size, 2, given.join());
  t.false(given.includes(''));
});

test('keepPodCidrs: a write of a former leader that lands late meets no other owner', async (t) => {
  const routes = () => ({ readMs: scene.clock.monotonicMs(), hasRoute: () => false });
  const lateMs = (leader: number, name: string) => (leader === 1 && name === 'n1' ? 40_000 : undefined);
  const scene = new CidrScene({ ...ONE_BLOCK, routes, lateMs });
  scene.server.api.faults.add({ ...NODE_WRITES, name: 'n1', userAgent: 'ipamd-2', action: REFUSED });
  const first = scene.lead();
  await scene.join('n1');
  await scene.clock.advance(1_000);
  first.stop();
  scene.lead();
  await scene.join('n2');
  await scene.clock.advance(5 * MINUTE_MS);
  t.deepEqual(
    [...scene.cidrs()],
    [
      ['n1', '10.4.0.0/24'],
      ['n2', ''],
    ],
  );
});

test('keepPodCidrs: a block whose write may still land is given to no other Node', async (t) => {
  const scene = new CidrScene({ ...ONE_BLOCK, lateMs: (_leader, name) => (name === 'n1' ? 40_000 : undefined) });
  scene.lead();
  await scene.join('n1');
  await scene.join('n2');
  await scene.clock.advance(5 * MINUTE_MS);
  t.deepEqual(
    [...scene.cidrs()],
    [
      ['n1', '10.4.0.0/24'],
      ['n2', ''],
    ],
  );
});

test('keepPodCidrs: the block of a Node that went before its podCIDR was visible is held', async (t) => {
  const scene = new CidrScene(ONE_BLOCK);
  const { faults } = scene.server.api;
  scene.lead();
  await scene.clock.advance(1_000);
  faults.add({ ...NODE_WRITES, name: 'n1', userAgent: 'ipamd-1', action: REFUSED, times: 3 });
  await scene.join('n1');
  await scene.clock.advance(1_000);
  const heal = faults.add({ verbs: ['watch'], userAgent: 'ipamd-1', action: { kind: 'watch-delay', ms: MINUTE_MS } });
  scene.server.cutWatches('ipamd-1');
  while ((scene.cidrs().get('n1') ?? '') === '') await scene.clock.advance(10);
  await scene.leave('n1');
  await scene.join('n2');
  heal();
  scene.server.cutWatches('ipamd-1');
  await scene.clock.advance(5 * MINUTE_MS);
  t.is(scene.cidrs().get('n2'), '');
  await scene.clock.advance(6 * MINUTE_MS);
  t.is(scene.cidrs().get('n2'), '10.4.0.0/24');
});
