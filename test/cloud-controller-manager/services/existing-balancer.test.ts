import test from 'ava';
import { ServiceWorld, SUBNET } from './service-world.ts';

const DONE_MS = 40_000;
const EXISTED = 'service.kubernetes.io/tke-existed-lbid';
const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup';

test('an existing load balancer is used, and only what is of the Service changes', async (t) => {
  const world = await ServiceWorld.start();
  const ip = await world.join('n1');
  const id = await world.buy();
  const spec = { ports: [{ port: 80, nodePort: 30_080 }] };
  await world.create('web', { metadata: { annotations: { [EXISTED]: id } }, spec });
  await world.create('api', {
    metadata: { annotations: { [EXISTED]: id } },
    spec: { ports: [{ port: 81, nodePort: 30_081 }] },
  });
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners(), { 'TCP/80': [`${ip}:30080 10`], 'TCP/81': [`${ip}:30081 10`], 'UDP/53': [] });
  t.like(world.balancer(), { loadBalancerId: id, name: 'bought', tags: {} });
  t.deepEqual(world.ingress('web'), [{ ip: world.balancer().vip, ipMode: 'VIP' }]);
  await world.delete('web');
  await world.advance(DONE_MS);
  t.is(world.service('web'), undefined);
  t.deepEqual(world.listeners(), { 'TCP/81': [`${ip}:30081 10`], 'UDP/53': [] });
  await world.stop();
});

test('a Service on an existing load balancer ends at once when no call is unresolved, also after a restart', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  const metadata = { annotations: { [EXISTED]: await world.buy() } };
  const endsWithin = async (name: string, ms: number): Promise<boolean> => {
    await world.delete(name);
    await world.advance(ms);
    return world.service(name) === undefined;
  };
  await world.create('brief', { metadata });
  await world.advance(DONE_MS / 4);
  t.deepEqual(Object.keys(world.listeners()), ['UDP/53', 'TCP/80']);
  t.true(await endsWithin('brief', 5_000), 'in the first minute of a leader that made all itself');
  await world.create('settled', { metadata });
  await world.advance(30 * 60_000);
  await world.create('unsettled', { metadata, spec: { ports: [{ port: 81 }] } });
  await world.advance(DONE_MS);
  await world.replace();
  await world.advance(10_000);
  t.true(await endsWithin('settled', 5_000), 'what is in force is on record');
  t.false(await endsWithin('unsettled', 5_000), 'the former leader may have sent something');
  await world.advance(60_000);
  t.is(world.service('unsettled'), undefined);
  t.deepEqual(world.listeners(), { 'UDP/53': [] });
  await world.stop();
});

test('a port that another listener has is reported, and the others are served', async (t) => {
  const world = await ServiceWorld.start();
  const ip = await world.join('n1');
  const id = await world.buy();
  const ports = [
    { name: 'dns', port: 53, protocol: 'UDP', nodePort: 30_053 },
    { name: 'web', port: 80, nodePort: 30_080 },
  ];
  await world.create('web', { metadata: { annotations: { [EXISTED]: id } }, spec: { ports } });
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners(), { 'TCP/80': [`${ip}:30080 10`], 'UDP/53': [] });
  t.regex(world.events('ListenerClash').join(), /port 53 of UDP.*of-a-person/);
  await world.stop();
});

