import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { NODES } from '../../kube/resource-types.ts';
import { longTest } from '../support/suite-part.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import { assignedIps, countAssigned, createSystem, type System } from '../system/system.ts';

let system: System;

test.before(async () => {
  system = await createSystem({ nodes: [{ name: 'n1' }, { name: 'n2' }, { name: 'n3' }], joinsAll: false });
  for (const name of ['n1', 'n2']) {
    await system.join(name);
    await system.awaitNec(name, 'warm', (nec) => countAssigned(nec) >= 5);
    await system.node(name).awaitReady();
  }
});
test.after.always(() => system?.close());

test.serial(
  'etcd goes back to an older state: the cloud is described again, no address is given twice or lost',
  async (t) => {
    const node = system.node('n1');
    const old = await node.runPod('old');
    t.deepEqual(await auditThreeWays(system), []);
    const snapshot = system.cluster.server.store.snapshot();
    const epochBefore = (await system.nec('n1'))?.status?.supplyEpoch ?? 0;
    // What the restored state knows nothing of: more addresses and an ENI, a Pod, a node.
    const names = Array.from({ length: 8 }, (_, index) => `new-${index}`);
    await Promise.all(names.map((name) => node.runPod(name)));
    await system.awaitNec(
      'n1',
      'a second ENI',
      (nec) => countAssigned(nec) >= 14 && nec.status?.eniInfos?.length === 2,
    );
    await system.join('n3');
    await system.awaitNec('n3', 'warm', (nec) => countAssigned(nec) >= 5);
    t.deepEqual(await auditThreeWays(system), []);
    const epochSeen = (await system.nec('n1'))?.spec?.observedSupplyEpoch ?? 0;
    t.true(epochSeen > epochBefore);

    system.cluster.server.restore(snapshot);
    // Kubelets make their Nodes and mirror what runs; people would apply the rest again.
    await system.restoreKubelets();
    const nec = await system.awaitNec(
      'n1',
      'an epoch above all that was seen',
      (one) => (one.status?.supplyEpoch ?? 0) > epochSeen && countAssigned(one) >= 14,
      60_000,
    );
    for (const pod of node.pods) t.true(assignedIps(nec).includes(pod.ip), `${pod.name} ${pod.ip}`);
    await system.awaitNec('n3', 'its addresses', (one) => countAssigned(one) >= 5, 60_000);
    t.deepEqual(await auditThreeWays(system, { withinMs: 60_000 }), []);
    const last = await node.runPod('after');
    t.true(await last.sandbox.netns.ping(old.ip));
    t.deepEqual(await auditThreeWays(system), []);
  },
);

longTest.serial(
  'etcd goes back to a time when addresses were not yet given back: the agent does not use them',
  async (t) => {
    const snapshot = system.cluster.server.store.snapshot();
    await system.cluster.admin.delete(NODES, { name: 'n2' });
    await system.awaitGone('n2');
    t.deepEqual(await auditThreeWays(system), []);
    system.cluster.server.restore(snapshot);
    await sleep(100);
    await system.restoreKubelets();
    await system.awaitNec('n2', 'new addresses', (one) => countAssigned(one) >= 5, 60_000);
    t.deepEqual(await auditThreeWays(system, { withinMs: 60_000 }), []);
    const pod = await system.node('n2').runPod('again');
    t.true(await pod.sandbox.netns.ping(system.node('n1').pods[0]?.ip ?? ''));
    t.deepEqual(await auditThreeWays(system), []);
  },
);
