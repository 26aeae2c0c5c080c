import test from 'ava';
import { SERVICE_ANNOTATION } from '../../../crd/names.ts';
import { CLUSTER, ServiceWorld, SUBNET } from './service-world.ts';

const { pool: POOL, poolPorts: PORTS } = SERVICE_ANNOTATION;
const EXISTED = 'service.kubernetes.io/tke-existed-lbid';
const RANGES = 'service.beta.kubernetes.io/load-balancer-source-ranges';
const GROUPS = 'service.cloud.tencent.com/security-groups';
const DONE_MS = 90_000;
const GONE_MS = 180_000;

const annotated = (annotations: Readonly<Record<string, string | null>>) => ({ metadata: { annotations } });
const shared = (more: Readonly<Record<string, string>> = {}) => annotated({ [POOL]: 'edge', ...more });
const onPort = (port: number, more: Readonly<Record<string, string>> = {}) => ({
  ...shared(more),
  spec: { ports: [{ port }] },
});

async function start() {
  const world = await ServiceWorld.start();
  await world.join('n1');
  return world;
}

/** Listeners of each load balancer. */
function placesIn(world: ServiceWorld): readonly (readonly string[])[] {
  return world
    .balancers()
    .map(({ listeners }) => [...listeners.values()].map(({ protocol, port }) => `${protocol}/${port}`).toSorted());
}

test('Services of a pool share a load balancer where their ports are free, and get another one where not', async (t) => {
  const world = await start();
  await world.create('a', onPort(80));
  await world.create('b', onPort(81));
  await world.create('c', onPort(80));
  await world.advance(DONE_MS);
  t.deepEqual(placesIn(world).toSorted(), [['TCP/80'], ['TCP/80', 'TCP/81']]);
  t.true(world.balancers().every(({ tags }) => tags['tke-eni-owner'] === `${CLUSTER}/pool/edge`));
  const [a, b] = ['a', 'b'].map((name) => world.ingress(name));
  t.deepEqual(a, b);
  t.is(a?.[0]?.['ipMode'], 'VIP');
  // What one releases the others keep.
  await world.delete('a');
  await world.advance(GONE_MS);
  t.deepEqual(placesIn(world).toSorted(), [['TCP/80'], ['TCP/81']]);
  for (const name of ['b', 'c']) await world.delete(name);
  await world.advance(GONE_MS);
  t.deepEqual(placesIn(world), [[], []]);
  await world.advance(1_500_000);
  t.deepEqual(world.balancers(), []);
  await world.stop();
});

test('ports are allotted, kept over a restart and a change of the ports, and the address is no short cut', async (t) => {
  const world = await start();
  await world.create('a', shared({ [PORTS]: 'allotted' }));
  await world.create('b', shared({ [PORTS]: 'allotted' }));
  await world.advance(DONE_MS);
  t.deepEqual(placesIn(world), [['TCP/10000', 'TCP/10001']]);
  t.is(world.ingress('b')[0]?.['ipMode'], 'Proxy');
  const before = world.annotation('b', SERVICE_ANNOTATION.record);
  await world.replace();
  const ports = ['x', 'y'].map((name, at) => ({ name, port: 80 + at }));
  await world.patch('b', { spec: { ports } });
  await world.advance(DONE_MS);
  t.deepEqual(placesIn(world), [['TCP/10000', 'TCP/10001', 'TCP/10002']]);
  const portOf = (json = '') =>
    (JSON.parse(json) as { readonly ports: Readonly<Record<string, number>> }).ports['TCP/80'];
  t.is(portOf(world.annotation('b', SERVICE_ANNOTATION.record)), portOf(before));
  await world.stop();
});

