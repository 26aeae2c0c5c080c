import test from 'ava';
import { NODE_ENI_CONFIGS } from '../../../../kube/resource-types.ts';
import { DirectCluster } from '../../exclusive/exclusive-cluster.ts';

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
