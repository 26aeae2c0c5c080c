import test from 'ava';
import { RESOURCE_KINDS } from '../../crd/kinds.ts';
import { API_GROUP } from '../../crd/names.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, NODE_ENI_CONFIGS } from '../../kube/resource-types.ts';
import { longTest } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import { assignedIps, countAssigned, createSystem, type SeenNec, type System } from '../system/system.ts';

const WARM = 5;

let system: System;

test.before(async () => {
  system = await createSystem({ nodes: [{ name: 'n1' }, { name: 'n2' }] });
  for (const { name } of system.nodes) await system.awaitNec(name, 'warm', (nec) => countAssigned(nec) >= WARM);
});
test.after.always(() => system?.close());

/** ENIs for Pods with what they have: the cloud's own book. */
function enisOf(): ReadonlyMap<string, { readonly instanceId: string | undefined; readonly ips: ReadonlySet<string> }> {
  const enis = [...system.cloud.host.model.state.enis.values()].filter((eni) => !eni.isPrimary);
  return new Map(
    enis.map((eni) => [eni.eniId, { instanceId: eni.attachment?.instanceId, ips: new Set(eni.ips.keys()) }]),
  );
}

/** The uids of the definitions that stand. */
function uidsOf(): readonly (string | undefined)[] {
  const objects = system.cluster.server.objects('customresourcedefinitions', 'apiextensions.k8s.io');
  return objects.flatMap(({ metadata }) => (metadata.deletionTimestamp === undefined ? [metadata.uid] : []));
}

test.serial(
  'definitions are deleted while Pods run: nothing of a Pod is released, and the nodes serve again',
  async (t) => {
    const { admin } = system.cluster;
    const [n1, n2] = [system.node('n1'), system.node('n2')];
    const first = await n1.runPod('first');
    const other = await n2.runPod('other');
    await system.awaitNec('n1', 'warm again', (nec) => countAssigned(nec) > WARM);
    t.deepEqual(await auditThreeWays(system), []);
    const before = enisOf();
    const uids = uidsOf();
    const necUids = new Map(
      await Promise.all(system.nodes.map(async ({ name }) => [name, (await system.nec(name))?.metadata.uid] as const)),
    );
    const lostMs = performance.now();
    for (const { plural } of RESOURCE_KINDS)
      await admin.delete(CUSTOM_RESOURCE_DEFINITIONS, { name: `${plural}.${API_GROUP}` });

    // The agents serve from their journals, without a NodeENIConfig.
    const during = await n1.runPod('during');
    t.true(await during.sandbox.netns.ping(other.ip));
    await waitUntil(
      async () => {
        const now = uidsOf();
        return now.length === RESOURCE_KINDS.length && now.every((uid) => !uids.includes(uid));
      },
      {
        what: 'definitions that are made again',
        timeoutMs: 40_000,
        everyMs: 100,
        explain: () => system.logs().slice(-3_000),
      },
    );
    t.log(`installed again after ${((performance.now() - lostMs) / 1_000).toFixed(1)} s`);

    const isAnew = (nec: SeenNec) => nec.metadata.uid !== necUids.get(nec.metadata.name) && countAssigned(nec) > 0;
    const again = await system.awaitNec('n1', 'filled from the cloud', isAnew, 120_000);
    await system.awaitNec('n2', 'filled from the cloud', isAnew, 120_000);
    t.log(`filled from the cloud after ${((performance.now() - lostMs) / 1_000).toFixed(1)} s`);
    for (const pod of [first, during]) t.true(assignedIps(again).includes(pod.ip), `${pod.name} ${pod.ip}`);
    const after = enisOf();
    for (const [eniId, { instanceId, ips }] of before) {
      t.is(after.get(eniId)?.instanceId, instanceId, eniId);
      for (const ip of ips) t.true(after.get(eniId)?.ips.has(ip), `${eniId} ${ip}`);
    }
    for (const pod of [first, during]) t.true(await pod.sandbox.netns.ping(other.ip));

    // More than there was: supply goes on.
    const more = await Promise.all(Array.from({ length: 8 }, (_, index) => n1.runPod(`more-${index}`)));
    t.is(new Set([first, during, ...more].map(({ ip }) => ip)).size, 10);
    t.deepEqual(await auditThreeWays(system, { withinMs: 60_000 }), []);
  },
);

longTest.serial('the NodeENIConfig of a live node is deleted: Pods go on, and the node has what it had', async (t) => {
  const [n1, n2] = [system.node('n1'), system.node('n2')];
  const [first, other] = [await n1.runPod('before-deletion'), await n2.runPod('across')];
  t.deepEqual(await auditThreeWays(system, { withinMs: 60_000 }), []);
  const before = enisOf();
  const { uid } = (await system.nec('n1'))?.metadata ?? {};
  const deletedMs = performance.now();
  await system.cluster.admin.delete(NODE_ENI_CONFIGS, { name: 'n1' });
  const during = await n1.runPod('during-deletion');
  t.true(await during.sandbox.netns.ping(other.ip));
  const isAnew = (nec: SeenNec) => nec.metadata.uid !== uid && assignedIps(nec).includes(first.ip);
  await system.awaitNec('n1', 'made again', isAnew, 60_000);
  t.log(`filled from the cloud after ${((performance.now() - deletedMs) / 1_000).toFixed(1)} s`);
  t.true(await first.sandbox.netns.ping(other.ip));
  const more = await Promise.all(Array.from({ length: 6 }, (_, index) => n1.runPod(`after-deletion-${index}`)));
  t.is(new Set([first, during, ...more].map(({ ip }) => ip)).size, 8);
  t.deepEqual(await auditThreeWays(system, { withinMs: 60_000 }), []);
  const after = enisOf();
  for (const [eniId, { instanceId }] of before) t.is(after.get(eniId)?.instanceId, instanceId, eniId);
});
