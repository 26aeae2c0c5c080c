import anyTest, { type TestFn } from 'ava';
import type { NecSource } from '../../../agent/supply/nec-source.ts';
import { NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import { type AgentLife, type ClusterScene, endLease, eniOf, leaseTo, openClusterScene } from './cluster-scene.ts';

const test = anyTest as TestFn<{ scene: ClusterScene }>;

test.beforeEach(async (t) => {
  t.context.scene = await openClusterScene();
});
test.afterEach.always((t) => t.context.scene.close());

const offered = (scene: ClusterScene) => (scene.nec()?.spec?.releasableIPs ?? []).map(({ ip }) => ip);
const stateOf = ({ state }: AgentLife, ip: string) => state.pool.state.addresses.get(ip)?.state;
const range = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i);
const TWO_MINUTES_MS = 121_000;

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
  await scene.pass();
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

test('cluster: looks seldom while the journal takes no offers', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 9))] }));
  agent.journal.putOffers = (offers) => {
    if (offers.length > 0) throw new Error('no space left');
  };
  await scene.pass(TWO_MINUTES_MS);
  const looks = countCalls(agent.journal, 'putOffers');
  await scene.pass(600_000);
  t.true(looks() >= 4, `${looks()} tries in ten minutes`);
  t.true(looks() <= 20, `${looks()} tries in ten minutes`);
});

test('cluster: believes in a restored object once it can be read, however long that takes', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(10, 5))] }));
  const backup = scene.api.api.store.snapshot();
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', range(20, 5))] }));
  await scene.pass();
  const heal = scene.api.api.faults.add({ userAgent: 'agent', verbs: ['get'], action: { kind: 'drop-before' } });
  scene.api.restore(backup);
  await scene.pass(60_000);
  heal();
  await scene.pass(60_000);
  t.is(scene.nec()?.spec?.observedSupplyEpoch, 2, 'which tells ipamd');
  t.is(stateOf(agent, '10.0.1.20'), 'free', 'what was in force stays');
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
