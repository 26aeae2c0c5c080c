import test from 'ava';
import { NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import { auditNode, CLOUD, INSTANCE, NODE, type NodeScene, openNodeScene, supplyOf } from '../support/node-scene.ts';

function ready(scene: NodeScene) {
  return scene.nec()?.status?.conditions?.find((condition) => condition.type === 'Ready');
}

test('reconcileNode: says ENILimit with the words of the cloud when the VPC takes no more ENIs, and goes on when it does', async (t) => {
  const scene = await openNodeScene({ ...CLOUD, vpcEnis: 1 });
  scene.want(12);
  const life = scene.lead();
  t.true(await scene.until(() => ready(scene)?.reason === 'ENILimit', 120_000));
  t.regex(ready(scene)?.message ?? '', /exceeds the quota of the VPC/);
  t.is(supplyOf(scene), 9);
  const before = scene.host.counts()['CreateNetworkInterface'] ?? 0;
  await scene.pass(600_000);
  const after = scene.host.counts()['CreateNetworkInterface'] ?? 0;
  t.true(after - before <= 6, `${after - before} creations in ten minutes`);
  t.is(life.events.filter((event) => event.includes('ENILimit')).length, 1);
  t.is(life.nodeEvents.length, 1);
  t.regex(life.nodeEvents[0] ?? '', /^Warning ENILimit: .*exceeds the quota of the VPC.*, RequestId=[0-9a-f-]{36}$/);
  scene.host.model.state.vpcEniQuota = 10;
  t.true(await scene.until(() => supplyOf(scene) === 12, 1_200_000));
  await scene.pass(5_000);
  t.deepEqual(auditNode(scene), []);
  t.is(ready(scene)?.status, 'True');
  t.deepEqual(life.nodeEvents.slice(1), ['Normal SupplyMet: the node has the addresses that it wants']);
});

test('reconcileNode: reports a refused creation on the Node, once, with the RequestId of the cloud', async (t) => {
  const scene = await openNodeScene();
  const code = 'InvalidParameterValue.Malformed';
  const mend = scene.host.faults.add({ fault: { kind: 'error', code }, actions: ['CreateNetworkInterface'] });
  scene.want(5);
  const life = scene.lead();
  await scene.pass(1_800_000);
  t.true((scene.host.counts()['CreateNetworkInterface'] ?? 0) > 3);
  const events = new RegExp(`^Warning CloudRefused: .*${code}.*, RequestId=[0-9a-f-]{36}$`);
  t.is(life.nodeEvents.length, 1, life.nodeEvents.join('\n'));
  t.regex(life.nodeEvents[0] ?? '', events);
  // The condition of the object has no RequestId: each try would be a write.
  t.notRegex(ready(scene)?.message ?? '', /RequestId/);
  mend();
});

test('reconcileNode: takes another subnet when one is full, and says SubnetExhausted when all are', async (t) => {
  const subnets = [
    { subnetId: 'subnet-podsa000', zone: 'ap-guangzhou-3', cidr: '10.1.0.0/29' },
    { subnetId: 'subnet-podsb000', zone: 'ap-guangzhou-3', cidr: '10.2.0.0/29' },
    { subnetId: 'subnet-nodes000', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/24' },
  ];
  const scene = await openNodeScene({ ...CLOUD, subnets });
  scene.want(20);
  scene.lead();
  t.true(await scene.until(() => ready(scene)?.reason === 'SubnetExhausted', 120_000));
  // Five usable addresses in each, of which the ENI itself takes one.
  t.is(supplyOf(scene), 8);
  await scene.pass(120_000);
  t.deepEqual(auditNode(scene), []);
  t.is(supplyOf(scene), 8);
});

test('reconcileNode: takes another subnet when the cloud refuses to create in one', async (t) => {
  const scene = await openNodeScene();
  const code = 'InvalidParameterValue.Malformed';
  scene.host.faults.add({ fault: { kind: 'error', code }, actions: ['CreateNetworkInterface'], times: 1 });
  scene.want(5);
  scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 5, 300_000));
  t.deepEqual(auditNode(scene), []);
});

