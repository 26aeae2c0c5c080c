import anyTest, { type TestFn } from 'ava';
import { sampleLease } from '../pool/supply-sample.ts';
import { type ClusterScene, eniOf, openClusterScene } from './cluster-scene.ts';

const test = anyTest as TestFn<{ scene: ClusterScene }>;

test.beforeEach(async (t) => {
  t.context.scene = await openClusterScene();
});
test.afterEach.always((t) => t.context.scene.close());

const UPLINKS = ['--role=uplinks'];
const READY = ['tke.cloud.tencent.com/eni-ip'];
const LIFE = 'tke.cloud.tencent.com/agent-life';

/** Writes as ipamd does for a node that Cilium serves. */
const DEMAND = {
  desiredRouteENIIP: 9,
  releasableIPs: [{ ip: '10.0.1.11', assignmentID: 'a-10.0.1.11' }],
  observedSupplyEpoch: 1,
};

test('cluster, role uplinks: publishes that it is ready, and nothing of demand', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent(UPLINKS);
  await scene.pass();
  const { spec, metadata } = scene.nec() ?? {};
  t.deepEqual(spec, { readyResources: READY } as never);
  t.is(metadata?.annotations?.[LIFE], agent.cluster.life);

  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', [10, 11])] }));
  await scene.edit((object) => ({ ...object, spec: { ...(object['spec'] as object), ...DEMAND } }));
  await scene.pass(600_000);
  t.deepEqual(scene.nec()?.spec, { ...DEMAND, readyResources: READY } as never);
  t.is(agent.state.pool.state.epoch, 1, 'the supply is in force');
  t.deepEqual(agent.journal.load().offers ?? [], [], 'offers of others are not taken for its own');
  t.deepEqual(agent.told, []);

  agent.isReady = false;
  agent.state.demandChanged.notify();
  // A node that is not ready for a moment keeps what it reports.
  await scene.pass(130_000);
  t.deepEqual(scene.nec()?.spec, { ...DEMAND, readyResources: [] } as never);
});

test('cluster, role uplinks: follows no Pods', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent(UPLINKS);
  await scene.pass();
  t.is(agent.cluster.pods, undefined);
});

test('cluster, role uplinks: is not ready at once while Pods of before it are left', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent(UPLINKS);
  await scene.pass();
  t.deepEqual(scene.nec()?.spec?.readyResources, READY);
  agent.state.leases.set('c/eth0', sampleLease('c', 'eni-a', ['10.0.1.10']));
  agent.state.demandChanged.notify();
  await scene.pass();
  t.deepEqual(scene.nec()?.spec?.readyResources, []);
  agent.state.leases.clear();
  agent.state.demandChanged.notify();
  await scene.pass();
  t.deepEqual(scene.nec()?.spec?.readyResources, READY);
});

test('cluster, role uplinks: shows a restored object that a higher epoch was in force, and keeps what it has', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent(UPLINKS);
  const supply = async (last: number): Promise<void> => {
    await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', [last])] }));
    await scene.pass();
  };
  await supply(10);
  const backup = scene.api.api.store.snapshot();
  await supply(11);
  await supply(12);
  t.is(agent.state.supply?.epoch, 3);
  scene.api.restore(backup);
  await scene.pass(60_000);
  t.is(scene.nec()?.status?.supplyEpoch, 1);
  t.is(scene.nec()?.spec?.observedSupplyEpoch, 3);
  t.deepEqual(
    agent.state.supply?.enis.flatMap(({ addresses }) => addresses.map(({ ip }) => ip)),
    ['10.0.1.12'],
  );
  await scene.edit((object) => ({ ...object, status: { eniInfos: [eniOf('a', [10])], supplyEpoch: 4 } }));
  await scene.pass();
  t.is(agent.state.supply?.epoch, 4);
  t.is(scene.nec()?.spec?.observedSupplyEpoch, 3, 'the epoch that it follows is not its own to write');
});