test('a Service moves between load balancers only where that is allowed', async (t) => {
  const world = await ServiceWorld.start();
  const ip = await world.join('n1');
  const [first, second] = [await world.buy(), await world.buy()];
  const listenersOf = (id: string): readonly string[] =>
    world
      .balancers()
      .filter(({ loadBalancerId }) => loadBalancerId === id)
      .flatMap(({ listeners }) => [...listeners.values()].map(({ protocol, port }) => `${protocol}/${port}`))
      .sort();
  const annotate = async (annotations: Readonly<Record<string, string | null>>): Promise<void> => {
    await world.patch('web', { metadata: { annotations } });
    await world.advance(DONE_MS);
  };
  await world.create('web', { metadata: { annotations: { [EXISTED]: first } } });
  await world.advance(DONE_MS);
  await annotate({ [EXISTED]: second });
  t.deepEqual([listenersOf(first), listenersOf(second)], [['TCP/80', 'UDP/53'], ['UDP/53']]);
  t.regex(world.events('ImmutableChangeRefused').join(), new RegExp(`is ${first}, and ${second} is asked for`));
  await annotate({ 'tke.cloud.tencent.com/allow-address-change': 'true' });
  t.deepEqual([listenersOf(first), listenersOf(second)], [['UDP/53'], ['TCP/80', 'UDP/53']]);
  await annotate({ [EXISTED]: null });
  t.deepEqual([listenersOf(first), listenersOf(second)], [['UDP/53'], ['UDP/53']]);
  const own = world.balancers().find(({ tags }) => tags['tke-eni-owner'] !== undefined);
  t.deepEqual(world.ingress('web'), [{ ip: own?.vip ?? '', ipMode: 'VIP' }]);
  await annotate({ [EXISTED]: first });
  t.deepEqual([listenersOf(first), listenersOf(second)], [['TCP/80', 'UDP/53'], ['UDP/53']]);
  t.is(world.balancers().length, 2, 'its own one is gone');
  const [port] = world.nodePorts('web');
  const targets = [...(world.balancers()[0]?.listeners.values() ?? [])].flatMap((one) => [...one.targets.keys()]);
  t.deepEqual(targets, [`${ip}:${port}`]);
  await world.stop();
});

test('a load balancer that was made for another object, or does not exist, is not used', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  const ofTke = await world.buy({ tags: { 'tke-createdBy-flag': 'yes' } });
  const ofOther = await world.buy({ tags: { 'tke-eni-owner': 'cls-other/service/u' } });
  const ofCluster = await world.buy({ tags: { 'tke-clusterId': 'cls-other' } });
  const before = world.balancers();
  for (const [at, id] of [ofTke, ofOther, ofCluster, 'lb-nowhere00'].entries()) {
    await world.create(`web${at}`, { metadata: { annotations: { [EXISTED]: id } } });
  }
  await world.advance(DONE_MS);
  t.deepEqual(world.balancers(), before);
  const messages = world.events('ServiceRefused').join();
  t.regex(messages, /was made by TKE/);
  t.regex(messages, /was made for cls-other\/service\/u/);
  t.regex(messages, /is used by the cluster cls-other/);
  t.regex(messages, /lb-nowhere00 does not exist/);
  for (const at of [0, 1, 2, 3]) t.deepEqual(world.service(`web${at}`)?.metadata.finalizers ?? [], []);
  await world.stop();
});

test('a public load balancer is not used for a Service that asks for an address of a subnet', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  const [open, inner] = [await world.buy(), await world.buy({ type: 'INTERNAL', subnetId: SUBNET })];
  const subnet = { 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': SUBNET };
  for (const [at, id] of [open, inner].entries())
    await world.create(`web${at}`, { metadata: { annotations: { [EXISTED]: id, ...subnet } } });
  await world.advance(DONE_MS);
  t.regex(world.events('ServiceRefused').join(), /has a public address, and one of subnet-node0001 is asked for/);
  t.deepEqual(
    world.balancers().map(({ listeners }) => [...listeners.values()].map(({ port }) => port).toSorted((a, b) => a - b)),
    [[53], [53, 80]],
  );
  await world.stop();
});

test('a load balancer that does not exist yet is used within a minute when it does', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  await world.create('web', { metadata: { annotations: { [EXISTED]: 'lb-00000001' } } });
  await world.advance(DONE_MS);
  t.regex(world.events('ServiceRefused').join(), /lb-00000001 does not exist/);
  t.is(await world.buy(), 'lb-00000001');
  await world.advance(90_000);
  t.deepEqual(Object.keys(world.listeners()).toSorted(), ['TCP/80', 'UDP/53']);
  await world.stop();
});

