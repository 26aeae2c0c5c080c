import test from 'ava';
import { CLUSTER, ServiceWorld, SUBNET } from './service-world.ts';

const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup';
const INTERNAL = { 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': SUBNET };
const VIP = 'tke.cloud.tencent.com/load-balancer-address';
/** Longer than a creation and the registration of its targets. */
const DONE_MS = 40_000;

test('a Service gets a load balancer that leads to the node port of each Node, and its address', async (t) => {
  const world = await ServiceWorld.start();
  const [one, two] = [await world.join('n1'), await world.join('n2')];
  await world.create('web');
  await world.advance(DONE_MS);
  const [port] = world.nodePorts('web');
  t.deepEqual(world.listeners(), { 'TCP/80': [`${one}:${port} 10`, `${two}:${port} 10`] });
  const balancer = world.balancer();
  const uid = world.service('web')?.metadata.uid;
  t.like(balancer, { type: 'OPEN', name: `${CLUSTER}_default_web` });
  t.like(balancer.tags, { 'tke-eni-owner': `${CLUSTER}/service/${uid}`, 'tke-clusterId': CLUSTER });
  t.like(world.listener('TCP', 80)?.healthCheck, { HealthSwitch: 1, CheckType: 'TCP', CheckPort: -1 });
  t.deepEqual(world.ingress('web'), [{ ip: balancer.vip, ipMode: 'VIP' }]);
  t.is(world.annotation('web', VIP), balancer.vip);
  t.is(world.annotation('web', 'service.kubernetes.io/loadbalance-id'), balancer.loadBalancerId);
  t.deepEqual(world.service('web')?.metadata.finalizers, [FINALIZER]);
  t.is(world.events('EnsuringLoadBalancer').length, 1);
  await world.stop();
});

test('ports, protocol, policy and affinity may change', async (t) => {
  const world = await ServiceWorld.start();
  const ip = await world.join('n1');
  await world.create('web');
  await world.advance(DONE_MS);
  const { loadBalancerId } = world.balancer();
  const ports = [
    { name: 't', port: 53, protocol: 'TCP', nodePort: 30_053 },
    { name: 'u', port: 53, protocol: 'UDP', nodePort: 30_054 },
  ];
  await world.patch('web', { spec: { ports, sessionAffinity: 'ClientIP' } });
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners(), { 'TCP/53': [`${ip}:30053 10`], 'UDP/53': [`${ip}:30054 10`] });
  t.is(world.listener('UDP', 53)?.sessionExpireTime, 3_600);
  t.is(world.listener('UDP', 53)?.healthCheck?.HealthSwitch, 0);
  t.is(world.events('AffinityClamped').length, 1);
  const [tcp] = ports;
  await world.patch('web', { spec: { ports: [tcp], sessionAffinity: 'None', externalTrafficPolicy: 'Local' } });
  await world.advance(DONE_MS);
  const spec = world.service('web')?.['spec'] as { readonly healthCheckNodePort?: number };
  t.deepEqual(world.listeners(), { 'TCP/53': [`${ip}:30053 10`] });
  t.like(world.listener('TCP', 53), { sessionExpireTime: 0 });
  t.like(world.listener('TCP', 53)?.healthCheck, {
    CheckType: 'HTTP',
    CheckPort: spec.healthCheckNodePort,
    HttpCheckPath: '/healthz',
    HttpCode: 2,
  });
  t.is(world.balancer().loadBalancerId, loadBalancerId);
  await world.stop();
});

test('with a class: only ours', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  await world.create('web', { spec: { loadBalancerClass: 'example.com/other' } });
  await world.advance(DONE_MS);
  t.deepEqual(world.balancers(), []);
  t.deepEqual(world.service('web')?.metadata.finalizers ?? [], []);
  await world.stop();
});

test('a change that means another address is refused by event, and made with the annotation', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  await world.create('web');
  await world.advance(DONE_MS);
  const { loadBalancerId } = world.balancer();
  await world.patch('web', { metadata: { annotations: INTERNAL } });
  await world.advance(DONE_MS);
  t.is(world.balancer().loadBalancerId, loadBalancerId);
  t.regex(
    world.events('ImmutableChangeRefused').join(),
    /is OPEN, and INTERNAL is asked for.*allow-address-change=true/,
  );
  await world.patch('web', { metadata: { annotations: { 'tke.cloud.tencent.com/allow-address-change': 'true' } } });
  await world.advance(DONE_MS);
  const replaced = world.balancer();
  t.like(replaced, { type: 'INTERNAL', subnetId: SUBNET });
  t.deepEqual(world.ingress('web'), [{ ip: replaced.vip, ipMode: 'VIP' }]);
  t.is(Object.values(world.listeners())[0]?.length, 1);
  await world.stop();
});

test('an address of a subnet may be asked for', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  const annotations = { ...INTERNAL, 'service.cloud.tencent.com/prevent-loopback': 'false' };
  await world.create('web', { metadata: { annotations }, spec: { loadBalancerIP: '10.0.200.9' } });
  await world.create('taken', { metadata: { annotations }, spec: { loadBalancerIP: '10.0.200.9' } });
  await world.advance(DONE_MS);
  t.is(world.balancer().vip, '10.0.200.9', 'the second one gets none');
  const statuses = ['web', 'taken'].map((name) => world.ingress(name));
  t.deepEqual(
    statuses.filter((ingress) => ingress.length > 0),
    [[{ ip: '10.0.200.9', ipMode: 'Proxy' }]],
  );
  t.true(world.events('SyncLoadBalancerFailed').length > 0);
  await world.stop();
});

