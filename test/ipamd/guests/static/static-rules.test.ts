import test from 'ava';
import { updateGuarded } from '../../../../kube/guarded-update.ts';
import type { KubeObject } from '../../../../kube/kube-client.ts';
import { VPC_IP_CLAIMS } from '../../../../kube/resource-types.ts';
import { MIRROR, StaticCluster } from './static-cluster.ts';

test('startIpamd: with --enable-ownerref a claim is its StatefulSet’s, and ends with it once the Pod is gone', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 }, ['--enable-ownerref=true']);
  await cluster.startIpamd();
  const set = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web', uid: 'uid-of-set', controller: true };
  const uid = await cluster.createPod('web-0', 'a', {}, set);
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const { ownerReferences } = cluster.claim('web-0')?.metadata ?? {};
  t.deepEqual(ownerReferences, [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web', uid: 'uid-of-set' }]);
  t.like(cluster.claim('web-0'), { spec: { workload: { kind: 'StatefulSet', name: 'web', uid: 'uid-of-set' } } });
  const ip = cluster.ipOf(uid) ?? '';
  t.is(cluster.vip(ip)?.metadata.ownerReferences, undefined);
  // As the garbage collector does when the set is gone.
  await cluster.deleteClaim('web-0');
  await cluster.pass(30_000);
  t.is(cluster.ipOf(uid), ip);
  await cluster.deletePod('web-0');
  await cluster.until(() => cluster.claim('web-0') === undefined && cluster.vip(ip) === undefined, 'still there');
  await cluster.stopIpamd();
});

test('startIpamd: keeps an address whose claim was taken away by force, and leaves the scheduler’s field', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 });
  await cluster.startIpamd();
  const uid = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const ip = cluster.ipOf(uid);
  const ref = { namespace: 'default', name: 'web-0' };
  const force = (object: KubeObject): KubeObject => ({ ...object, metadata: { ...object.metadata, finalizers: [] } });
  const { uid: first } = cluster.claim('web-0')?.metadata ?? {};
  await cluster.deleteClaim('web-0');
  await cluster.run(updateGuarded(cluster.scene.kube, VPC_IP_CLAIMS, ref, force));
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no claim again');
  t.not(cluster.claim('web-0')?.metadata.uid, first);
  t.like(cluster.claim('web-0'), { status: { ips: [ip] } });
  const reserve = (object: KubeObject): KubeObject => {
    // Written by ipamd: it is an object.
    const spec = object['spec'] as Readonly<Record<string, unknown>>;
    return { ...object, spec: { ...spec, nodeName: 'b' } };
  };
  await cluster.run(updateGuarded(cluster.scene.kube, VPC_IP_CLAIMS, ref, reserve));
  await cluster.deletePod('web-0');
  await cluster.until(() => cluster.phase('web-0') === 'Retained', 'not retained');
  t.like(cluster.claim('web-0'), { spec: { nodeName: 'b' }, status: { ips: [ip], lastPod: { uid } } });
  await cluster.stopIpamd();
});

test('startIpamd: a Pod without a node has its claim at once, and its address where it is scheduled', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 });
  await cluster.startIpamd();
  await cluster.pass(5_000);
  await cluster.createPod('web-0', '');
  await cluster.until(() => cluster.why('web-0').startsWith('PodUnscheduled'), 'no claim');
  t.is(cluster.phase('web-0'), 'Pending');
  t.deepEqual(cluster.objects('vpcips'), []);
  await cluster.stopIpamd();
});

test("startIpamd: gives a Pod from a kubelet's manifest its address by the uid that the kubelet knows, and keeps it", async (t) => {
  const cluster = await StaticCluster.make({ a: 3 });
  await cluster.startIpamd();
  const first = await cluster.createPod('web-a', 'a', { [MIRROR]: '0123456789abcdef0123456789abcdef' });
  await cluster.until(() => cluster.ipOf(first) !== undefined, 'no address');
  const ip = cluster.ipOf(first);
  await cluster.deletePod('web-a');
  const second = await cluster.createPod('web-a', 'a', { [MIRROR]: 'fedcba9876543210fedcba9876543210' });
  await cluster.until(() => cluster.ipOf(second) !== undefined, 'not given again');
  t.is(cluster.ipOf(second), ip);
  await cluster.stopIpamd();
});
