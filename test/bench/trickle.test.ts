import test from 'ava';
import { measureTrickle } from '../../bench/ipamd/trickle.ts';

const SPEC = { nodes: 20, podsPerNode: 30 } as const;

test('trickle: Pods that come every two seconds cost few calls and less than a write each, and none waits', async (t) => {
  const before = await measureTrickle({ ...SPEC, everyMs: 2_000, gatherMs: 0 });
  const after = await measureTrickle({ ...SPEC, everyMs: 2_000 });
  t.deepEqual([before.leaks, after.leaks], [[], []]);
  t.deepEqual([before.waited, after.waited], [0, 0]);
  t.true(before.assignsPerPod > 0.75, `${before.assignsPerPod} assignments before`);
  t.true(after.assignsPerPod <= 0.3, `${after.assignsPerPod} assignments`);
  // A node with 19 addresses on its only ENI gets a second one: it is created and attached.
  t.true(after.changesPerPod <= 0.3 + 2 / SPEC.podsPerNode, `${after.changesPerPod} calls that change something`);
  t.true(before.ipamdWritesPerPod + before.agentWritesPerPod > 2.5);
  t.true(after.ipamdWritesPerPod + after.agentWritesPerPod <= 1, JSON.stringify(after));
});
