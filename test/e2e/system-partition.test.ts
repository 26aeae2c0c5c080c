import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { partOf } from '../support/suite-part.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import type { Cut } from '../system/door.ts';
import { countAssigned, createSystem, type System } from '../system/system.ts';

let system: System;

test.before(async () => {
  system = await createSystem({ nodes: [{ name: 'n1' }, { name: 'n2' }] });
  for (const { name } of system.nodes) await system.awaitNec(name, 'warm', (nec) => countAssigned(nec) >= 5);
  await Promise.all(system.nodes.map((node) => node.awaitReady()));
});
test.after.always(() => system?.close());

const CUTS: readonly Cut[] = ['silent', 'refused'];

for (const cut of partOf(CUTS, (one) => one === 'silent')) {
  test.serial(`an agent without the API server (${cut}) serves ADD and DEL, after its own restart too`, async (t) => {
    const node = system.node('n1');
    const before = await node.runPod(`before-${cut}`);
    // Made while the API server could be reached: their sandboxes come later.
    for (const name of ['one', 'two', 'three']) await system.cluster.addPod(`${name}-${cut}`, 'n1');
    await node.kube.cut(cut);
    const one = await node.runPod(`one-${cut}`, { isOffline: true });
    await node.removePod(before.name, { isOffline: true });
    const two = await node.runPod(`two-${cut}`, { isOffline: true });
    await node.killAgent();
    await node.startAgent('ready');
    const three = await node.runPod(`three-${cut}`, { isOffline: true });
    await node.removePod(two.name, { isOffline: true });
    t.is(new Set([one.ip, three.ip]).size, 2);
    t.true(await one.sandbox.netns.ping(three.ip));
    t.deepEqual(await node.violations(), []);
    await node.kube.heal();
    for (const name of [before.name, two.name]) await system.cluster.removePod(name);
    for (const pod of [one, three]) await system.cluster.setPodRunning(pod.name, pod.ip);
    t.deepEqual(await auditThreeWays(system, { withinMs: 60_000 }), []);
    for (const pod of [one, three]) await node.removePod(pod.name);
    t.deepEqual(await auditThreeWays(system, { withinMs: 60_000 }), []);
  });

  test.serial(
    `a leader without the API server (${cut}) gives up before another leads; nothing is done twice`,
    async (t) => {
      const leader = await system.leader();
      const pods = Array.from({ length: 6 }, (_, index) => `burst-${cut}-${index}`);
      const node = system.node('n2');
      const running = Promise.all(pods.map((name) => node.runPod(name, { waitMs: 60_000 })));
      await sleep(100);
      await leader.kube.cut(cut);
      const next = await system.leader({ not: leader });
      t.not(next.name, leader.name);
      await running;
      await system.awaitNec('n2', 'warm beyond its Pods', (nec) => countAssigned(nec) >= 11);
      t.deepEqual(await auditThreeWays(system), []);
      await leader.kube.heal();
      for (const name of pods) await node.removePod(name);
      t.deepEqual(await auditThreeWays(system, { withinMs: 60_000 }), []);
    },
  );
}
