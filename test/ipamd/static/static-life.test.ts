import test from 'ava';
import { MIRROR, StaticCluster } from './static-cluster.ts';

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
    () => (cluster.statusOf('b').eniInfos ?? []).every(({ addresses = [] }) => addresses.every((one) => one.ip !== ip)),
    'still on its ENI',
  );
  const text = await cluster.metricsText();
  for (const kind of ['create-claim', 'update-claim', 'delete-claim', 'put-vip', 'end-vip'])
    t.regex(text, new RegExp(`^tke_eni_ipamd_claim_writes_total\\{kind="${kind}"\\} [1-9]`, 'm'));
  t.regex(text, /^tke_eni_ipamd_instance_refreshes_total\{outcome="done"\} [1-9]/m);
  await cluster.stopIpamd();
});

test('startIpamd: takes nothing from the sandbox of a Pod deleted by force until its kubelet has ended it', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 3 });
  await cluster.startIpamd();
  const first = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const ip = cluster.ipOf(first);
  await cluster.deletePod('web-0', true);
  const second = await cluster.createPod('web-0', 'b');
  await cluster.pass(120_000);
  t.is(cluster.ipOf(second), undefined);
  t.is(cluster.ipOf(first), ip);
  t.regex(cluster.why('web-0'), /^HandOver: 10\.1\.\d+\.\d+ is on node a, whose agent has to let go of it for node b/);
  cluster.stopSandbox(first);
  await cluster.until(() => cluster.ipOf(second) !== undefined, 'not moved');
  t.is(cluster.ipOf(second), ip);
  await cluster.stopIpamd();
});

test('startIpamd: takes an address over from a node that is lost, and only after --static-takeover-after', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 3 }, ['--static-takeover-after=2m']);
  await cluster.startIpamd();
  const first = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const ip = cluster.ipOf(first);
  await cluster.setReady('a', false);
  await cluster.deletePod('web-0', true);
  const second = await cluster.createPod('web-0', 'b');
  await cluster.pass(110_000);
  t.is(cluster.ipOf(second), undefined);
  await cluster.until(() => cluster.ipOf(second) !== undefined, 'not taken over');
  t.is(cluster.ipOf(second), ip);
  await cluster.stopIpamd();
});

test('startIpamd: leaves a Pod in another zone waiting, and says why', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 4 });
  await cluster.startIpamd();
  await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  await cluster.deletePod('web-0');
  const second = await cluster.createPod('web-0', 'b');
  await cluster.until(() => cluster.why('web-0').startsWith('AddressElsewhere'), 'not said');
  t.regex(
    cluster.why('web-0'),
    /10\.1\.\d+\.\d+ is of subnet-pods0001 in zone ap-guangzhou-3, node b in zone ap-guangzhou-4$/,
  );
  await cluster.pass(60_000);
  t.is(cluster.ipOf(second), undefined);
  t.true(cluster.events().some((one) => one.startsWith('AddressElsewhere ')));
  await cluster.deletePod('web-0');
  const third = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.ipOf(third) !== undefined, 'not given again');
  await cluster.stopIpamd();
});

test('startIpamd: a claim that is deleted stays until its Pod is gone, and the next Pod gets a claim of its own', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 });
  await cluster.startIpamd();
  const first = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const { uid } = cluster.claim('web-0')?.metadata ?? {};
  await cluster.deleteClaim('web-0');
  await cluster.until(() => cluster.why('web-0').startsWith('ClaimInUse'), 'not said');
  await cluster.pass(60_000);
  t.is(cluster.claim('web-0')?.metadata.uid, uid);
  t.truthy(cluster.ipOf(first));
  t.true(cluster.events().some((one) => one.startsWith('ClaimInUse ')));
  await cluster.deletePod('web-0');
  const second = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.ipOf(second) !== undefined, 'no new address');
  t.not(cluster.claim('web-0')?.metadata.uid, uid);
  await cluster.stopIpamd();
});

for (const node of ['b', '']) {
  const where = node === '' ? 'that has no node yet' : 'in another zone';
  test(`startIpamd: a claim that is deleted gives way to a new one for a Pod ${where}`, async (t) => {
    const cluster = await StaticCluster.make({ a: 3, b: 4 });
    await cluster.startIpamd();
    await cluster.createPod('web-0', 'a');
    await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
    await cluster.deletePod('web-0');
    const second = await cluster.createPod('web-0', node);
    const reason = node === '' ? 'PodUnscheduled' : 'AddressElsewhere';
    await cluster.until(() => cluster.why('web-0').startsWith(reason), 'not said');
    const { uid } = cluster.claim('web-0')?.metadata ?? {};
    await cluster.deleteClaim('web-0');
    const isNew = () => cluster.claim('web-0') !== undefined && cluster.claim('web-0')?.metadata.uid !== uid;
    await cluster.until(isNew, 'the old claim stays');
    t.deepEqual(
      cluster.objects('vpcips').filter(({ metadata }) => metadata.name.startsWith('10.1.')),
      [],
    );
    if (node !== '') await cluster.until(() => cluster.ipOf(second)?.startsWith('10.2.') === true, 'no new address');
    await cluster.stopIpamd();
  });
}

test('startIpamd: the end of a VpcIP is the end of its claim, once the Pod is gone', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 });
  await cluster.startIpamd();
  const first = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const ip = cluster.ipOf(first) ?? '';
  await cluster.deleteVip(ip);
  await cluster.pass(30_000);
  t.truthy(cluster.vip(ip));
  await cluster.deletePod('web-0');
  await cluster.until(() => cluster.claim('web-0') === undefined && cluster.vip(ip) === undefined, 'still there');
  await cluster.stopIpamd();
});