test('what cannot be served is an event, and no load balancer is made', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  const tls = { 'service.cloud.tencent.com/specify-protocol': '{"80":{"protocol":["TCP_SSL"],"tls":"secret"}}' };
  await world.create('tls', { metadata: { annotations: tls } });
  const bad = { 'service.cloud.tencent.com/security-groups': 'everyone' };
  await world.create('bad', { metadata: { annotations: bad } });
  await world.create('ranges', { spec: { loadBalancerSourceRanges: ['0.0.0.0/8'] } });
  await world.create('portless', { spec: { allocateLoadBalancerNodePorts: false } });
  await world.advance(DONE_MS);
  t.deepEqual(world.balancers(), []);
  t.regex(world.events('AnnotationRefused').join(), /specify-protocol.*listeners are of TCP and UDP/);
  t.regex(world.events('AnnotationInvalid').join(), /security-groups must be at most five|security-groups must be/);
  const refused = world.events('ServiceRefused').join();
  t.regex(refused, /0\.0\.0\.0\/8.*admits everyone/);
  t.regex(refused, /has no node port/);
  for (const name of ['tls', 'bad', 'ranges', 'portless'])
    t.deepEqual(world.service(name)?.metadata.finalizers ?? [], []);
  await world.stop();
});

test('mode skip leaves the load balancer as it is, also when the Service goes', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  await world.create('web');
  await world.advance(DONE_MS);
  const before = world.balancer();
  await world.patch('web', {
    metadata: { annotations: { 'service.cloud.tencent.com/mode': 'skip' } },
    spec: { ports: [{ port: 81 }] },
  });
  await world.advance(DONE_MS);
  await world.delete('web');
  await world.advance(DONE_MS);
  t.is(world.service('web'), undefined);
  t.is(world.balancer(), before);
  await world.stop();
});

test('under the published role alone it works: no get, the address in an annotation, and a loud event', async (t) => {
  const world = await ServiceWorld.start({ isSeedRole: true });
  await world.join('n1');
  await world.create('web');
  await world.advance(DONE_MS);
  const { vip } = world.balancer();
  t.deepEqual(world.ingress('web'), []);
  t.is(world.annotation('web', VIP), vip);
  t.regex(world.events('StatusForbidden').join(), new RegExp(`${vip}.*Grant the right`));
  t.true((await world.world.metrics()).includes('patch services/status'));
  t.deepEqual(world.events('Forbidden'), [], 'nothing was tried that is forbidden');
  await world.delete('web');
  await world.advance(DONE_MS);
  t.is(world.service('web'), undefined);
  t.deepEqual(world.balancers(), []);
  await world.stop();
  t.false((await world.world.metrics()).includes('patch services/status'), 'it leads no more');
});

test('the right to the status is noticed when it is granted', async (t) => {
  const world = await ServiceWorld.start({ isSeedRole: true });
  await world.join('n1');
  await world.create('web');
  await world.advance(DONE_MS);
  const rule = { apiGroups: [''], resources: ['services/status'], verbs: ['patch'] };
  await world.world.scene.setRules((rules) => [...rules, rule]);
  await world.advance(700_000);
  t.deepEqual(world.ingress('web'), [{ ip: world.balancer().vip, ipMode: 'VIP' }]);
  t.false((await world.world.metrics()).includes('patch services/status'));
  await world.stop();
});

test('above the quota of targets the listener has as many as it may', async (t) => {
  const world = await ServiceWorld.start();
  world.world.scene.host.model.state.clb.limits.targets = 2;
  for (const name of ['n1', 'n2', 'n3']) await world.join(name);
  await world.create('one');
  await world.create('two');
  await world.advance(DONE_MS);
  for (const { listeners } of world.balancers())
    t.deepEqual(
      [...listeners.values()].map(({ targets }) => targets.size),
      [2],
    );
  t.is(world.events('TargetsOverQuota').length, 2);
  t.deepEqual(world.events('SyncLoadBalancerFailed'), []);
  await world.stop();
});

test('quotas that cannot be read are those that were read last, and are asked for again after a minute', async (t) => {
  const world = await ServiceWorld.start();
  const { faults, model } = world.world.scene.host;
  model.state.clb.limits.targets = 2;
  const fails = { fault: { kind: 'error', code: 'UnauthorizedOperation' }, actions: ['DescribeQuota'] } as const;
  const sizes = () =>
    world.balancers().flatMap(({ listeners }) => [...listeners.values()].map((one) => one.targets.size));
  faults.add({ ...fails, times: 1 });
  for (const name of ['n1', 'n2', 'n3']) await world.join(name);
  await world.create('one');
  await world.advance(60_000 + DONE_MS);
  t.regex(world.events('TargetsOverQuota').join(), /3 Nodes are backends.* 2 targets/);
  t.deepEqual(sizes(), [2]);
  const failed = world.events('SyncLoadBalancerFailed').length;
  faults.add(fails);
  await world.advance(600_000);
  await world.create('two');
  await world.advance(DONE_MS);
  t.deepEqual(sizes(), [2, 2]);
  t.is(world.events('SyncLoadBalancerFailed').length, failed);
  await world.stop();
});

test('--load-balancer-class: Services of that class and those of none are served, others are not', async (t) => {
  const world = await ServiceWorld.start({ flags: ['--load-balancer-class=example.com/ours'] });
  await world.join('n1');
  await world.create('ours', { spec: { loadBalancerClass: 'example.com/ours' } });
  await world.create('plain');
  await world.create('other', { spec: { loadBalancerClass: 'example.com/other' } });
  await world.advance(40_000);
  t.deepEqual(
    ['ours', 'plain', 'other'].map((name) => world.ingress(name).length),
    [1, 1, 0],
  );
  t.is(world.balancers().length, 2);
  t.is(world.service('other')?.metadata.finalizers, undefined);
  await world.stop();
});
