import test from 'ava';
import { waitUntil } from '../support/wait-until.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import { countAssigned, createSystem, type System } from '../system/system.ts';

let system: System;

test.before(async () => {
  system = await createSystem({ nodes: [{ name: 'n1' }, { name: 'n2' }] });
});
test.after.always(() => system?.close());

test.serial("a node that joins gets an ENI and its warm addresses without anybody's hand", async (t) => {
  for (const { name } of system.nodes) {
    const nec = await system.awaitNec(name, 'five warm addresses', (one) => countAssigned(one) >= 5);
    t.is(nec.status?.eniInfos?.length, 1);
    t.is(nec.status?.instanceID, system.cloud.instanceOf(name));
    await system.node(name).awaitReady();
  }
  t.deepEqual(await auditThreeWays(system), []);
});

test.serial('a Pod gets an address of the VPC, and Pods of two nodes reach each other', async (t) => {
  const [one, two] = [await system.node('n1').runPod('p1'), await system.node('n2').runPod('p2')];
  t.true(await one.sandbox.netns.ping(two.ip));
  t.true(await two.sandbox.netns.ping(one.ip));
  t.deepEqual(await auditThreeWays(system), []);
});

test.serial('demand grows with the Pods, up to more ENIs, and every Pod is reached', async (t) => {
  const node = system.node('n1');
  const names = Array.from({ length: 11 }, (_, index) => `more-${index}`);
  const pods = await Promise.all(names.map((name) => node.runPod(name)));
  t.is(new Set(pods.map((pod) => pod.ip)).size, pods.length);
  const other = system.node('n2').pods[0];
  for (const pod of pods) t.true(await pod.sandbox.netns.ping(other?.ip ?? ''), `${pod.name} ${pod.ip}`);
  // 12 Pods and 5 warm: more than the nine that one ENI of a small instance holds.
  const nec = await system.awaitNec('n1', '17 addresses', (one) => countAssigned(one) >= 17);
  t.is(nec.status?.eniInfos?.length, 2);
  t.deepEqual(await auditThreeWays(system), []);
});

test.serial('Pods that go leave their records and addresses behind nobody', async (t) => {
  const node = system.node('n1');
  await Promise.all(node.pods.map((pod) => node.removePod(pod.name)));
  t.deepEqual(await auditThreeWays(system), []);
  await waitUntil(async () => (await node.scene.hostVeths()).length === 0, { what: 'no host veths' });
});
