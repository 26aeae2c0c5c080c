import anyTest, { type TestFn } from 'ava';
import { CILIUM_NODES, CUSTOM_RESOURCE_DEFINITIONS } from '../../../kube/resource-types.ts';
import { CILIUM_NODE_DEFINITION } from '../../support/cilium-node-definition.ts';
import { type CiliumNodeScene, openCiliumNodeScene } from './cilium-node-scene.ts';
import { endLease, eniOf, leaseTo } from './cluster-scene.ts';

const test = anyTest as TestFn<{ scene: CiliumNodeScene }>;

test.beforeEach(async (t) => {
  t.context.scene = await openCiliumNodeScene();
});
test.afterEach.always((t) => t.context.scene.close());

const [A, B, C, D] = ['192.168.1.1', '192.168.1.2', '192.168.1.3', '192.168.1.4'] as const;

test('cilium-node: waits while there is no object, and while there are too few addresses', async (t) => {
  const { scene } = t.context;
  const agent = scene.startAgent(['--reserve-node-addresses']);
  const waits = "Waiting for initial IP to become available in 'n1' custom resource";
  await scene.pass(10_000);
  t.is(agent.state.supplyWaitsFor(), waits);
  await scene.create({ [A]: {} });
  await scene.pass(10_000);
  t.is(agent.state.supply, undefined);
  t.is(agent.state.supplyWaitsFor(), waits);
  await scene.setPool({ [A]: {}, [B]: {}, [C]: {}, [D]: {} });
  t.is(agent.state.supplyWaitsFor(), undefined);
  await scene.pass();
  t.deepEqual(scene.used(), { [A]: { owner: 'router' }, [B]: { owner: 'health' } }, 'written at once');
});

test('cilium-node: writes what is in use at most every 15 s, and keeps what others wrote', async (t) => {
  const { scene } = t.context;
  await scene.create({ [A]: {}, [B]: { resource: 'rack-7' }, [C]: {} });
  await scene.patchStatus({ 'operator-status': { error: 'full' }, used: { '10.9.9.9': { owner: 'stale/one' } } });
  const agent = scene.startAgent();
  await scene.pass(5_000);
  t.deepEqual(scene.used(), {});
  t.is(leaseTo(agent, 'p1', scene.clock.bootMs()), A);
  await scene.pass(5_000);
  t.deepEqual(scene.used(), {}, 'not before its time');
  t.is(leaseTo(agent, 'p2', scene.clock.bootMs()), B);
  await scene.pass(15_000);
  t.deepEqual(scene.used(), { [A]: { owner: 'default/p1' }, [B]: { owner: 'default/p2', resource: 'rack-7' } });
  t.deepEqual(scene.status()['operator-status'], { error: 'full' });
});

test('cilium-node: an address that left the pool stays with its Pod, and is given to no other, also after a restart', async (t) => {
  const { scene } = t.context;
  await scene.create({ [A]: {}, [B]: {} });
  const first = scene.startAgent();
  await scene.pass();
  t.is(leaseTo(first, 'p1', scene.clock.bootMs()), A);
  await scene.setPool({ [B]: {} });
  first.kill();
  const second = scene.startAgent();
  await scene.pass(20_000);
  t.deepEqual(scene.used(), { [A]: { owner: 'default/p1' } });
  t.is(leaseTo(second, 'p2', scene.clock.bootMs()), B);
  endLease(second, 'p1', scene.clock.bootMs());
  t.is(leaseTo(second, 'p3', scene.clock.bootMs()), undefined);
});

test('cilium-node: a free address is given up, from the journal on; one in use is not', async (t) => {
  const { scene } = t.context;
  await scene.create({ [A]: {}, [B]: {}, [C]: {} });
  const first = scene.startAgent();
  await scene.pass();
  t.is(leaseTo(first, 'p1', scene.clock.bootMs()), A);
  first.kill();
  await scene.mark(A, B, '10.0.0.99');
  const agent = scene.startAgent();
  await scene.pass();
  t.deepEqual(scene.releases(), { [A]: 'do-not-release', [B]: 'ready-for-release', '10.0.0.99': 'do-not-release' });
  t.is(leaseTo(agent, 'p2', scene.clock.bootMs()), C);
  t.is(leaseTo(agent, 'p3', scene.clock.bootMs()), undefined, 'B is given to nobody');
  agent.kill();
  const last = scene.startAgent();
  t.is(leaseTo(last, 'p3', scene.clock.bootMs()), undefined, 'nor after a restart without the API server');
  await scene.setPool({ [A]: {}, [C]: {} });
  await scene.patchStatus({ 'release-ips': { [A]: null, [B]: 'released', '10.0.0.99': null } });
  await scene.pass();
  t.deepEqual(scene.releases(), {}, 'an entry that is done is dropped');
});

