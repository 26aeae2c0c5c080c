import test from 'ava';
import { CLOUD_FINALIZER, NODE_DIRECT_ENI_LABEL } from '../../../crd/names.ts';
import { NODE_ENI_CONFIGS, NODES, VPC_ENIS, VPC_IP_CLAIMS } from '../../../kube/resource-types.ts';
import { recordOf } from '../../../runtime/json.ts';
import type { ModelEni } from '../../../sim/vpc/api/model/types.ts';
import { DirectCluster } from './exclusive-cluster.ts';

const GROUPS = 'tke.cloud.tencent.com/pod-security-groups';

for (const { title, label, off } of [
  { title: 'the flag is off', label: undefined, off: { flag: 'false', label: undefined } },
  { title: 'the label is false', label: undefined, off: { flag: 'true', label: 'false' } },
  { title: 'the label is removed', label: 'true', off: { flag: 'false', label: null } },
]) {
  test(`ipamd: takes back exclusive ENIs that no Pod uses, and the others as their Pods end, when ${title}`, async (t) => {
    const cluster = await DirectCluster.make({ a: 3 });
    const setLabel = async (value: string | null) => {
      const body = { metadata: { labels: { [NODE_DIRECT_ENI_LABEL]: value } } };
      await cluster.run(cluster.scene.kube.patch(NODES, { name: 'a' }, { kind: 'merge', body }));
    };
    if (label !== undefined) await setLabel(label);
    await cluster.startIpamd(`--enable-direct-eni=${label === undefined}`);
    const uid = await cluster.createPod('p', 'a');
    await cluster.until(() => cluster.sandboxes.has(uid) && cluster.statusOf('a').directENIs === 2, 'one and a spare');
    await cluster.stopIpamd();
    await cluster.startIpamd(`--enable-direct-eni=${off.flag}`);
    if (off.label !== undefined) await setLabel(off.label);
    await cluster.until(() => cluster.direct('a').length === 1, 'the spare one goes');
    await cluster.pass(60_000);
    t.deepEqual(
      cluster.direct('a').map(({ eniID }) => eniID),
      [cluster.sandboxes.get(uid)?.eniId],
      'a Pod that runs keeps its ENI',
    );
    t.is(cluster.specOf('a').maxDirectENI, undefined);
    await cluster.deletePod('p');
    await cluster.until(
      () => cluster.cloudEnis().length === 0 && cluster.direct('a').length === 0,
      'the last one goes',
    );
    t.deepEqual(cluster.objects('vpcenis'), []);
    await cluster.stopIpamd();
  });
}

test('ipamd: never takes more exclusive ENIs than the instance has places, and says so with numbers', async (t) => {
  const cluster = await DirectCluster.make({ a: 3 });
  await cluster.startIpamd();
  for (const name of ['p1', 'p2', 'p3', 'p4', 'p5']) await cluster.createKept(name, 'a');
  await cluster.until(() => cluster.sandboxes.size === 3, 'three of five');
  const isTold = () => cluster.statusOf('a').conditions?.some(({ reason }) => reason === 'DirectENILimit') === true;
  await cluster.until(isTold, 'the node says why');
  t.is(cluster.direct('a').length, 3);
  const { message } = cluster.statusOf('a').conditions?.find(({ type }) => type === 'DirectENIReady') ?? {};
  t.regex(message ?? '', /^[5-9] exclusive ENIs are requested, 5 of them for claims; the node may have 3 /);
  t.true(cluster.events().some((event) => event.startsWith('DirectENILimit ')));
  await cluster.until(() => cluster.events().some((one) => one.startsWith('NodeFull ')), 'the Pods that wait say why');
  await cluster.deletePod('p1');
  await cluster.stopIpamd();
});

test('ipamd: puts exclusive ENIs on places of the extension type, which shared ENIs do not use', async (t) => {
  const cluster = await DirectCluster.make({ a: 3 }, { extendEnis: 6 });
  await cluster.startIpamd();
  for (const name of ['p1', 'p2', 'p3', 'p4', 'p5', 'p6', 'p7']) await cluster.createKept(name, 'a');
  await cluster.until(() => cluster.sandboxes.size === 6, 'six of seven, where three standard places are');
  await cluster.pass(60_000);
  t.is(cluster.sandboxes.size, 6);
  t.true(cluster.direct('a').every(({ attachType }) => attachType === 'extension'));
  const places = () =>
    [...cluster.scene.host.model.state.enis.values()].flatMap(({ isPrimary, attachment }) =>
      isPrimary || attachment === undefined ? [] : [attachment.isExtension],
    );
  t.is(places().filter((isExtension) => isExtension).length, 6);
  const { message } = cluster.statusOf('a').conditions?.find(({ type }) => type === 'DirectENIReady') ?? {};
  t.regex(message ?? '', /the node may have 6 /);
  await cluster.restartIpamd();
  await cluster.pass(400_000);
  t.is(places().filter((isExtension) => isExtension).length, 6);
  t.true(cluster.direct('a').every(({ attachType }) => attachType === 'extension'));
  await cluster.stopIpamd();
});

