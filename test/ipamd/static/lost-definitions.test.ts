import test from 'ava';
import { RESOURCE_KINDS } from '../../../crd/kinds.ts';
import { API_GROUP } from '../../../crd/names.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, PODS, VPC_IP_CLAIMS, VPC_IPS } from '../../../kube/resource-types.ts';
import { StaticCluster } from './static-cluster.ts';

async function deleteDefinitions(cluster: StaticCluster, plurals: readonly string[]): Promise<void> {
  for (const plural of plurals)
    await cluster.run(cluster.scene.kube.delete(CUSTOM_RESOURCE_DEFINITIONS, { name: `${plural}.${API_GROUP}` }));
}

/** Addresses that the cloud has on ENIs. */
function cloudIps({ scene }: StaticCluster): ReadonlySet<string> {
  return new Set([...scene.host.model.state.enis.values()].flatMap((eni) => [...eni.ips.keys()]));
}

/** What `kubectl get -o yaml` saved and `kubectl create` makes again. */
function backupOf(object: KubeObject | undefined): KubeObject {
  if (object === undefined) throw new Error('there is nothing to save');
  const { name, namespace, labels = {}, annotations = {}, finalizers = [] } = object.metadata;
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }), labels, annotations, finalizers };
  return { ...object, metadata };
}

test('startIpamd: the kept address of a Pod that runs stays when the definitions of claims are lost', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 3 });
  await cluster.startIpamd();
  const uid = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const ip = cluster.ipOf(uid) ?? '';
  await deleteDefinitions(cluster, ['vpcipclaims', 'vpcips']);
  await cluster.pass(30_000);
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'not bound again');
  await cluster.pass(20 * 60_000);
  t.is(cluster.ipOf(uid), ip);
  t.truthy(cluster.vip(ip));
  t.like(cluster.claim('web-0')?.['status'], { ips: [ip] });
  await cluster.stopIpamd();
});

test('startIpamd: a kept address comes back with a backup when all definitions are lost', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 3 });
  await cluster.startIpamd();
  const uid = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const ip = cluster.ipOf(uid) ?? '';
  const { kube } = cluster.scene;
  const body = { status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] } };
  const ref = { namespace: 'default', name: 'web-0' };
  await cluster.run(kube.patch(PODS, ref, { kind: 'merge', body, subresource: 'status' }));
  const saved = [backupOf(cluster.claim('web-0')), backupOf(cluster.vip(ip))] as const;
  await deleteDefinitions(
    cluster,
    RESOURCE_KINDS.map(({ plural }) => plural),
  );
  await cluster.pass(20 * 60_000);
  t.true(cloudIps(cluster).has(ip));
  t.is(cluster.ipOf(uid), ip);
  // First the VpcIP: a claim without one would get another address. With it ipamd makes the claim itself.
  await cluster.run(kube.create(VPC_IPS, saved[1]));
  await cluster.run(kube.create(VPC_IP_CLAIMS, saved[0])).catch((error: unknown) => {
    if (!isKubeError(error, 'ALREADY_EXISTS')) throw error;
  });
  await cluster.pass(30_000);
  t.is(cluster.ipOf(uid), ip);
  await cluster.deletePod('web-0');
  const next = await cluster.createPod('web-0', 'b');
  await cluster.until(() => cluster.ipOf(next) !== undefined, 'not served');
  t.is(cluster.ipOf(next), ip);
  await cluster.stopIpamd();
});

test('startIpamd: a kept address without a Pod can be restored within the hour after its claim was lost', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 3 });
  await cluster.startIpamd();
  const first = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const ip = cluster.ipOf(first) ?? '';
  await cluster.deletePod('web-0');
  await cluster.until(() => cluster.phase('web-0') === 'Retained', 'not retained');
  const saved = backupOf(cluster.claim('web-0'));
  await deleteDefinitions(cluster, ['vpcipclaims', 'vpcips']);
  await cluster.pass(30 * 60_000);
  t.true(cloudIps(cluster).has(ip));
  await cluster.run(cluster.scene.kube.create(VPC_IP_CLAIMS, saved));
  await cluster.pass(60 * 60_000);
  const second = await cluster.createPod('web-0', 'b');
  await cluster.until(() => cluster.ipOf(second) !== undefined, 'not served');
  t.is(cluster.ipOf(second), ip);
  await cluster.stopIpamd();
});