test('a record that a person edits leads to no harm', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  const bought = await world.buy();
  await world.create('web');
  await world.advance(DONE_MS);
  const record = JSON.stringify({ serial: 1, loadBalancerId: bought });
  await world.patch('web', { metadata: { annotations: { 'tke.cloud.tencent.com/load-balancer-record': record } } });
  await world.advance(DONE_MS);
  const own = world.balancers().find(({ loadBalancerId }) => loadBalancerId !== bought);
  t.regex(
    world.annotation('web', 'tke.cloud.tencent.com/load-balancer-record') ?? '',
    RegExp(`${own?.loadBalancerId}`),
  );
  t.deepEqual(world.events('ImmutableChangeRefused'), []);
  await world.patch('web', { metadata: { annotations: { 'tke.cloud.tencent.com/load-balancer-record': 'nonsense' } } });
  await world.advance(700_000);
  t.is(world.annotation('web', 'service.kubernetes.io/loadbalance-id'), own?.loadBalancerId, 'the tag finds it');
  await world.delete('web');
  await world.advance(DONE_MS);
  t.deepEqual(
    world.balancers().map(({ loadBalancerId }) => loadBalancerId),
    [bought],
  );
  await world.stop();
});

test('a Service whose record was removed leaves nothing on the existing load balancer, and nothing of its own', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  const bought = await world.buy();
  await world.create('web', { metadata: { annotations: { [EXISTED]: bought } } });
  await world.create('api');
  await world.advance(DONE_MS);
  const without = { 'tke.cloud.tencent.com/load-balancer-record': null };
  await world.patch('web', { metadata: { annotations: without } });
  await world.patch('api', { metadata: { annotations: { ...without, [EXISTED]: bought } } });
  for (const name of ['web', 'api']) await world.delete(name);
  await world.advance(DONE_MS);
  t.deepEqual([world.service('web'), world.service('api')], [undefined, undefined]);
  t.like(world.balancer(), { loadBalancerId: bought });
  t.deepEqual(world.listeners(), { 'UDP/53': [] });
  await world.stop();
});

test('a task that outlasts --cloud-timeout is followed: what is in force gets on record', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  const id = await world.buy();
  const { faults } = world.world.scene.host;
  faults.add({ fault: { kind: 'slow-task', ms: 90_000 }, actions: ['CreateListener'], times: 1 });
  await world.create('web', { metadata: { annotations: { [EXISTED]: id } } });
  await world.advance(30 * 60_000);
  t.deepEqual(Object.keys(world.listeners()).toSorted(), ['TCP/80', 'UDP/53']);
  t.regex(world.annotation('web', 'tke.cloud.tencent.com/load-balancer-record') ?? '', /"settled":/);
  await world.stop();
});

test('a task that never ends holds a Service for ten minutes, and an event says so', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  const id = await world.buy();
  const { faults } = world.world.scene.host;
  faults.add({ fault: { kind: 'slow-task', ms: 90 * 86_400_000 }, actions: ['CreateListener'], times: 1 });
  await world.create('web', { metadata: { annotations: { [EXISTED]: id } } });
  await world.advance(5_000);
  await world.delete('web');
  await world.advance(50_000);
  t.deepEqual(world.events('DeleteLoadBalancerFailed'), []);
  await world.advance(60_000);
  t.regex(world.events('DeleteLoadBalancerFailed').join(), /CreateListener \(task .* more than a minute/);
  await world.advance(6 * 60_000);
  t.not(world.service('web'), undefined);
  t.is(world.events('DeleteLoadBalancerFailed').length, 1);
  await world.advance(3 * 60_000);
  t.is(world.service('web'), undefined);
  await world.stop();
});

test('a record that was removed does not tell that a former leader sent nothing', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  await world.create('web', { metadata: { annotations: { [EXISTED]: await world.buy() } } });
  await world.advance(DONE_MS);
  await world.replace();
  await world.advance(10_000);
  await world.patch('web', { metadata: { annotations: { 'tke.cloud.tencent.com/load-balancer-record': null } } });
  await world.advance(5_000);
  t.not(world.annotation('web', 'tke.cloud.tencent.com/load-balancer-record'), undefined, 'it is written again');
  await world.delete('web');
  await world.advance(5_000);
  t.not(world.service('web'), undefined);
  await world.advance(60_000);
  t.is(world.service('web'), undefined);
  await world.stop();
});

