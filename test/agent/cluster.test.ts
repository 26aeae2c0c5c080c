import anyTest, { type TestFn } from 'ava';
import { NODE_ENI_CONFIGS, PODS } from '../../kube/resource-types.ts';
import {
  type AgentLife,
  type ClusterScene,
  endLease,
  eniOf,
  leaseTo,
  openClusterScene,
} from './cluster/cluster-scene.ts';

const test = anyTest as TestFn<{ scene: ClusterScene }>;

test.beforeEach(async (t) => {
  t.context.scene = await openClusterScene();
});
test.afterEach.always((t) => t.context.scene.close());

const offered = (scene: ClusterScene) => (scene.nec()?.spec?.releasableIPs ?? []).map(({ ip }) => ip);
const stateOf = ({ state }: AgentLife, ip: string) => state.pool.state.addresses.get(ip)?.state;
const range = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i);
const TWO_MINUTES_MS = 121_000;

test('cluster: says what it wants, and puts supply in force as it comes', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await scene.pass();
  t.is(scene.nec()?.spec?.desiredRouteENIIP, 5);
  t.deepEqual(scene.nec()?.spec?.readyResources, ['tke.cloud.tencent.com/eni-ip']);
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 5))] }));
  await scene.pass();
  t.is(agent.state.pool.counts().free, 5);
  t.is(scene.nec()?.spec?.observedSupplyEpoch, 1);
  leaseTo(agent, 'p1', scene.clock.bootMs());
  await scene.pass();
  t.is(scene.nec()?.spec?.desiredRouteENIIP, 6);
});

test('cluster: tells those who watch of supply and of what it published', async (t) => {
  const { scene } = t.context;
  const { signs } = scene.startAgent();
  await scene.pass();
  t.true(signs.includes('publish: demand published: 5 addresses'), signs.join('\n'));
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 5))] }));
  await scene.pass();
  t.true(signs.includes('supply: in force: epoch 1, 1 ENIs, 5 addresses more, 0 less'), signs.join('\n'));
});

test('cluster: keeps fields that it does not know', async (t) => {
  const { scene } = t.context;
  await scene.edit((object) => ({
    ...object,
    metadata: { ...object.metadata, annotations: { theirs: 'kept' } },
    spec: { maxRouteENI: 3, maxIPPerENI: 9 },
  }));
  scene.startAgent();
  await scene.pass();
  t.is(scene.nec()?.metadata.annotations?.['theirs'], 'kept');
  t.is(scene.nec()?.spec?.maxIPPerENI, 9);
});

test('cluster: gives surplus back one address in two minutes, the emptiest ENI first', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 4)), eniOf('b', range(10, 4))] }));
  const ip = leaseTo(agent, 'p1', scene.clock.bootMs());
  t.is(ip, '10.0.1.10');
  await scene.pass();
  t.deepEqual(offered(scene), []);
  await scene.pass(TWO_MINUTES_MS);
  t.deepEqual(offered(scene), ['10.0.2.10']);
  t.is(stateOf(agent, '10.0.2.10'), 'withdrawn');
  await scene.pass(TWO_MINUTES_MS);
  t.deepEqual(offered(scene), ['10.0.2.10', '10.0.2.11']);
  await scene.pass(2 * TWO_MINUTES_MS);
  t.is(offered(scene).length, 2, 'what is left is warm');
});

test('cluster: gives all surplus back at a time when the object says so', async (t) => {
  const { scene } = t.context;
  await scene.edit((object) => ({ ...object, spec: { enableQuickRelease: true } }));
  scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 9))] }));
  await scene.pass(TWO_MINUTES_MS);
  t.is(offered(scene).length, 4);
});

test('cluster: gives back at once what is beyond the limit, and what a draining ENI has', async (t) => {
  const { scene } = t.context;
  await scene.edit((object) => ({ ...object, spec: { maxRouteENI: 1, maxIPPerENI: 3 } }));
  scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 5))] }));
  t.is(offered(scene).length, 2);
  await scene.supply((status) => ({ ...status, eniInfos: [{ ...eniOf('a', range(10, 5)), draining: true }] }));
  t.is(offered(scene).length, 5);
});

test('cluster: takes an offer back before it asks for more', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 6))] }));
  await scene.pass(TWO_MINUTES_MS);
  t.is(offered(scene).length, 1);
  leaseTo(agent, 'p1', scene.clock.bootMs());
  await scene.pass();
  t.deepEqual(offered(scene), []);
  t.is(scene.nec()?.spec?.desiredRouteENIIP, 6);
  t.is(agent.state.pool.counts().free, 5);
  t.deepEqual(agent.journal.load().offers ?? [], []);
});

