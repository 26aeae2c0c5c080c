import anyTest, { type TestFn } from 'ava';
import { GATHER_DEMAND_MS } from '../../agent/supply/may-gather.ts';
import type { NecSource } from '../../agent/supply/nec-source.ts';
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
/** Until what is gathered is written. */
const GATHERED_MS = GATHER_DEMAND_MS + 1_000;

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

test('cluster: makes demand visible when an ADD waits and when Pods come', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 5))] }));
  agent.state.addsWaiting.set('c1/eth0', { podNamespace: 'default', podName: 'p1' });
  agent.state.demandChanged.notify();
  await scene.pass(GATHERED_MS);
  t.is(scene.nec()?.spec?.desiredRouteENIIP, 6);
  for (const name of ['p1', 'p2']) await scene.kube.create(PODS, podOf(name, 'n1'));
  await scene.kube.create(PODS, podOf('elsewhere', 'n2'));
  await scene.kube.create(PODS, podOf('in-host', 'n1', { hostNetwork: true }));
  await scene.pass(GATHERED_MS);
  t.is(scene.nec()?.spec?.desiredRouteENIIP, 7);
});

test('cluster: Pods that come one by one are one write, and no later than ten seconds after the first', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 5))] }));
  await scene.pass(60_000);
  leaseTo(agent, 'p1', scene.clock.bootMs());
  await scene.pass(6_000);
  leaseTo(agent, 'p2', scene.clock.bootMs());
  await scene.pass(GATHER_DEMAND_MS - 6_000);
  t.is(scene.nec()?.spec?.desiredRouteENIIP, 5);
  await scene.pass(100);
  t.is(scene.nec()?.spec?.desiredRouteENIIP, 7);
});

test('cluster: a gathered write that failed does not wait again', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 5))] }));
  await scene.pass(60_000);
  leaseTo(agent, 'p1', scene.clock.bootMs());
  await scene.pass(GATHER_DEMAND_MS - 1_000);
  const action = { kind: 'status', code: 500, reason: 'InternalError' } as const;
  const heal = scene.api.api.faults.add({ verbs: ['update'], resources: ['nodeeniconfigs'], action });
  await scene.pass(2_000);
  t.is(scene.nec()?.spec?.desiredRouteENIIP, 5);
  heal();
  await scene.pass(5_000);
  t.is(scene.nec()?.spec?.desiredRouteENIIP, 6);
});

function podOf(name: string, nodeName: string, spec: object = {}) {
  const containers = [{ name: 'c', image: 'i' }];
  const metadata = { name, namespace: 'default' };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName, containers, ...spec } };
}

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

test('cluster: an address that ipamd took stays out of use when the supply without it could not be recorded', async (t) => {
  const { scene } = t.context;
  const first = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 6))] }));
  await scene.pass(TWO_MINUTES_MS);
  t.deepEqual(offered(scene), ['10.0.1.10']);
  first.journal.putSupply = () => {
    throw new Error('no space left');
  };
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(11, 5))] }));
  await scene.pass();
  first.kill();
  const { heal } = scene.api.partition('agent');
  const second = scene.startAgent();
  await scene.pass(60_000);
  t.is(second.state.pool.counts().free, 5);
  t.not(stateOf(second, '10.0.1.10'), 'free');
  heal();
  await scene.pass(60_000);
  t.is(stateOf(second, '10.0.1.10'), undefined);
  t.deepEqual(second.journal.load().offers ?? [], []);
});

test('cluster: a supply that could not be recorded is recorded when there is room again', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await scene.pass();
  const put = agent.journal.putSupply.bind(agent.journal);
  agent.journal.putSupply = () => {
    throw new Error('no space left');
  };
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 5))] }));
  agent.journal.putSupply = put;
  leaseTo(agent, 'p1', scene.clock.bootMs());
  await scene.pass(GATHERED_MS);
  t.is(agent.journal.load().supply?.epoch, 1);
});

test('cluster: looks seldom while there is no object, whatever was to be given back', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 9))] }));
  await scene.pass(1_000);
  await scene.kube.delete(NODE_ENI_CONFIGS, { name: 'n1' });
  await scene.pass(TWO_MINUTES_MS);
  const looks = countCalls(agent.cluster.supply as NecSource, 'publish');
  await scene.pass(60_000);
  t.true(looks() <= 2, `${looks()} looks in a minute`);
});

function countCalls<K extends string>(of: { [key in K]: (...args: never[]) => unknown }, name: K): () => number {
  let count = 0;
  const real = of[name].bind(of);
  of[name] = (...args: never[]) => {
    count++;
    return real(...args);
  };
  return () => count;
}

test('cluster: writes a supply to the journal once, whatever else happens in the object', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 20))] }));
  await scene.pass();
  const written: string[] = [];
  const put = agent.journal.putSupply.bind(agent.journal);
  agent.journal.putSupply = (supply) => {
    written.push(JSON.stringify(supply));
    put(supply);
  };
  for (let turn = 0; turn < 10; turn++) {
    leaseTo(agent, `p${turn}`, scene.clock.bootMs());
    await scene.pass(20_000);
    if (turn % 2 === 0) endLease(agent, `p${turn}`, scene.clock.bootMs());
    await scene.pass(20_000);
    await scene.edit((object) => ({ ...object, metadata: { ...object.metadata, labels: { turn: String(turn) } } }));
  }
  t.deepEqual(written, []);
});