test('reconcileNode: says InstanceENILimit when others hold the places of the instance, and keeps no ENI that has none', async (t) => {
  const scene = await openNodeScene();
  const { state } = scene.host.model;
  const subnet = state.subnet('subnet-podsa000');
  for (let index = 0; index < 3; index++) {
    const order = { name: `alien-${index}`, description: '', groups: ['sg-1'], tags: {}, isPrimary: false };
    const eni = state.makeEni({ ...order, subnet, ip: subnet.pool.take() });
    eni.state = 'AVAILABLE';
    state.bind(eni, INSTANCE, index + 1);
    state.touch(eni);
  }
  scene.want(5);
  scene.lead();
  t.true(await scene.until(() => ready(scene)?.reason === 'InstanceENILimit', 300_000));
  await scene.pass(1_800_000);
  const own = [...state.enis.values()].filter((eni) => eni.tags['tke-created-eni'] === 'true');
  t.true(own.length <= 1, `${own.length} ENIs wait for a place`);
  const aliens = [...state.enis.values()].filter((eni) => eni.name.startsWith('alien') && eni.attachment !== undefined);
  t.is(aliens.length, 3);
  t.deepEqual(scene.violations, []);
});

test('reconcileNode: gives everything back and lets the object go when the instance is gone', async (t) => {
  const scene = await openNodeScene();
  scene.want(12);
  scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 12, 60_000));
  for (const address of scene.nec()?.status?.eniInfos?.[0]?.addresses ?? []) scene.inUse.add(address.ip);
  scene.host.model.state.removeInstance(INSTANCE);
  scene.facts.parts = { leaving: 'force', instance: undefined };
  await scene.clock.run(scene.kube.delete(NODE_ENI_CONFIGS, { name: NODE }));
  t.true(await scene.until(() => scene.nec() === undefined, 300_000));
  t.deepEqual(
    [...scene.host.model.state.enis.values()].filter((eni) => !eni.isPrimary),
    [],
  );
});

test('reconcileNode: drains a node that leaves, and waits for the addresses in use', async (t) => {
  const scene = await openNodeScene();
  scene.want(12);
  scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 12, 60_000));
  const used = scene.nec()?.status?.eniInfos?.[0]?.addresses?.[0]?.ip ?? '';
  scene.inUse.add(used);
  scene.facts.parts = { leaving: 'drain' };
  await scene.clock.run(scene.kube.delete(NODE_ENI_CONFIGS, { name: NODE }));
  await scene.pass(300_000);
  const left = scene.nec()?.status?.eniInfos ?? [];
  t.deepEqual(
    left.map((eni) => eni.addresses?.map((address) => address.ip)),
    [[used]],
  );
  t.deepEqual(scene.violations, []);
  scene.inUse.clear();
  t.true(await scene.until(() => scene.nec() === undefined, 300_000));
  t.deepEqual(
    [...scene.host.model.state.enis.values()].filter((eni) => !eni.isPrimary),
    [],
  );
});

test('reconcileNode: drains the ENIs above the limit, the emptiest first', async (t) => {
  const scene = await openNodeScene();
  scene.want(20);
  scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 20, 60_000));
  scene.facts.parts = { maxRouteENI: 2 };
  scene.want(18);
  t.true(await scene.until(() => scene.nec()?.status?.eniInfos?.length === 2, 300_000));
  await scene.pass(10_000);
  t.is(supplyOf(scene), 18);
  t.deepEqual(auditNode(scene), []);
});

test('reconcileNode: keeps fields that it does not know, deep inside too', async (t) => {
  const scene = await openNodeScene();
  scene.want(5);
  scene.lead();
  t.true(await scene.until(() => supplyOf(scene) === 5, 60_000));
  await scene.edit((nec) => ({ ...nec, metadata: { ...nec.metadata, annotations: { 'by-people': 'kept' } } }));
  scene.want(9);
  t.true(await scene.until(() => supplyOf(scene) === 9, 60_000));
  t.is(scene.nec()?.metadata.annotations?.['by-people'], 'kept');
  t.deepEqual(scene.nec()?.metadata.finalizers, ['networking.tke.cloud.tencent.com/cloud-resources']);
});