test('cluster: forgets an offer that was taken, and uses the address when it comes back', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 6))] }));
  await scene.pass(TWO_MINUTES_MS);
  const [ip] = offered(scene);
  t.is(ip, '10.0.1.10');
  const releasing = { ...eniOf('a', [10]).addresses[0], state: 'Releasing' };
  const rest = eniOf('a', range(11, 5));
  await scene.supply((status) => ({
    ...status,
    eniInfos: [{ ...rest, addresses: [releasing, ...rest.addresses] } as typeof rest],
  }));
  t.is(stateOf(agent, '10.0.1.10'), 'withdrawn');
  await scene.supply((status) => ({ ...status, eniInfos: [rest] }));
  t.is(stateOf(agent, '10.0.1.10'), undefined);
  t.deepEqual(agent.journal.load().offers ?? [], []);
  const again = { ip: '10.0.1.10', assignmentID: 'another', state: 'Assigned' as const };
  await scene.supply((status) => ({ ...status, eniInfos: [{ ...rest, addresses: [again, ...rest.addresses] }] }));
  t.is(stateOf(agent, '10.0.1.10'), 'free');
});

test('cluster: an offer outlives a kill between its record and its write, and its address stays out of use', async (t) => {
  const { scene } = t.context;
  const first = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 6))] }));
  const heal = scene.api.api.faults.add({ userAgent: 'agent', verbs: ['update'], action: { kind: 'drop-before' } });
  await scene.pass(TWO_MINUTES_MS);
  t.deepEqual(offered(scene), []);
  t.is(first.journal.load().offers?.length, 1);
  first.kill();
  heal();
  const second = scene.startAgent();
  t.is(stateOf(second, '10.0.1.10'), 'withdrawn');
  await scene.pass();
  t.deepEqual(offered(scene), ['10.0.1.10']);
});

test('cluster: makes demand visible when an ADD waits and when Pods come', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 5))] }));
  agent.state.addsWaiting.set('c1/eth0', { podNamespace: 'default', podName: 'p1' });
  agent.state.demandChanged.notify();
  await scene.pass();
  t.is(scene.nec()?.spec?.desiredRouteENIIP, 6);
  for (const name of ['p1', 'p2']) await scene.kube.create(PODS, podOf(name, 'n1'));
  await scene.kube.create(PODS, podOf('elsewhere', 'n2'));
  await scene.kube.create(PODS, podOf('in-host', 'n1', { hostNetwork: true }));
  await scene.pass();
  t.is(scene.nec()?.spec?.desiredRouteENIIP, 7);
});

function podOf(name: string, nodeName: string, spec: object = {}) {
  const containers = [{ name: 'c', image: 'i' }];
  const metadata = { name, namespace: 'default' };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName, containers, ...spec } };
}

test('cluster: goes on through an outage and its own restart in it, and publishes when it is over', async (t) => {
  const { scene } = t.context;
  const first = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 5))] }));
  leaseTo(first, 'p1', scene.clock.bootMs());
  await scene.pass();
  const { heal } = scene.api.partition('agent');
  leaseTo(first, 'p2', scene.clock.bootMs());
  await scene.pass(3_600_000);
  first.kill();
  const second = scene.startAgent();
  await scene.pass(3_600_000);
  t.truthy(leaseTo(second, 'p3', scene.clock.bootMs()));
  t.is(scene.nec()?.spec?.desiredRouteENIIP, 6);
  heal();
  await scene.pass(60_000);
  t.is(scene.nec()?.spec?.desiredRouteENIIP, 8);
});

test('cluster: distrusts a restored object until ipamd described the cloud again', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 5))] }));
  await scene.pass();
  const backup = scene.api.api.store.snapshot();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(20, 5))] }));
  await scene.pass();
  t.is(scene.nec()?.spec?.observedSupplyEpoch, 2);
  scene.api.restore(backup);
  await scene.pass(60_000);
  t.is(stateOf(agent, '10.0.1.20'), 'free', 'what was in force stays');
  t.is(stateOf(agent, '10.0.1.10'), undefined);
  t.is(scene.nec()?.status?.supplyEpoch, 1);
  t.is(scene.nec()?.spec?.observedSupplyEpoch, 2, 'which tells ipamd');
  await scene.edit((object) => ({ ...object, status: { supplyEpoch: 3, eniInfos: [eniOf('a', range(20, 5))] } }));
  await scene.pass();
  t.is(scene.nec()?.spec?.observedSupplyEpoch, 3);
});

test('cluster: uses nothing of an earlier life before its own first write, which takes that life’s offers out', async (t) => {
  const { scene } = t.context;
  const first = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 6))] }));
  await scene.pass(TWO_MINUTES_MS);
  t.is(offered(scene).length, 1);
  first.kill();
  scene.loseJournal();
  const heal = scene.api.api.faults.add({ userAgent: 'agent', verbs: ['update'], action: { kind: 'drop-before' } });
  const second = scene.startAgent();
  await scene.pass();
  t.is(second.state.pool.counts().total, 0);
  heal();
  await scene.pass(60_000);
  t.deepEqual(offered(scene), []);
  t.is(second.state.pool.counts().free, 6);
});

