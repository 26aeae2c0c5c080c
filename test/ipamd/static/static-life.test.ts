import test from 'ava';
import { StaticCluster } from './static-cluster.ts';

test('startIpamd: gives a static Pod an address, keeps it, moves it, and gives it back when it expires', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 3 }, ['--claim-expired-duration=5m']);
  await cluster.startIpamd();
  const first = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const ip = cluster.ipOf(first) ?? 'none';
  t.regex(ip, /^10\.1\./);
  t.is(cluster.vip(ip)?.metadata.labels?.['tke.cloud.tencent.com/node-name'], 'a');

  await cluster.deletePod('web-0');
  await cluster.until(() => cluster.phase('web-0') === 'Retained', 'not retained');
  const second = await cluster.createPod('web-0', 'b');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'not moved');
  t.is(cluster.ipOf(second), ip);
  t.is(cluster.vip(ip)?.metadata.labels?.['tke.cloud.tencent.com/node-name'], 'b');

  await cluster.deletePod('web-0');
  await cluster.pass(290_000);
  t.is(cluster.phase('web-0'), 'Retained');
  await cluster.until(() => cluster.claim('web-0') === undefined, 'never expires');
  t.is(cluster.vip(ip), undefined);
  await cluster.until(
    () =>
      (cluster.statusOf('b')?.eniInfos ?? []).every(({ addresses = [] }) => addresses.every((one) => one.ip !== ip)),
    'still on its ENI',
  );
  await cluster.stopIpamd();
});