test('cilium-node: a mark that was taken back before the answer gives nothing up', async (t) => {
  const { scene } = t.context;
  await scene.create({ [A]: {} });
  const agent = scene.startAgent();
  await scene.pass();
  await scene.mark(A);
  await scene.patchStatus({ 'release-ips': { [A]: null } });
  await scene.pass(5_000);
  t.deepEqual(scene.releases(), {});
  t.is(leaseTo(agent, 'p1', scene.clock.bootMs()), A);
});

test('cilium-node: CIDRs are refused by name, once, and the rest is served', async (t) => {
  const { scene } = t.context;
  await scene.create({ '10.1.0.0/24': {}, [A]: {}, 'fd00::1': {} });
  const agent = scene.startAgent();
  await scene.pass(20_000);
  await scene.setPool({ '10.1.0.0/24': {}, [A]: {}, [B]: {}, 'fd00::1': {} });
  await scene.pass(20_000);
  t.is(agent.told.length, 1, agent.told.join('\n'));
  t.regex(agent.told[0] ?? '', /ObjectInvalid: .*10\.1\.0\.0\/24: expected a single address; CIDRs are not served/);
  t.regex(agent.state.supplyWaitsFor() ?? '', /10\.1\.0\.0\/24/);
  t.is(leaseTo(agent, 'p1', scene.clock.bootMs()), A);
});

test('cilium-node: an address with an owner is for that Pod', async (t) => {
  const { scene } = t.context;
  await scene.create({ [A]: { owner: 'default/web-0' }, [B]: {}, [C]: { owner: 'ingress' } });
  const agent = scene.startAgent();
  await scene.pass();
  t.is(leaseTo(agent, 'p1', scene.clock.bootMs()), B);
  t.is(leaseTo(agent, 'p2', scene.clock.bootMs()), undefined);
  const request = { key: 'web/eth0', families: [4] as const, pod: { namespace: 'default', name: 'web-0', uid: 'u1' } };
  const result = agent.state.pool.leaseStatic(request);
  t.deepEqual(result.kind === 'leased' ? result.addresses.map(({ ip }) => ip) : [], [A]);
  const again = agent.state.pool.leaseStatic({ ...request, key: 'web2/eth0' });
  t.is(again.kind, 'waits', 'a second sandbox of the Pod waits for the first to end');
});

test('cilium-node: an address whose resource is an ENI of the node is on that ENI', async (t) => {
  const { scene } = t.context;
  await scene.supply((status) => ({ ...status, eniInfos: [eniOf('a', [10, 11])] }));
  const before = scene.nec();
  await scene.create({ '10.0.1.10': { resource: 'eni-a' }, [A]: {} });
  const agent = scene.startAgent();
  await scene.pass(40_000);
  const enis = agent.state.supply?.enis.map(({ eniId, mac, addresses }) => [eniId, mac, addresses.map(({ ip }) => ip)]);
  t.deepEqual(enis, [
    ['eni-a', '02:00:00:00:00:01', ['10.0.1.10']],
    ['on-link', '', [A]],
  ]);
  t.deepEqual(scene.nec(), before, 'the NodeENIConfig is only read');
});

test('cilium-node: without the definition it waits', async (t) => {
  const { scene } = t.context;
  await scene.kube.delete(CUSTOM_RESOURCE_DEFINITIONS, { name: CILIUM_NODE_DEFINITION.metadata.name ?? '' });
  const agent = scene.startAgent();
  await scene.pass(30_000);
  t.regex(agent.state.supplyWaitsFor() ?? '', /^Waiting for initial IP/);
  t.regex(agent.cluster.whyUnready() ?? 'ready', /404 NOT_FOUND.*Cilium's operator creates it when it starts/);
  await t.throwsAsync(scene.kube.get(CILIUM_NODES, { name: 'n1' }));
});

test('cilium-node: a refused write that is not due any more keeps no agent from being ready', async (t) => {
  const { scene } = t.context;
  await scene.create({ [A]: {}, [B]: {} });
  const agent = scene.startAgent();
  await scene.pass(20_000);
  const action = { kind: 'status', code: 403, reason: 'Forbidden' } as const;
  scene.api.api.faults.add({ verbs: ['patch'], resources: ['ciliumnodes/status'], userAgent: 'agent', action });
  leaseTo(agent, 'p1', scene.clock.bootMs());
  await scene.pass(5_000);
  t.regex(agent.cluster.whyUnready() ?? 'ready', /patch ciliumnodes\/status \(403/);
  endLease(agent, 'p1', scene.clock.bootMs());
  await scene.pass(10_000);
  t.is(agent.cluster.whyUnready(), undefined);
});