test('a Service without its record ends though the cloud refuses the id that its annotation names', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  const { faults } = world.world.scene.host;
  for (const [at, code] of ['InvalidParameter.FormatError', 'InvalidParameter.LBIdNotFound'].entries()) {
    const name = `web${at}`;
    await world.create(name);
    await world.advance(DONE_MS);
    await world.discard(world.balancer().loadBalancerId);
    faults.add({ fault: { kind: 'error', code }, actions: ['DescribeLoadBalancers'], within: 'lb-nowhere00' });
    await world.patch(name, {
      metadata: { annotations: { 'tke.cloud.tencent.com/load-balancer-record': null, [EXISTED]: 'lb-nowhere00' } },
    });
    await world.delete(name);
    await world.advance(DONE_MS);
    t.is(world.service(name), undefined, code);
    faults.clear();
  }
  await world.stop();
});

test('a load balancer that a person deletes is made again, and a protected one is not deleted', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  await world.create('web');
  await world.advance(DONE_MS);
  const first = world.balancer().loadBalancerId;
  await world.discard(first);
  await world.advance(900_000);
  const { loadBalancerId } = world.balancer();
  t.not(loadBalancerId, first);
  t.is(Object.values(world.listeners()).flat().length, 1);
  await world.protect(loadBalancerId, true);
  await world.delete('web');
  await world.advance(DONE_MS);
  t.is(world.balancer().loadBalancerId, loadBalancerId);
  t.regex(world.events('DeleteLoadBalancerFailed').join(), /protected/);
  t.deepEqual(world.service('web')?.metadata.finalizers, [FINALIZER]);
  await world.protect(loadBalancerId, false);
  await world.advance(400_000);
  t.deepEqual(world.balancers(), []);
  t.is(world.service('web'), undefined);
  await world.stop();
});

test('what annotations ask for shows in the load balancer', async (t) => {
  const world = await ServiceWorld.start();
  const [, edge] = [await world.join('n1'), await world.join('n2', { labels: { pool: 'edge' } })];
  const annotations = {
    'service.kubernetes.io/qcloud-loadbalancer-internet-charge-type': 'BANDWIDTH_POSTPAID_BY_HOUR',
    'service.kubernetes.io/service.extensiveParameters': '{"VipIsp":"CMCC","SlaType":"clb.c2.medium"}',
    'service.kubernetes.io/loadbalance-type': 'application',
    'service.kubernetes.io/qcloud-loadbalancer-backends-label': 'pool=edge',
    'service.cloud.tencent.com/security-groups': 'sg-default0',
    'service.cloud.tencent.com/pass-to-target': 'true',
  };
  const labels = { 'service.kubernetes.io/qcloud-loadbalancer-internet-max-bandwidth-out': '77' };
  const spec = { ports: [{ port: 80, nodePort: 30_080 }], loadBalancerSourceRanges: ['10.0.0.0/8'] };
  await world.create('web', { metadata: { annotations, labels }, spec });
  await world.advance(DONE_MS);
  t.like(world.balancer(), {
    type: 'OPEN',
    securityGroupIds: ['sg-default0'],
    passToTarget: true,
    extras: {
      internetChargeType: 'BANDWIDTH_POSTPAID_BY_HOUR',
      internetMaxBandwidthOut: 77,
      vipIsp: 'CMCC',
      slaType: 'clb.c2.medium',
    },
  });
  t.deepEqual(world.listeners(), { 'TCP/80': [`${edge}:30080 10`] });
  const changes = {
    'service.cloud.tencent.com/security-groups': '',
    'service.cloud.tencent.com/pass-to-target': 'false',
    'service.kubernetes.io/qcloud-loadbalancer-backends-label': 'pool=none',
  };
  await world.patch('web', { metadata: { annotations: changes }, spec: { loadBalancerSourceRanges: [] } });
  await world.advance(DONE_MS);
  t.like(world.balancer(), { securityGroupIds: [], passToTarget: false });
  t.deepEqual(world.listeners(), { 'TCP/80': [`${edge}:30080 10`] }, 'a selector of none does not empty it');
  t.regex(world.events('UnAvailableLoadBalancer').join(), /selects no Node/);
  await world.create('inner', {
    metadata: { labels: { 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': SUBNET } },
  });
  await world.advance(DONE_MS);
  t.deepEqual(
    world
      .balancers()
      .map(({ type }) => type)
      .sort(),
    ['INTERNAL', 'OPEN'],
    'a label does as well',
  );
  await world.stop();
});