test('ipamd: a refusal of extension places holds up no shared ENI', async (t) => {
  const cluster = await DirectCluster.make({ a: 3 }, { extendEnis: 6 });
  const { instances } = cluster.scene.host.model.state;
  await cluster.startIpamd();
  await cluster.until(() => cluster.direct('a').some(({ state }) => state === 'Attached'), 'a spare one');
  const instance = instances.get('ins-nodea');
  if (instance === undefined) throw new Error('no instance');
  instances.set('ins-nodea', { ...instance, extendEnis: 1 });
  await cluster.createKept('p1', 'a');
  await cluster.createKept('p2', 'a');
  const isRefused = () =>
    cluster.statusOf('a').conditions?.some(({ reason }) => reason === 'InstanceENILimit') === true;
  await cluster.until(isRefused, 'the cloud refuses the next');
  const { conditions = [] } = cluster.statusOf('a');
  t.is(conditions.find(({ type }) => type === 'DirectENIReady')?.reason, 'InstanceENILimit');
  t.not(conditions.find(({ type }) => type === 'Ready')?.reason, 'InstanceENILimit');
  await cluster.stopIpamd();
});

test('ipamd: leaves exclusive ENIs of before where they are, and puts new ones on places of the extension type', async (t) => {
  const cluster = await DirectCluster.make({ a: 3 });
  await cluster.startIpamd();
  for (const name of ['p1', 'p2']) await cluster.createKept(name, 'a');
  await cluster.until(() => cluster.sandboxes.size === 2, 'two on standard places');
  // A call under way would go on with the place that is on record.
  await cluster.pass(30_000);
  const before = new Set(cluster.direct('a').map(({ eniID }) => eniID));
  t.true(before.size >= 2 && cluster.direct('a').every(({ attachType }) => attachType === undefined));
  await cluster.stopIpamd();
  const { instances } = cluster.scene.host.model.state;
  const instance = instances.get('ins-nodea');
  if (instance === undefined) throw new Error('no instance');
  instances.set('ins-nodea', { ...instance, extendEnis: 4 });
  await cluster.startIpamd();
  for (const name of ['p3', 'p4', 'p5', 'p6']) await cluster.createKept(name, 'a');
  await cluster.until(() => cluster.sandboxes.size === 4, 'two more: four is the limit of the node');
  await cluster.pass(30_000);
  t.is(cluster.direct('a').length, 4);
  for (const { eniID, attachType } of cluster.direct('a')) {
    const isExtension = cluster.scene.host.model.state.enis.get(eniID)?.attachment?.isExtension;
    t.is(isExtension, !before.has(eniID), eniID);
    t.is(attachType, isExtension === true ? 'extension' : undefined);
  }
  await cluster.stopIpamd();
});

/** A kept ENI whose Pod and node have gone, as the cloud has it. */
async function createDetached(cluster: DirectCluster): Promise<ModelEni> {
  await cluster.startIpamd('--sync-interval=1m');
  const uid = await cluster.createKept('web-0', 'a');
  await cluster.until(() => cluster.sandboxes.has(uid), 'the Pod has an ENI');
  const { eniId = '' } = cluster.sandboxes.get(uid) ?? {};
  await cluster.deletePod('web-0');
  cluster.scene.host.model.state.instances.delete('ins-nodea');
  await cluster.run(cluster.scene.kube.delete(NODES, { name: 'a' }));
  await cluster.until(() => cluster.scene.nec('a') === undefined, 'the node has given all back');
  const eni = cluster.scene.host.model.state.enis.get(eniId);
  if (eni === undefined) throw new Error('the cloud has the ENI');
  return eni;
}

test('ipamd: keeps the ENI when its node leaves, and gives it to the next Pod of the name', async (t) => {
  const cluster = await DirectCluster.make({ a: 3, b: 3 });
  const { eniId } = await createDetached(cluster);
  t.deepEqual(cluster.kept(eniId), ['Available', undefined, 'web-0']);
  const second = await cluster.createKept('web-0', 'b');
  await cluster.until(() => cluster.sandboxes.has(second), 'it comes to node b');
  t.is(cluster.sandboxes.get(second)?.eniId, eniId);
  await cluster.deletePod('web-0');
  await cluster.run(cluster.scene.kube.delete(VPC_IP_CLAIMS, { namespace: 'default', name: 'web-0' }));
  await cluster.until(() => !cluster.cloudEnis().includes(eniId) && cluster.kept(eniId) === undefined, 'it is deleted');
  await cluster.stopIpamd();
  t.pass();
});

