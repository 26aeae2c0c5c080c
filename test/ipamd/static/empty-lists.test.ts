import test from 'ava';
import { StaticCluster } from './static-cluster.ts';

/** Makes lists of a resource empty for ipamd, and breaks its watches, so that it lists again. */
function hide({ scene }: StaticCluster, ...resources: readonly string[]): () => void {
  const action = { kind: 'empty-list' } as const;
  const heal = scene.server.api.faults.add({ resources, userAgent: 'ipamd-*', action });
  scene.server.cutWatches();
  return () => {
    heal();
    scene.server.cutWatches();
  };
}

test('startIpamd: keeps the address of a Pod that lists lack for longer than its claim would wait', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 3 }, ['--claim-expired-duration=5m']);
  await cluster.startIpamd();
  const uid = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const ip = cluster.ipOf(uid);
  const heal = hide(cluster, 'pods');
  await cluster.pass(20 * 60_000);
  t.truthy(cluster.claim('web-0'));
  t.is(cluster.claim('web-0')?.metadata.deletionTimestamp, undefined);
  t.is(cluster.ipOf(uid), ip);
  heal();
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'not bound again');
  t.truthy(cluster.vip(ip ?? ''));
  await cluster.stopIpamd();
});

test('startIpamd: keeps an address whose claim and VpcIP lists lack', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 3 });
  await cluster.startIpamd();
  const first = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const ip = cluster.ipOf(first) ?? '';
  await cluster.deletePod('web-0');
  await cluster.until(() => cluster.phase('web-0') === 'Retained', 'not retained');
  const heal = hide(cluster, 'vpcipclaims', 'vpcips');
  await cluster.pass(10 * 60_000);
  const marks = (cluster.statusOf('a').eniInfos ?? []).flatMap(({ addresses = [] }) => addresses);
  t.truthy(marks.find((one) => one.ip === ip)?.claim, 'still marked');
  heal();
  const second = await cluster.createPod('web-0', 'b');
  await cluster.until(() => cluster.ipOf(second) !== undefined, 'not served');
  t.is(cluster.ipOf(second), ip);
  await cluster.stopIpamd();
});
