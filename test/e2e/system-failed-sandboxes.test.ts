import test from 'ava';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import { countAssigned, createSystem, type System } from '../system/system.ts';

const WARM = 5;

let system: System;

test.before(async () => {
  system = await createSystem({
    nodes: [{ name: 'n1' }],
    agentFlags: { 'ip-cooldown': '1h', 'force-reuse-after': '2m', 'add-wait': '2m' },
  });
  await system.awaitNec('n1', 'warm', (nec) => countAssigned(nec) >= WARM);
});
test.after.always(() => system?.close());

test('system: a Pod whose sandboxes fail after our ADD collects no addresses, and each sandbox gets one', async (t) => {
  const node = system.node('n1');
  const lives = await node.runPod('lives');
  const pod = await node.runPod('fails', { failures: 4 * WARM });
  t.not(pod.ip, lives.ip);
  // Two Pods, the warm ones, and perhaps one that was asked for between DEL and the next look.
  const nec = await system.awaitNec('n1', 'what it wants', (one) => countAssigned(one) >= 2 + WARM);
  t.true(countAssigned(nec) <= 3 + WARM, `${countAssigned(nec)} addresses`);
  t.deepEqual(await auditThreeWays(system), []);
});
