import test from 'ava';
import { NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import { StaticCluster } from './static-cluster.ts';

/** Publishes, as the cloud controller manager does, which addresses of a node are targets. */
async function publish(cluster: StaticCluster, node: string, ips: readonly string[]): Promise<void> {
  const body = { loadBalancers: { registeredIPs: ips } };
  await cluster.run(cluster.scene.kube.patch(NODE_ENI_CONFIGS, { name: node }, { kind: 'merge', body }));
}

test('startIpamd: a claim ends when no load balancer has its address, and its own next Pod gets it before', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 3 }, ['--claim-expired-duration=5m']);
  await cluster.startIpamd();
  const first = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const ip = cluster.ipOf(first) ?? 'none';
  await publish(cluster, 'a', [ip]);
  await cluster.deletePod('web-0');
  await cluster.until(() => cluster.phase('web-0') === 'Retained', 'not retained');
  const second = await cluster.createPod('web-0', 'b');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'not moved');
  t.is(cluster.ipOf(second), ip);
  // What the former node's list says of it counts no more.
  await publish(cluster, 'b', [ip]);

  await cluster.deletePod('web-0');
  await cluster.pass(900_000);
  t.regex(cluster.why('web-0'), /^AddressReleasing: it ends when no load balancer has 10\.1\.\d+\.\d+ as a target/);
  const isOnB = (): boolean =>
    (cluster.statusOf('b').eniInfos ?? []).some(({ addresses = [] }) => addresses.some((one) => one.ip === ip));
  t.true(isOnB());
  await publish(cluster, 'b', []);
  await cluster.until(() => cluster.claim('web-0') === undefined && !isOnB(), 'never ends');
  await cluster.stopIpamd();
});

test('startIpamd: a claim whose address stays published ends after --load-balancer-wait', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 }, ['--claim-expired-duration=5m', '--load-balancer-wait=20m']);
  await cluster.startIpamd();
  const first = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  await publish(cluster, 'a', [cluster.ipOf(first) ?? '']);
  await cluster.deletePod('web-0');
  await cluster.pass(1_100_000);
  t.not(cluster.claim('web-0'), undefined);
  await cluster.until(() => cluster.claim('web-0') === undefined, 'never ends');
  t.true(cluster.events().some((event) => event.includes('RegisteredTooLong')));
  await cluster.stopIpamd();
});
