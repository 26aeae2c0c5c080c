import test from 'ava';
import { NODES } from '../../../kube/resource-types.ts';
import { NodeWorld, UNINITIALIZED } from '../node-world.ts';

const ID = 'ins-aaaa0001';
const OTHER = { key: 'mine', effect: 'NoExecute' };

test('runNodeController: initialises a Node that waits, with addresses, labels, providerID, and without the taint', async (t) => {
  const world = await NodeWorld.start();
  const ip = world.addInstance(ID, { publicIps: ['203.0.113.9'], ipv6s: ['fd00::9'], memoryGib: 16 });
  const addresses = [{ type: 'InternalIP', address: ip }];
  await world.join('n1', {
    providerID: `tencentcloud:///ap-guangzhou-3/${ID}`,
    taints: [UNINITIALIZED, OTHER],
    addresses,
  });
  await world.advance(3_000);
  const node = world.node('n1');
  t.deepEqual(node?.taints, [OTHER]);
  t.deepEqual(node?.addresses, [
    { type: 'InternalIP', address: ip },
    { type: 'InternalIP', address: 'fd00::9' },
    { type: 'ExternalIP', address: '203.0.113.9' },
    { type: 'Hostname', address: 'n1' },
  ]);
  t.like(node?.labels, {
    'node.kubernetes.io/instance-type': 'S5.4CORE',
    'topology.kubernetes.io/zone': 'ap-guangzhou-3',
    'topology.kubernetes.io/region': 'ap-guangzhou',
    'failure-domain.beta.kubernetes.io/zone': 'ap-guangzhou-3',
    'topology.com.tencent.cloud.csi.cbs/zone': 'ap-guangzhou-3',
    'node.tke.cloud.tencent.com/cpu': '4',
    'node.tke.cloud.tencent.com/memory': '16',
  });
  t.is(node?.networkUnavailable, undefined);
  t.deepEqual(world.scene.events('Synced'), ['Node synced successfully']);
  await world.stop();
});

test('runNodeController: labels of what the instance has follow a resize, and those of its place stay', async (t) => {
  const world = await NodeWorld.start();
  await world.joinInstance('n1', ID);
  await world.advance(3_000);
  t.like(world.node('n1')?.labels, { 'node.tke.cloud.tencent.com/cpu': '4', 'node.tke.cloud.tencent.com/memory': '8' });
  const { admin, clock, host } = world.scene;
  const body = { metadata: { labels: { 'topology.kubernetes.io/zone': '100003' } } };
  await clock.run(admin.patch(NODES, { name: 'n1' }, { kind: 'merge', body }));
  Object.assign(host.model.state.instance(ID), { cores: 8, memoryGib: 32, instanceType: 'S5.8CORE' });
  await world.advance(900_000);
  t.like(world.node('n1')?.labels, {
    'node.kubernetes.io/instance-type': 'S5.8CORE',
    'beta.kubernetes.io/instance-type': 'S5.8CORE',
    'node.tke.cloud.tencent.com/cpu': '8',
    'node.tke.cloud.tencent.com/memory': '32',
    'topology.kubernetes.io/zone': '100003',
  });
  await world.stop();
});

