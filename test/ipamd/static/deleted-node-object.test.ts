import test from 'ava';
import { NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import { DirectCluster } from '../exclusive/exclusive-cluster.ts';
import { StaticCluster } from './static-cluster.ts';

test('NodeENIConfig of a live node is deleted: its kept address stays with its Pod and its name', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 3 });
  await cluster.startIpamd();
  const first = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const ip = cluster.ipOf(first) ?? 'none';
  for (const waitMs of [0, 700, 30_000]) {
    await cluster.run(cluster.scene.kube.delete(NODE_ENI_CONFIGS, { name: 'a' }));
    await cluster.pass(waitMs);
    t.is(cluster.ipOf(first), ip);
    t.deepEqual(cluster.broken(), []);
  }
  await cluster.pass(120_000);
  t.is(cluster.phase('web-0'), 'Bound');
  await cluster.deletePod('web-0');
  const second = await cluster.createPod('web-0', 'b');
  await cluster.until(() => cluster.ipOf(second) !== undefined, 'not moved');
  t.is(cluster.ipOf(second), ip);
  t.deepEqual(cluster.broken(), []);
  await cluster.stopIpamd();
});

test('NodeENIConfig of a live node is deleted, and the leader dies before the next object is filled: nothing is given back', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 3 });
  await cluster.startIpamd();
  const uid = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const ip = cluster.ipOf(uid) ?? 'none';
  const enisOf = (node: string) => (cluster.statusOf(node).eniInfos ?? []).map(({ eniID }) => eniID).sort();
  const before = enisOf('a');
  const objectUid = () =>
    cluster.objects(NODE_ENI_CONFIGS.plural).find(({ metadata }) => metadata.name === 'a')?.metadata.uid;
  for (const afterMs of [0, 20, 60, 150, 400, 1_000, 3_000]) {
    const old = objectUid();
    await cluster.run(cluster.scene.kube.delete(NODE_ENI_CONFIGS, { name: 'a' }));
    await cluster.pass(afterMs);
    await cluster.killIpamd();
    await cluster.until(() => objectUid() !== undefined && objectUid() !== old, 'no next object');
    await cluster.pass(120_000);
    t.deepEqual(enisOf('a'), before, `${afterMs} ms`);
    t.is(cluster.ipOf(uid), ip);
    t.is(cluster.phase('web-0'), 'Bound');
    t.deepEqual(cluster.broken(), []);
  }
  await cluster.stopIpamd();
});

test('NodeENIConfig of a live node is deleted: its exclusive ENIs stay, and the kept one with its name', async (t) => {
  const cluster = await DirectCluster.make({ a: 3 });
  await cluster.startIpamd();
  const kept = await cluster.createKept('web-0', 'a');
  await cluster.until(() => cluster.sandboxes.has(kept) && cluster.direct('a').length === 2, 'an ENI, and a spare one');
  const { eniId = '' } = cluster.sandboxes.get(kept) ?? {};
  const enis = cluster.cloudEnis();
  await cluster.run(cluster.scene.kube.delete(NODE_ENI_CONFIGS, { name: 'a' }));
  await cluster.pass(120_000);
  t.deepEqual([...cluster.cloudEnis()].sort(), [...enis].sort());
  t.is(cluster.direct('a').find(({ eniID }) => eniID === eniId)?.claim?.name, 'web-0');
  const other = await cluster.createPod('other', 'a');
  await cluster.until(() => cluster.sandboxes.has(other), 'the spare one serves');
  t.not(cluster.sandboxes.get(other)?.eniId, eniId);
  await cluster.deletePod('web-0');
  const next = await cluster.createKept('web-0', 'a');
  await cluster.until(() => cluster.sandboxes.has(next), 'the next Pod');
  t.is(cluster.sandboxes.get(next)?.eniId, eniId);
  await cluster.stopIpamd();
});
