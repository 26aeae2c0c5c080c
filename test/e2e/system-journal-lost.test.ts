import { rmSync } from 'node:fs';
import test from 'ava';
import { waitUntil } from '../support/wait-until.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import { countAssigned, createSystem, type System } from '../system/system.ts';

let system: System;

test.before(async () => {
  system = await createSystem({ nodes: [{ name: 'n1' }] });
});
test.after.always(() => system?.close());

test.serial(
  'an agent whose journal is lost takes over its Pods, and the offers that it had made come to nothing',
  async (t) => {
    const node = system.node('n1');
    await system.awaitNec('n1', 'five warm addresses', (one) => countAssigned(one) >= 5);
    await node.awaitReady();
    const pod = await node.runPod('p1');
    const life = (await system.nec('n1'))?.metadata.annotations?.['tke.cloud.tencent.com/agent-life'];
    t.truthy(life);
    await node.killAgent();
    rmSync(`${node.scene.agent.stateDir}/journal.db`);
    rmSync(`${node.scene.agent.stateDir}/journal.db-journal`);
    await node.startAgent('ready');
    await system.awaitNec('n1', 'another life', (one) => {
      const now = one.metadata.annotations?.['tke.cloud.tencent.com/agent-life'];
      return now !== undefined && now !== life;
    });
    const other = await node.runPod('p2');
    t.not(other.ip, pod.ip);
    t.true(await pod.sandbox.netns.ping(other.ip));
    t.deepEqual(await auditThreeWays(system), []);
  },
);

test.serial(
  'an agent that is killed while it waits to take over its Pods takes them over at its next start',
  async (t) => {
    const node = system.node('n1');
    const pod = await node.runPod('p3');
    await node.killAgent();
    rmSync(`${node.scene.agent.stateDir}/journal.db`);
    rmSync(`${node.scene.agent.stateDir}/journal.db-journal`);
    // Nobody can say which ENI an address is of, so it waits; and is killed, as a probe or a person does.
    await node.kube.cut('refused');
    await node.startAgent('started');
    await waitUntil(() => node.logs().includes('no journal of this boot'), { what: 'the agent waits for supply' });
    await node.killAgent();
    await node.kube.heal();
    await node.startAgent('ready');
    const others = [await node.runPod('p4'), await node.runPod('p5'), await node.runPod('p6')];
    t.false(others.some(({ ip }) => ip === pod.ip));
    t.true(await pod.sandbox.netns.ping(others[0]?.ip ?? ''));
    t.deepEqual(await auditThreeWays(system), []);
  },
);
