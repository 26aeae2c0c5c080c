import test from 'ava';
import { API_VERSION } from '../../../crd/names.ts';
import { updateGuarded } from '../../../kube/guarded-update.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { STATIC_IP_CONFIGS, VPC_IP_CLAIMS } from '../../../kube/resource-types.ts';
import { StaticCluster } from './static-cluster.ts';

async function configure(cluster: StaticCluster, spec: Readonly<Record<string, unknown>>): Promise<void> {
  const metadata = { name: 'web', namespace: 'default' };
  const object: KubeObject = { apiVersion: API_VERSION, kind: 'StaticIPConfig', metadata, spec };
  await cluster.run(cluster.scene.kube.create(STATIC_IP_CONFIGS, object));
}

test('startIpamd: gives addresses of the StaticIPConfig that selects a Pod, for as long as it says', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 });
  const ips = ['10.2.0.9', '10.1.3.1', '10.1.3.2'];
  await cluster.startIpamd();
  await cluster.until(() => cluster.scene.nec('a')?.['status'] !== undefined, 'no node');
  await configure(cluster, { podLabels: { app: 'web' }, ips, claimExpiredDuration: '10m' });
  const uids = [await cluster.createPod('web-0', 'a'), await cluster.createPod('web-1', 'a')];
  await cluster.until(() => uids.every((uid) => cluster.ipOf(uid) !== undefined), 'no addresses');
  t.deepEqual(uids.map((uid) => cluster.ipOf(uid)).toSorted(), ['10.1.3.1', '10.1.3.2']);
  await cluster.createPod('web-2', 'a');
  await cluster.until(() => cluster.why('web-2').startsWith('AddressPoolExhausted'), 'not said');
  t.is(
    cluster.why('web-2'),
    'AddressPoolExhausted: none of the 3 addresses of its StaticIPConfig is free in zone ap-guangzhou-3',
  );
  t.like(cluster.claim('web-0'), { spec: { claimExpiredDuration: '600s', deletePolicy: 'Never' } });
  await cluster.deletePod('web-0');
  await cluster.pass(590_000);
  t.is(cluster.phase('web-0'), 'Retained');
  await cluster.until(() => cluster.phase('web-2') === 'Bound', 'the one that expired is not given on');
  await cluster.stopIpamd();
});

test('startIpamd: an annotation of the VpcIP says for how long, before all others', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 }, ['--claim-expired-duration=1h']);
  await cluster.startIpamd();
  const uid = await cluster.createPod('web-0', 'a', { 'tke.cloud.tencent.com/claim-expired-duration': '30m' });
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  await cluster.annotateVip(cluster.ipOf(uid) ?? '', 'tke.cloud.tencent.com/claim-expired-duration', '5m');
  await cluster.deletePod('web-0');
  await cluster.pass(290_000);
  t.is(cluster.phase('web-0'), 'Retained');
  await cluster.pass(60_000);
  t.is(cluster.claim('web-0'), undefined);
  await cluster.stopIpamd();
});

test('startIpamd: an annotation of the VpcIP that is no duration is an event of the VpcIP, with a Pod and without', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 }, ['--claim-expired-duration=5m']);
  await cluster.startIpamd();
  const told = () => cluster.events().filter((one) => one.startsWith('AnnotationInvalid '));
  const uid = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const ip = cluster.ipOf(uid) ?? '';
  await cluster.annotateVip(ip, 'tke.cloud.tencent.com/claim-expired-duration', 'soon');
  await cluster.until(() => told().length === 1, 'not said');
  t.regex(told()[0] ?? '', /claim-expired-duration: expected a duration of at least 5m .*, got "soon"; it is ignored/);
  const [involved] = cluster.scene.server.objects('events').filter(({ reason }) => reason === 'AnnotationInvalid');
  t.like(involved?.['involvedObject'], { kind: 'VpcIP', name: ip });
  await cluster.deletePod('web-0');
  await cluster.until(() => cluster.phase('web-0') === 'Retained', 'not kept');
  await cluster.annotateVip(ip, 'tke.cloud.tencent.com/claim-expired-duration', '1s');
  await cluster.until(() => told().length === 2, 'not said of a Pod that is gone');
  await cluster.until(() => cluster.claim('web-0') === undefined, 'the flag says when it ends');
  await cluster.stopIpamd();
});

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