test('runNodeController: writes zones as TKE does, and what is unavailable until a route comes', async (t) => {
  const world = await NodeWorld.start('--zone-labels=number', '--provider-id-form=qcloud', '--expect-routes=true');
  const ip = world.addInstance(ID);
  await world.joinInstance('ready', 'ins-aaaa0002');
  await world.advance(2_000);
  const seen: string[] = [];
  const watching = new AbortController();
  void (async () => {
    const { admin } = world.scene;
    const page = await admin.listPage(
      { group: '', version: 'v1', plural: 'nodes', kind: 'Node', isNamespaced: false },
      {},
    );
    const query = { resourceVersion: page.resourceVersion };
    for await (const event of admin.watch(
      { group: '', version: 'v1', plural: 'nodes', kind: 'Node', isNamespaced: false },
      query,
      watching.signal,
    )) {
      if (event.kind === 'bookmark' || event.object.metadata.name !== 'n1') continue;
      const node = world.node('n1');
      seen.push(`${node?.isUninitialized} ${node?.networkUnavailable}`);
    }
  })().catch(() => undefined);
  await world.advance(100);
  await world.join('n1', { taints: [UNINITIALIZED], annotations: { 'alpha.kubernetes.io/provided-node-ip': ip } });
  await world.advance(5_000);
  watching.abort();
  const node = world.node('n1');
  t.is(node?.providerIdText, `qcloud:///100003/${ID}`);
  t.like(node?.labels, { 'topology.kubernetes.io/zone': '100003', 'topology.kubernetes.io/region': 'gz' });
  t.is(node?.networkUnavailable, 'True');
  t.false(seen.includes('false undefined'), seen.join(', '));
  await world.stop();
});

test('runNodeController: finds the instance of a kubeadm Node by its address in the VPC', async (t) => {
  const world = await NodeWorld.start('--vpc-id=vpc-00000001');
  const address = world.addInstance(ID);
  await world.join('n1', { addresses: [{ type: 'InternalIP', address }] });
  await world.join('stranger', { addresses: [{ type: 'InternalIP', address: '10.0.0.250' }] });
  await world.advance(3_000);
  t.is(world.node('n1')?.providerIdText, `tencentcloud:///ap-guangzhou-3/${ID}`);
  t.is(world.node('stranger')?.providerIdText, '');
  t.deepEqual(world.scene.events('InstanceUnknown'), [
    'the Node has no spec.providerID, and no instance of vpc-00000001 has the address 10.0.0.250',
  ]);
  await world.stop();
});

test('runNodeController: says what is wrong with a Node, once, and leaves it as it is', async (t) => {
  const world = await NodeWorld.start();
  const taints = [UNINITIALIZED];
  world.addInstance(ID);
  await world.join('malformed', { providerID: 'qcloud:///100003/ins-', taints });
  await world.join('missing', { providerID: 'qcloud:///100003/ins-none0000', taints });
  const provided = { 'alpha.kubernetes.io/provided-node-ip': '192.0.2.1' };
  await world.join('elsewhere', { providerID: `qcloud:///100003/${ID}`, taints, annotations: provided });
  await world.joinInstance('first', 'ins-aaaa0002');
  await world.join('second', { providerID: 'qcloud:///100003/ins-aaaa0002', taints });
  for (const [name, providerID] of [
    ['aws', 'aws:///eu-west-1/i-0123'],
    ['native', 'tencentcloud://kn-aaaa0001'],
    ['native-cvm', 'tencentcloud://ins-aaaa0003'],
  ] as const)
    await world.join(name, { providerID, taints });
  await world.join('super', { taints, labels: { 'node.kubernetes.io/instance-type': 'eklet' } });
  await world.advance(5 * 60_000);
  for (const name of ['malformed', 'missing', 'elsewhere', 'second', 'aws', 'native', 'native-cvm', 'super'])
    t.deepEqual(world.node(name)?.taints, taints, name);
  t.deepEqual(
    world.scene
      .events('InstanceUnknown')
      .map((text) => text.slice(0, 50))
      .sort(),
    ['spec.providerID "qcloud:///100003/ins-" names no i', 'the cloud has no instance ins-none0000 in this acc'],
  );
  t.regex(
    world.scene.events('AddressInvalid').join('\n'),
    /^alpha\.kubernetes\.io\/provided-node-ip 192\.0\.2\.1 is no address of ins-aaaa0001/,
  );
  t.deepEqual([...new Set(world.scene.events('InstanceTaken').map((text) => /Node (\w+)/.exec(text)?.[1]))].sort(), [
    'first',
  ]);
  await world.stop();
});