test('a pool has a load balancer for each subnet, and never one of others', async (t) => {
  const world = await start();
  const bought = await world.buy();
  await world.create('a', onPort(80));
  const internal = { 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': SUBNET };
  await world.create('b', onPort(81, internal));
  await world.advance(DONE_MS);
  t.is(world.balancers().length, 3);
  t.deepEqual(
    world
      .balancers()
      .map(({ type }) => type)
      .toSorted(),
    ['INTERNAL', 'OPEN', 'OPEN'],
  );
  const [listener, ...others] = [
    ...(world
      .balancers()
      .find((one) => one.loadBalancerId === bought)
      ?.listeners.values() ?? []),
  ];
  t.is(listener?.port, 53);
  t.deepEqual(others, []);
  await world.stop();
});

test('a Service that has a load balancer is not moved into a pool, and two contradicting annotations are refused', async (t) => {
  const world = await start();
  await world.create('a');
  await world.advance(DONE_MS);
  const { loadBalancerId } = world.balancer();
  await world.patch('a', shared());
  await world.advance(DONE_MS);
  t.is(world.balancer().loadBalancerId, loadBalancerId);
  t.regex(world.events('ImmutableChangeRefused').join('\n'), /which is not of the pool edge/);
  await world.create('b', shared({ [EXISTED]: loadBalancerId }));
  await world.advance(DONE_MS);
  t.regex(world.events('AnnotationInvalid').join('\n'), /contradict each other/);
  await world.stop();
});

test('for a Service with more ports than a load balancer has listeners none is made', async (t) => {
  const world = await start();
  const ports = Array.from({ length: 60 }, (_, at) => ({ name: `p${at}`, port: 1_000 + at }));
  await world.create('large', { ...shared(), spec: { ports } });
  await world.advance(DONE_MS);
  t.deepEqual(world.balancers(), []);
  t.true(
    world.events('ServiceRefused').some((message) => message.includes('even an empty load balancer of the pool edge')),
  );
  // With fewer ports it is placed.
  await world.patch('large', { spec: { ports: ports.slice(0, 3) } });
  await world.advance(DONE_MS);
  t.deepEqual(placesIn(world), [['TCP/1000', 'TCP/1001', 'TCP/1002']]);
  await world.stop();
});

test('a listener of a person on a load balancer of a pool is avoided, and keeps it alive', async (t) => {
  const world = await start();
  await world.create('a', shared({ [PORTS]: 'allotted' }));
  await world.advance(DONE_MS);
  await world.addListener(world.balancer().loadBalancerId, 10_001);
  await world.advance(60_000);
  await world.create('b', shared({ [PORTS]: 'allotted' }));
  await world.advance(DONE_MS);
  t.deepEqual(placesIn(world), [['TCP/10000', 'TCP/10001', 'TCP/10002']]);
  await world.buy({ tags: { 'tke-clusterId': CLUSTER, 'tke-createdBy-flag': 'yes' } }, false);
  for (const name of ['a', 'b']) await world.delete(name);
  await world.advance(GONE_MS + 1_500_000);
  t.deepEqual(placesIn(world), [['TCP/10001'], []], 'an empty one with the tags of TKE alone stays as well');
  await world.stop();
});

for (const [what, narrowed] of [
  ['source ranges', { spec: { loadBalancerSourceRanges: ['10.1.0.0/16'] } }],
  ['source ranges in the annotation', annotated({ [RANGES]: '10.1.0.0/16' })],
  ['security groups', annotated({ [GROUPS]: 'sg-default0' })],
] as const) {
  test(`a Service of a pool with ${what} is open to nobody, which is said, and others keep what they have`, async (t) => {
    const world = await start();
    await world.create('a', onPort(80));
    await world.create('b', onPort(81));
    await world.advance(DONE_MS);
    await world.patch('a', narrowed);
    await world.advance(DONE_MS);
    t.deepEqual(placesIn(world), [['TCP/81']]);
    t.regex(
      world.events('ServiceRefused').join('\n'),
      /the same for all Services of a load balancer, and those of the pool edge are shared/,
    );
    t.deepEqual(world.ingress('a'), []);
    t.is(world.ingress('b').length, 1);
    await world.create('c', {
      metadata: { annotations: { [POOL]: 'edge', ...('metadata' in narrowed ? narrowed.metadata.annotations : {}) } },
      spec: { ports: [{ port: 82 }], ...('spec' in narrowed ? narrowed.spec : {}) },
    });
    await world.advance(DONE_MS);
    t.deepEqual(placesIn(world), [['TCP/81']]);
    // Its port is still its own.
    await world.create('d', onPort(80));
    await world.advance(DONE_MS);
    t.deepEqual(placesIn(world).toSorted(), [['TCP/80'], ['TCP/81']]);
    await world.patch('a', {
      metadata: { annotations: { [RANGES]: null, [GROUPS]: null } },
      spec: { loadBalancerSourceRanges: null },
    });
    await world.advance(DONE_MS);
    t.deepEqual(placesIn(world).toSorted(), [['TCP/80'], ['TCP/80', 'TCP/81']]);
    t.is(world.ingress('a').length, 1);
    for (const name of ['a', 'b', 'c', 'd']) await world.delete(name);
    await world.advance(GONE_MS);
    for (const name of ['a', 'b', 'c', 'd']) t.is(world.service(name), undefined);
    await world.stop();
  });
}

test('a Service of a pool that asks for a subnet later has its event, and stays where it is', async (t) => {
  const world = await start();
  await world.create('a', onPort(80));
  await world.advance(DONE_MS);
  await world.patch('a', annotated({ 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': SUBNET }));
  await world.advance(DONE_MS);
  t.regex(
    world.events('ServiceRefused').join('\n'),
    /of the pool has a public address, and one of subnet-node0001 is asked for/,
  );
  t.is(world.balancers().length, 1);
  await world.stop();
});

test('60 Services that come together share two load balancers, whatever process dies', async (t) => {
  const world = await start();
  for (let at = 0; at < 60; at++) await world.create(`s${at}`, shared({ [PORTS]: 'allotted' }));
  await world.advance(3_000);
  await world.replace();
  await world.advance(5_000);
  await world.replace();
  await world.advance(300_000);
  const places = placesIn(world);
  t.deepEqual(
    places.map(({ length }) => length).toSorted((one, other) => one - other),
    [10, 50],
  );
  await world.stop();
});