test('cluster: waits for an object that is not there yet, and says so', async (t) => {
  const scene = await openClusterScene({ hasNec: false });
  t.teardown(() => scene.close());
  const agent = scene.startAgent();
  await scene.pass();
  t.regex(agent.cluster.supply.waitsFor() ?? '', /no NodeENIConfig n1 yet/);
  await scene.kube.create(NODE_ENI_CONFIGS, {
    apiVersion: 'networking.tke.cloud.tencent.com/v1',
    kind: 'NodeENIConfig',
    metadata: { name: 'n1' },
  });
  await scene.pass();
  t.is(agent.cluster.supply.waitsFor(), undefined);
  t.is(scene.nec()?.spec?.desiredRouteENIIP, 5);
});

test('cluster: keeps leases when the object is deleted and made again', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 5))] }));
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 6))] }));
  const ip = leaseTo(agent, 'p1', scene.clock.bootMs()) ?? '';
  await scene.kube.delete(NODE_ENI_CONFIGS, { name: 'n1' });
  await scene.pass();
  t.is(stateOf(agent, ip), 'leased');
  await scene.kube.create(NODE_ENI_CONFIGS, {
    apiVersion: 'networking.tke.cloud.tencent.com/v1',
    kind: 'NodeENIConfig',
    metadata: { name: 'n1' },
  });
  await scene.pass();
  t.is(scene.nec()?.spec?.observedSupplyEpoch, 2, 'so that ipamd describes the cloud, and counts on from there');
  t.is(stateOf(agent, ip), 'leased');
  t.is(agent.state.pool.counts().total, 6);
  await scene.edit((object) => ({ ...object, status: { supplyEpoch: 3, eniInfos: [eniOf('a', range(10, 4))] } }));
  t.is(agent.state.pool.counts().total, 4);
});

test('cluster: names what is wrong with annotations once, and takes the rest', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  const annotations = {
    'tke.cloud.tencent.com/route-eni-ip-min-warm-target': '2',
    'tke.cloud.tencent.com/route-eni-ip-max-warm-target': 'many',
    'tke.cloud.tencent.com/route-eni-max-attach': '1',
    'tke.cloud.tencent.com/max-ip-per-route-eni': '3',
  };
  await scene.edit((object) => ({ ...object, metadata: { ...object.metadata, annotations } }));
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 2))] }));
  await scene.pass();
  t.is(agent.told.length, 1);
  t.regex(agent.told[0] ?? '', /AnnotationInvalid: .*route-eni-ip-max-warm-target/);
  t.is(scene.nec()?.spec?.desiredRouteENIIP, 3, 'the limit holds');
});

test('cluster: keeps the last good supply when the object is edited into nonsense, and mends its own fields', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 5))] }));
  const twice = [eniOf('a', range(10, 5)), { ...eniOf('b', []), mac: '02:00:00:00:00:01' }];
  await scene.edit((object) => ({
    ...object,
    spec: { desiredRouteENIIP: 0 },
    status: { supplyEpoch: 2, eniInfos: twice },
  }));
  await scene.pass();
  t.is(agent.state.pool.counts().free, 5);
  t.is(scene.nec()?.spec?.desiredRouteENIIP, 5);
  t.regex(agent.cluster.supply.waitsFor() ?? '', /cannot be read/);
  t.regex(agent.told.join(), /ObjectInvalid: .*mac/);
});

test('cluster: decides again when somebody wrote in between', async (t) => {
  const { scene } = t.context;
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 5))] }));
  // It is the watches opened from now on that lag.
  const heal = scene.api.api.faults.add({
    userAgent: 'agent',
    verbs: ['watch'],
    action: { kind: 'watch-delay', ms: 20_000 },
  });
  const agent = scene.startAgent();
  await scene.pass();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 7))] }));
  leaseTo(agent, 'p1', scene.clock.bootMs());
  await scene.pass(5_000);
  heal();
  t.is(agent.state.pool.counts().total, 7, 'what the conflict told is in force already');
  t.is(scene.nec()?.spec?.desiredRouteENIIP, 6);
  t.is(scene.nec()?.status?.eniInfos?.[0]?.addresses?.length, 7);
});

test('cluster: stays ready over a restart and a short failure', async (t) => {
  const { scene } = t.context;
  const first = scene.startAgent();
  await scene.pass();
  first.kill();
  const second = scene.startAgent();
  second.isReady = false;
  await scene.pass(20_000);
  t.is(scene.nec()?.spec?.readyResources?.length, 1);
  await scene.pass(120_000);
  t.deepEqual(scene.nec()?.spec?.readyResources, []);
});

test('cluster: an address that is free again goes the way of all surplus', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 6))] }));
  leaseTo(agent, 'p1', scene.clock.bootMs());
  await scene.pass(TWO_MINUTES_MS);
  t.deepEqual(offered(scene), []);
  endLease(agent, 'p1', scene.clock.bootMs());
  await scene.pass();
  t.is(offered(scene).length, 1);
});