test('startIpamd: uses a subnet that has to be named for the Pods that name it, on a node that does not', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 }, ['--only-nominated-eni-subnets=subnet-node0001']);
  await cluster.startIpamd();
  const naming = { 'tke.cloud.tencent.com/nominated-eni-subnets': 'subnet-node0001' };
  const first = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.ipOf(first) !== undefined, 'no address');
  const second = await cluster.createPod('web-1', 'a', naming);
  await cluster.until(() => cluster.ipOf(second) !== undefined, 'no address of the subnet that it names');
  t.regex(cluster.ipOf(first) ?? '', /^10\.1\./);
  t.regex(cluster.ipOf(second) ?? '', /^10\.0\.0\./);
  const third = await cluster.createPod('web-3', 'a');
  await cluster.until(() => cluster.ipOf(third) !== undefined, 'no other address');
  t.regex(cluster.ipOf(third) ?? '', /^10\.1\./);
  await cluster.createPod('web-2', 'a', { 'tke.cloud.tencent.com/nominated-eni-subnets': 'subnet-pods0002' });
  await cluster.until(() => cluster.why('web-2').startsWith('AddressElsewhere'), 'not said');
  t.is(
    cluster.why('web-2'),
    'AddressElsewhere: the subnets that the Pod accepts are subnet-pods0002 in zone ap-guangzhou-4, node a in zone ap-guangzhou-3',
  );
  await cluster.stopIpamd();
});

test('startIpamd: says of a Pod without a claim which annotations are wrong, once', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 });
  await cluster.startIpamd();
  const told = () => cluster.events().filter((one) => one.startsWith('AnnotationInvalid '));
  const shared = { 'tke.cloud.tencent.com/vpc-ip-claim-delete-policy': 'Immediate' };
  await cluster.createPod('web-0', 'a', { ...shared, 'tke.cloud.tencent.com/networks': 'tke-route-enni' });
  await cluster.createPod('web-1', 'a', { ...shared, 'tke.cloud.tencent.com/networks': 'macvlan-conf' });
  await cluster.until(() => told().length > 0, 'not said');
  await cluster.pass(30_000);
  t.deepEqual(told(), [
    'AnnotationInvalid tke.cloud.tencent.com/networks: expected tke-route-eni, got "tke-route-enni"',
  ]);
  await cluster.stopIpamd();
});

test('startIpamd: tells of annotations that are malformed or passed over, and again when they are other ones', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 });
  await cluster.startIpamd();
  const expired = 'tke.cloud.tencent.com/claim-expired-duration';
  const told = (reason: string) => cluster.events().filter((one) => one.startsWith(`${reason} `));
  const first = await cluster.createPod('web-0', 'a', { [expired]: 'soon' });
  await cluster.until(() => cluster.ipOf(first) !== undefined, 'no address');
  const ip = cluster.ipOf(first);
  await cluster.pass(30_000);
  t.is(told('AnnotationInvalid').length, 1);
  t.regex(told('AnnotationInvalid')[0] ?? '', /got "soon"/);
  await cluster.deletePod('web-0');
  const asking = { [expired]: 'later', 'tke.cloud.tencent.com/nominated-vpc-ip': '10.1.7.7' };
  const second = await cluster.createPod('web-0', 'a', asking);
  await cluster.until(() => cluster.ipOf(second) !== undefined, 'not given again');
  t.is(cluster.ipOf(second), ip);
  await cluster.until(() => told('AnnotationInvalid').length === 2, 'not said again');
  t.deepEqual(told('NominationIgnored'), [
    `NominationIgnored the Pod asks for 10.1.7.7, and its claim keeps ${ip}: delete the VpcIPClaim and the Pod to change it`,
  ]);
  await cluster.stopIpamd();
});