test('startIpamd: gives the address that a Pod asks for, and says when another claim has it', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 3 });
  await cluster.startIpamd();
  const asking = { 'tke.cloud.tencent.com/nominated-vpc-ip': '10.1.7.7' };
  const first = await cluster.createPod('web-0', 'a', asking);
  await cluster.until(() => cluster.ipOf(first) !== undefined, 'no address');
  t.is(cluster.ipOf(first), '10.1.7.7');
  const second = await cluster.createPod('web-1', 'b', asking);
  await cluster.until(() => cluster.why('web-1').startsWith('AddressTaken'), 'not said');
  t.is(cluster.why('web-1'), 'AddressTaken: 10.1.7.7, which the Pod asks for, is of VpcIPClaim default/web-0');
  await cluster.deletePod('web-0');
  await cluster.deleteClaim('web-0');
  await cluster.until(() => cluster.ipOf(second) !== undefined, 'not given');
  t.is(cluster.ipOf(second), '10.1.7.7');
  await cluster.stopIpamd();
});

test('startIpamd: gives the address that a Pod asks for, though the cloud gave it to the ENI that was made for it', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 });
  await cluster.startIpamd();
  const first = '10.1.0.2';
  const uid = await cluster.createPod('web-0', 'a', { 'tke.cloud.tencent.com/nominated-vpc-ip': first });
  const enis = () => cluster.statusOf('a').eniInfos ?? [];
  await cluster.until(() => enis().some(({ primaryIP }) => primaryIP === first), 'the cloud gives another one first');
  await cluster.until(() => cluster.ipOf(uid) !== undefined, 'not given back');
  t.is(cluster.ipOf(uid), first);
  await cluster.pass(60_000);
  t.is(enis().length, 1);
  const own = [...cluster.scene.host.model.state.enis.values()].filter(({ name }) => name.startsWith('tke-'));
  t.is(own.length, 1);
  await cluster.stopIpamd();
});

test('startIpamd: gives nothing on a node that keeps no addresses, and says so', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 }, ['--enable-static-ip=false']);
  await cluster.startIpamd();
  const uid = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.why('web-0').startsWith('StaticIPDisabled'), 'not said');
  t.is(cluster.ipOf(uid), undefined);
  await cluster.labelNode('a', 'tke.cloud.tencent.com/static-ip', 'true');
  await cluster.until(() => cluster.ipOf(uid) !== undefined, 'the label says nothing');
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

test('startIpamd: killed at any moment of a move, the next one goes on', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 3 });
  await cluster.startIpamd();
  let uid = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.ipOf(uid) !== undefined, 'no address');
  const ip = cluster.ipOf(uid);
  for (const [index, ms] of [250, 500, 1_000, 1_500, 2_500, 4_000].entries()) {
    await cluster.deletePod('web-0');
    uid = await cluster.createPod('web-0', index % 2 === 0 ? 'b' : 'a');
    await cluster.pass(ms);
    await cluster.killIpamd();
    await cluster.until(() => cluster.ipOf(uid) !== undefined, `not given after a kill at ${ms}`);
    t.is(cluster.ipOf(uid), ip);
  }
  await cluster.stopIpamd();
});

test('startIpamd: names who has a kept address in the cloud, and takes it again when it is free', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 });
  await cluster.startIpamd();
  const free = cluster.takeIp('10.1.9.9', 'subnet-pods0001');
  const uid = await cluster.createPod('web-0', 'a', { 'tke.cloud.tencent.com/nominated-vpc-ip': '10.1.9.9' });
  await cluster.until(() => cluster.why('web-0').startsWith('AddressTaken'), 'not said');
  t.regex(cluster.why('web-0'), /^AddressTaken: 10\.1\.9\.9 is of ENI eni-\w+: ResourceInUse/);
  t.like(cluster.vip('10.1.9.9'), { status: { phase: 'Failed' } });
  t.true(cluster.events().some((one) => one.startsWith('AddressTaken 10.1.9.9 is of ENI')));
  free();
  await cluster.until(() => cluster.ipOf(uid) === '10.1.9.9', 'not taken again');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'not told');
  await cluster.stopIpamd();
});

test('startIpamd: says on the Pod that its node is full, and what helps; elsewhere the Pod runs', async (t) => {
  // One ENI of five addresses.
  const cluster = await StaticCluster.make({ a: 3, b: 3 }, [], 1);
  await cluster.startIpamd();
  const uids: string[] = [];
  for (let index = 0; index < 5; index++) uids.push(await cluster.createPod(`web-${index}`, 'a'));
  await cluster.until(() => uids.every((uid) => cluster.ipOf(uid) !== undefined), 'five have their addresses');
  await cluster.pass(30_000);
  t.false(
    cluster.events().some((one) => one.startsWith('NodeFull ')),
    'nobody waits',
  );
  await cluster.createPod('late', 'a');
  await cluster.until(() => cluster.why('late').startsWith('NodeFull'), 'not said');
  t.is(cluster.statusOf('a').allocatableRouteENIIPs ?? 5, 5);
  const [event = ''] = cluster.events().filter((one) => one.startsWith('NodeFull '));
  t.regex(event, /^NodeFull node a has no place for it: .*; delete this Pod, so that it goes to another node, or /);
  await cluster.deletePod('late');
  const uid = await cluster.createPod('late', 'b');
  await cluster.until(() => cluster.ipOf(uid) !== undefined, 'it runs on b');
  await cluster.stopIpamd();
});