test('ipamd: takes a kept ENI back from a node that it came to behind the back of all objects', async (t) => {
  const cluster = await DirectCluster.make({ a: 3, b: 3, c: 3 });
  const eni = await createDetached(cluster);
  eni.attachment = { instanceId: 'ins-nodeb', deviceIndex: 7, atMs: 0, isExtension: false };
  await cluster.until(() => cluster.direct('b').some(({ eniID }) => eniID === eni.eniId), 'node b has it');
  const uid = await cluster.createKept('web-0', 'c');
  await cluster.until(() => cluster.sandboxes.get(uid)?.eniId === eni.eniId, 'it comes to node c');
  t.is(eni.attachment?.instanceId, 'ins-nodec');
  await cluster.stopIpamd();
});

test('ipamd: believes that a kept ENI is gone when no description shows it for a minute', async (t) => {
  const cluster = await DirectCluster.make({ a: 3, b: 3 });
  const eni = await createDetached(cluster);
  const { enis } = cluster.scene.host.model.state;
  const name = cluster.objects('vpcenis').find(({ status }) => recordOf(status)['eniID'] === eni.eniId)?.metadata.name;
  const lose = async (phase: string): Promise<void> => {
    enis.delete(eni.eniId);
    // As after a restore: no object of a node has it, and this one does not say that it is free.
    const body = { status: { phase } };
    await cluster.run(cluster.scene.kube.patch(VPC_ENIS, { name: name ?? '' }, { kind: 'merge', body }));
  };
  await lose('Attached');
  await cluster.pass(45_000);
  t.truthy(cluster.kept(eni.eniId), 'a description may be older than it is');
  enis.set(eni.eniId, eni);
  await cluster.until(() => cluster.kept(eni.eniId)?.[0] === 'Available', 'it is there again');
  await lose('Attaching');
  await cluster.until(() => cluster.kept(eni.eniId) === undefined, 'it is gone');
  await cluster.stopIpamd();
});

test('ipamd: says that a kept ENI of another zone cannot come', async (t) => {
  const cluster = await DirectCluster.make({ a: 3, c: 4 });
  await cluster.startIpamd();
  const first = await cluster.createKept('web-0', 'a');
  await cluster.until(() => cluster.sandboxes.has(first), 'the first Pod has an ENI');
  const { eniId = '' } = cluster.sandboxes.get(first) ?? {};
  await cluster.deletePod('web-0');
  const second = await cluster.createKept('web-0', 'c');
  const said = () => cluster.events().some((event) => event.includes('ap-guangzhou-3, the node in ap-guangzhou-4'));
  await cluster.until(said, 'the refusal names both zones');
  t.false(cluster.sandboxes.has(second));
  t.true(cluster.cloudEnis().includes(eniId));
  await cluster.stopIpamd();
});

test('ipamd: sets the security groups of a Pod before it gets its ENI, and gives the ENI back with it', async (t) => {
  const cluster = await DirectCluster.make({ a: 3 });
  await cluster.startIpamd('--enable-security-groups=true');
  await cluster.until(() => cluster.direct('a').some(({ state }) => state === 'Attached'), 'a spare one');
  const uid = await cluster.createPod('p', 'a', { [GROUPS]: 'sg-special1,sg-special2' });
  await cluster.until(() => cluster.sandboxes.has(uid), 'the Pod has an ENI');
  const { eniId = '' } = cluster.sandboxes.get(uid) ?? {};
  t.deepEqual(cluster.groupsOf(eniId), ['sg-special1', 'sg-special2']);
  await cluster.deletePod('p');
  await cluster.until(() => !cluster.cloudEnis().includes(eniId), 'it goes with its Pod');
  await cluster.stopIpamd();
});

test('ipamd: gives an ENI up whose VpcENI a person deletes, once no node has it; one of a pool has its VpcENI again', async (t) => {
  // The other Node stays: where there is none at all, nothing is released.
  const cluster = await DirectCluster.make({ a: 3, b: 3 });
  await cluster.startIpamd();
  const uid = await cluster.createKept('web-0', 'a');
  await cluster.until(() => cluster.sandboxes.has(uid) && cluster.direct('a').length === 2, 'an ENI, and a spare one');
  const { eniId = '' } = cluster.sandboxes.get(uid) ?? {};
  await cluster.until(() => cluster.objects('vpcenis').length === 3, 'a VpcENI for each');
  for (const { metadata } of cluster.objects('vpcenis'))
    await cluster.run(cluster.scene.kube.delete(VPC_ENIS, { name: metadata.name }));
  await cluster.pass(30_000);
  t.is(cluster.objects('vpcenis').length, 3, 'one waits, those of pools are made again');
  t.true(cluster.sandboxes.has(uid) && cluster.cloudEnis().includes(eniId));
  await cluster.deletePod('web-0');
  cluster.scene.host.model.state.instances.delete('ins-nodea');
  await cluster.run(cluster.scene.kube.delete(NODES, { name: 'a' }));
  await cluster.until(() => cluster.kept(eniId) === undefined, 'it goes when the node has let go of it');
  await cluster.until(() => cluster.cloudEnis().length === 1, 'the cloud has all of the node back');
  t.is(cluster.objects('vpcenis').length, 1, 'that of the other node');
  await cluster.stopIpamd();
});