test('runNodeController: goes on after the cloud was away, and follows addresses', async (t) => {
  const world = await NodeWorld.start();
  const heal = world.scene.host.faults.add({ fault: { kind: 'http', status: 503 } });
  world.addInstance(ID);
  await world.join('n1', { providerID: `qcloud:///100003/${ID}`, taints: [UNINITIALIZED] });
  await world.advance(3 * 60_000);
  t.true(world.node('n1')?.isUninitialized);
  heal();
  await world.advance(2 * 60_000);
  t.false(world.node('n1')?.isUninitialized);
  const instance = world.scene.host.model.state.instances.get(ID);
  if (instance !== undefined) instance.publicIps = ['203.0.113.7'];
  await world.advance(6 * 60_000);
  t.true(world.node('n1')?.addresses.some(({ address }) => address === '203.0.113.7'));
  await world.stop();
});

test('runNodeController: describes a hundred Nodes that join in one request', async (t) => {
  const world = await NodeWorld.start();
  for (let index = 0; index < 100; index++) world.addInstance(`ins-bulk${String(index).padStart(4, '0')}`);
  await world.advance(5_000);
  world.scene.host.forget();
  for (const id of world.scene.host.model.state.instances.keys())
    await world.join(`node-${id}`, { providerID: `qcloud:///100003/${id}`, taints: [UNINITIALIZED] });
  await world.advance(60_000);
  t.is(world.names().filter((name) => world.node(name)?.isUninitialized).length, 0);
  t.true((world.scene.host.counts()['DescribeInstances'] ?? 0) <= 5, JSON.stringify(world.scene.host.counts()));
  await world.stop();
});

test('runNodeController: measures how long new Nodes wait, by upstream’s names', async (t) => {
  const world = await NodeWorld.start();
  const heal = world.scene.host.faults.add({ fault: { kind: 'http', status: 502 }, actions: ['DescribeInstances'] });
  world.addInstance(ID);
  await world.join('n1', { providerID: `tencentcloud:///ap-guangzhou-3/${ID}`, taints: [UNINITIALIZED] });
  await world.advance(20_000);
  heal();
  await world.advance(40_000);
  t.false(world.node('n1')?.isUninitialized);
  const text = await world.metrics();
  for (const name of ['cloud_provider_taint_removal_delay_seconds', 'initial_node_sync_delay_seconds']) {
    t.regex(text, new RegExp(`^node_controller_${name}_bucket\\{le="16"\\} 0$`, 'm'));
    t.regex(text, new RegExp(`^node_controller_${name}_bucket\\{le="64"\\} 1$`, 'm'));
    t.regex(text, new RegExp(`^node_controller_${name}_count 1$`, 'm'));
  }
  await world.stop();
});

test('runNodeController: two Nodes with the address of one instance are never both initialised, and that is reported', async (t) => {
  const world = await NodeWorld.start('--vpc-id=vpc-00000001');
  const address = world.addInstance(ID);
  for (const name of ['first', 'second'])
    await world.join(name, { addresses: [{ type: 'InternalIP', address }], taints: [UNINITIALIZED], isReady: false });
  await world.advance(60_000);
  const named = ['first', 'second'].filter((name) => world.node(name)?.providerIdText !== '');
  t.true(named.length <= 1, named.join());
  t.true(world.scene.events('InstanceTaken').length >= 1);
  await world.stop();
});

test('the node controller says nothing of a Node that was deleted while the cloud was asked for its instance', async (t) => {
  const world = await NodeWorld.start();
  const { host, admin, clock } = world.scene;
  host.faults.add({ fault: { kind: 'latency', ms: 3_000 }, actions: ['DescribeInstances'] });
  await world.join('gone', { providerID: 'tencentcloud:///ap-guangzhou-3/ins-dddd0001', taints: [UNINITIALIZED] });
  await world.advance(2_000);
  await clock.run(admin.delete(NODES, { name: 'gone' }));
  await world.advance(60_000);
  t.deepEqual(world.scene.events('InstanceUnknown'), []);
  await world.stop();
});