test('ipamd: a kept ENI whose node is lost with its object stays where it is, says so once, and goes on when the instance is gone', async (t) => {
  const cluster = await DirectCluster.make({ a: 3, b: 3 });
  const { kube, host } = cluster.scene;
  await cluster.startIpamd();
  const first = await cluster.createKept('web-0', 'a');
  await cluster.until(() => cluster.sandboxes.has(first), 'the Pod has an ENI');
  const { eniId = '' } = cluster.sandboxes.get(first) ?? {};
  await cluster.until(() => cluster.kept(eniId)?.[0] === 'Attached', 'its VpcENI says so');
  await cluster.deletePod('web-0');
  // Node and object are deleted by force: nothing is drained.
  await cluster.run(kube.delete(NODES, { name: 'a' }));
  const body = { metadata: { finalizers: null } };
  await cluster.run(kube.delete(NODE_ENI_CONFIGS, { name: 'a' }));
  await cluster.run(kube.patch(NODE_ENI_CONFIGS, { name: 'a' }, { kind: 'merge', body }).catch(() => undefined));
  const second = await cluster.createKept('web-0', 'b');
  const stuck = () => cluster.events().filter((text) => text.startsWith('DirectENIStuck'));
  await cluster.until(() => stuck().length > 0, 'it is told');
  const made = () => host.seen.filter(({ action }) => action === 'CreateNetworkInterface').length;
  const before = made();
  await cluster.pass(15 * 60_000);
  t.false(cluster.sandboxes.has(second));
  t.regex(stuck().join(), /it is on an instance, and no NodeENIConfig has it/);
  t.is(stuck().length, 1);
  t.is(made(), before, 'no second one is made for the name');
  host.model.state.removeInstance('ins-nodea');
  await cluster.until(() => cluster.sandboxes.get(second)?.eniId === eniId, 'it comes to node b');
  await cluster.stopIpamd();
});

test('ipamd: neither deletes nor attaches the ENI of a VpcENI that has the tags of TKE alone', async (t) => {
  const cluster = await DirectCluster.make({ a: 3 });
  await cluster.startIpamd('--sync-interval=1m', '--orphan-grace=1m');
  await cluster.pass(10_000);
  const { state } = cluster.scene.host.model;
  const subnet = [...state.subnets.values()].find(({ subnetId }) => subnetId.startsWith('subnet-pods'));
  if (subnet === undefined) return t.fail('a subnet for Pods');
  const enis = ['Deleting', 'Attached'].map((phase) => {
    const tags = { 'tke-clusterId': 'cls-shell001', 'tke-created-eni': 'true' };
    const order = { name: `of-tke-${phase}`, description: '', groups: ['sg-1'], tags, isPrimary: false };
    const eni = state.makeEni({ ...order, subnet, ip: subnet.pool.take() });
    eni.state = 'AVAILABLE';
    return { eni, phase };
  });
  for (const { eni, phase } of enis)
    await cluster.run(
      cluster.scene.kube.create(VPC_ENIS, {
        apiVersion: 'networking.tke.cloud.tencent.com/v1',
        kind: 'VpcENI',
        metadata: { name: eni.eniId, finalizers: [CLOUD_FINALIZER] },
        spec: {
          mode: 'direct-eni',
          claimRef: { namespace: 'default', name: `kept-${phase.toLowerCase()}` },
          subnetID: subnet.subnetId,
        },
        status: { eniID: eni.eniId, mac: eni.mac, phase },
      }),
    );
  await cluster.pass(10 * 60_000);
  for (const { eni, phase } of enis) {
    t.is(state.enis.get(eni.eniId)?.attachment, undefined, phase);
    t.true(state.enis.has(eni.eniId), phase);
    t.is(cluster.kept(eni.eniId)?.[0], phase);
  }
  t.regex(cluster.events().join('\n'), /DirectENIStuck .*its tags do not show that ipamd created it/);
  await cluster.stopIpamd();
});
