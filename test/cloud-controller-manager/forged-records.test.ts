/** A tenant writes the record of a Service as he likes: nothing of others is published, made, kept or ended by it. */
import test from 'ava';
import { listenerNameOf } from '../../cloud-controller-manager/balancers/balancer-owner.ts';
import { desiredHashOf } from '../../cloud-controller-manager/balancers/desired-hash.ts';
import { planLoadBalancer } from '../../cloud-controller-manager/services/plan-load-balancer.ts';
import { readAnnotations } from '../../cloud-controller-manager/services/read-annotations.ts';
import { readServiceHead, readServiceSpec } from '../../cloud-controller-manager/services/read-service.ts';
import { DIRECT_ACCESS_ANNOTATION, SERVICE_ANNOTATION, SERVICE_FINALIZER } from '../../crd/names.ts';
import { SERVICES } from '../../kube/resource-types.ts';
import { addLists, published, unprotected } from './services/published-lists.ts';
import { ServicePods } from './services/service-pods.ts';
import { CLUSTER, ServiceWorld } from './services/service-world.ts';

const { pool: POOL, record: RECORD } = SERVICE_ANNOTATION;
const EXISTED = 'service.kubernetes.io/tke-existed-lbid';
const GROUPS = 'service.cloud.tencent.com/security-groups';
const NO_BACKENDS = { 'service.kubernetes.io/qcloud-loadbalancer-backends-label': 'no=such' };
const NAMESPACES = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', isNamespaced: false };
const DONE_MS = 90_000;

/** A world with a Node and the namespace of the tenant. */
async function startWithEvil(): Promise<ServiceWorld> {
  const world = await ServiceWorld.start();
  const { clock, admin } = world.world.scene;
  await clock.run(admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'evil' } }));
  await world.join('n1');
  return world;
}

/** Writes the record of a Service, with its uid, or none, and further annotations. */
async function forge(world: ServiceWorld, name: string, record: object | undefined, more: object = {}): Promise<void> {
  const { clock, admin } = world.world.scene;
  const { uid, namespace = '' } = world.service(name)?.metadata ?? {};
  const annotations = { [RECORD]: record === undefined ? null : JSON.stringify({ uid, ...record }), ...more };
  const patch = { kind: 'merge', body: { metadata: { annotations } } } as const;
  await clock.run(admin.patch(SERVICES, { namespace, name }, patch));
}

/** The hash of what a Service without backends asks for. Everything in it can be guessed. */
function hashOf(world: ServiceWorld, name: string, loadBalancerId: string, isOfPool = false): string {
  const object = world.service(name);
  if (object === undefined) throw new Error(`no Service ${name}`);
  const service = readServiceHead(object);
  const { settings } = readAnnotations(service.annotations, service.labels);
  const facts = { service, spec: readServiceSpec(object), settings, nodes: [], maxTargets: 100 };
  const placed = isOfPool ? { placement: { loadBalancerId, ports: new Map() } } : {};
  const { desired } = planLoadBalancer({ ...facts, ...placed, clusterId: CLUSTER, vpcId: 'vpc-00000001' });
  if (desired === undefined) throw new Error(`${name} is refused`);
  return desiredHashOf(loadBalancerId, desired);
}

for (const isBought of [false, true])
  test(`a forged hash publishes no address of ${isBought ? 'a load balancer that was bought' : "another's load balancer"}`, async (t) => {
    const world = await startWithEvil();
    const bought = isBought ? await world.buy({}, false) : undefined;
    const named = bought === undefined ? {} : { [EXISTED]: bought };
    await world.create('victim', { metadata: { annotations: named } });
    await world.advance(DONE_MS);
    const { loadBalancerId } = world.balancer();
    const annotations = { [EXISTED]: loadBalancerId, ...NO_BACKENDS };
    await world.create('thief', { metadata: { namespace: 'evil', annotations, finalizers: [SERVICE_FINALIZER] } });
    await world.advance(DONE_MS);
    const settled = hashOf(world, 'thief', loadBalancerId);
    await forge(world, 'thief', { serial: 1, loadBalancerId, settled });
    await world.advance(5_000);
    t.deepEqual(world.ingress('thief'), []);
    await world.world.stop();
    await forge(world, 'thief', { serial: 1, loadBalancerId, settled });
    await world.replace();
    await world.advance(30_000);
    t.deepEqual(world.ingress('thief'), []);
    t.is(world.ingress('victim').length, 1);
    await world.advance(DONE_MS);
    t.deepEqual(world.ingress('thief'), []);
    await world.stop();
  });

test('a forged hash publishes no address of a load balancer of the pool to a new leader', async (t) => {
  const world = await startWithEvil();
  await world.create('victim', { metadata: { annotations: { [POOL]: 'shared' } } });
  await world.advance(DONE_MS);
  const { loadBalancerId } = world.balancer();
  await world.world.stop();
  const annotations = { [POOL]: 'shared', ...NO_BACKENDS };
  await world.create('thief', { metadata: { namespace: 'evil', annotations, finalizers: [SERVICE_FINALIZER] } });
  await forge(world, 'thief', {
    ...{ serial: 1, loadBalancerId, ports: {} },
    settled: hashOf(world, 'thief', loadBalancerId, true),
  });
  await world.replace();
  for (let at = 0; at < 10; at++) {
    await world.advance(5_000);
    t.deepEqual(world.ingress('thief'), [], `after ${at * 5} s`);
  }
  t.is(world.ingress('victim').length, 1);
  await world.stop();
});

test('record and annotation that name another load balancer at once: the listeners are known, stay, and end', async (t) => {
  const { world, pods, other } = await startPublished(async (one) => ({ [EXISTED]: await one.buy({}, false) }));
  const addresses = world.ingress('web');
  await forge(world, 'web', { serial: 1, loadBalancerId: other }, { [EXISTED]: other });
  await world.advance(DONE_MS);
  t.regex(world.events('ImmutableChangeRefused').join(), RegExp(`and ${other} is asked for`));
  t.deepEqual([world.ingress('web'), unprotected(world)], [addresses, []]);
  const next = await pods.run('web', 'b', { node: 'n1' });
  await world.advance(DONE_MS);
  t.true(published(world, 'n1')?.includes(next));
  await world.delete('web');
  await world.advance(200_000);
  t.is(world.service('web'), undefined);
  t.true(world.balancers().every(({ listeners }) => listeners.size === 0));
  await world.stop();
});

test('an address that was published before goes with the refusal', async (t) => {
  const world = await startWithEvil();
  await world.create('victim');
  await world.advance(DONE_MS);
  const { loadBalancerId, vip } = world.balancer();
  const annotations = { [EXISTED]: loadBalancerId, ...NO_BACKENDS };
  await world.create('thief', { metadata: { namespace: 'evil', annotations } });
  const { clock, admin } = world.world.scene;
  const status = { loadBalancer: { ingress: [{ ip: vip, ipMode: 'VIP' }] } };
  const patch = { kind: 'merge', body: { status }, subresource: 'status' } as const;
  await clock.run(admin.patch(SERVICES, { namespace: 'evil', name: 'thief' }, patch));
  t.is(world.ingress('thief').length, 1);
  await world.advance(DONE_MS);
  t.deepEqual(world.ingress('thief'), []);
  t.is(world.ingress('victim').length, 1);
  await world.stop();
});

test('no address while another has the only port, and ipMode Proxy while it has one of two', async (t) => {
  const world = await startWithEvil();
  const named = { [EXISTED]: await world.buy({}, false) };
  await world.create('victim', { metadata: { annotations: named } });
  await world.advance(DONE_MS);
  await world.create('thief', { metadata: { namespace: 'evil', annotations: named } });
  await world.advance(DONE_MS);
  t.deepEqual(world.ingress('thief'), []);
  const { clock, admin } = world.world.scene;
  const setPorts = async (...ports: readonly number[]): Promise<void> => {
    const body = { spec: { ports: ports.map((port) => ({ name: `p${port}`, port })) } };
    await clock.run(admin.patch(SERVICES, { namespace: 'evil', name: 'thief' }, { kind: 'merge', body }));
    await world.advance(30_000);
  };
  const modes = () => world.ingress('thief').map(({ ipMode }) => ipMode);
  await setPorts(81);
  t.deepEqual(modes(), ['VIP']);
  await setPorts(81, 80);
  t.deepEqual(modes(), ['Proxy']);
  await setPorts(80);
  t.deepEqual(modes(), []);
  t.deepEqual(
    world.ingress('victim').map(({ ipMode }) => ipMode),
    ['VIP'],
  );
  await world.stop();
});

/** A Service with direct access on the load balancer that `annotate` chooses, and its Pod, which is published. */
async function startPublished(annotate: (world: ServiceWorld) => Promise<Readonly<Record<string, string>>>) {
  const world = await startWithEvil();
  const pods = new ServicePods(world);
  await addLists(world, ['n1']);
  const annotations = { [DIRECT_ACCESS_ANNOTATION]: 'true', ...(await annotate(world)) };
  await world.create('web', { metadata: { annotations } });
  const ip = await pods.run('web', 'a', { node: 'n1' });
  await world.advance(DONE_MS);
  const other = await world.buy({}, false);
  return { world, pods, ip, other };
}

const RECORDS: readonly (readonly [string, (other: string) => object | undefined])[] = [
  ['names the load balancer of others', (loadBalancerId) => ({ serial: 1, loadBalancerId })],
  ['names one that does not exist', () => ({ serial: 1, loadBalancerId: 'lb-00nothing' })],
  ['names none', () => ({ serial: 100 })],
  ['is gone', () => undefined],
];
const SOURCES: readonly (readonly [string, (world: ServiceWorld) => Promise<Readonly<Record<string, string>>>])[] = [
  ['own', async () => ({})],
  ['bought', async (world) => ({ [EXISTED]: await world.buy({}, false) })],
  ['pool', async () => ({ [POOL]: 'shared' })],
];

for (const [source, annotate] of SOURCES)
  for (const [what, recordOf] of RECORDS)
    for (const isNew of [false, true])
      test(`a record that ${what}, ${isNew ? 'for a new leader' : 'at once'}, ${source}: nothing else is made, and all of it ends`, async (t) => {
        const { world, pods, ip, other } = await startPublished(annotate);
        const addresses = world.ingress('web');
        const withListeners = () => world.balancers().filter(({ listeners }) => listeners.size > 0);
        const [{ loadBalancerId } = { loadBalancerId: '' }] = withListeners();
        const count = world.balancers().length;
        if (isNew) await world.world.stop();
        await forge(world, 'web', recordOf(other));
        if (isNew) await world.replace();
        await world.advance(DONE_MS);
        t.deepEqual(unprotected(world), []);
        t.deepEqual(world.ingress('web'), addresses);
        t.deepEqual(
          withListeners().map((one) => one.loadBalancerId),
          [loadBalancerId],
        );
        t.is(world.balancers().length, count, 'no other one is made');
        const next = await pods.run('web', 'b', { node: 'n1' });
        await pods.end('a');
        await world.advance(DONE_MS);
        const targets = withListeners().flatMap(({ listeners }) =>
          [...listeners.values()].flatMap((one) => [...one.targets.values()].map((target) => target.ip)),
        );
        t.true(targets.includes(next), `${targets.join()} follow`);
        t.not(ip, next);
        // Refused, with the record of before, and gone.
        if (isNew) await world.world.stop();
        await forge(world, 'web', recordOf(other), { 'service.cloud.tencent.com/mode': 'x' });
        if (isNew) await world.replace();
        await world.advance(isNew ? 20_000 : 1_000);
        t.deepEqual(unprotected(world), []);
        await world.delete('web');
        for (let at = 0; at < 40; at++) {
          await world.advance(5_000);
          t.deepEqual(unprotected(world), [], `${at * 5} s after the end`);
        }
        t.is(world.service('web'), undefined);
        t.deepEqual(withListeners(), []);
        t.deepEqual(published(world, 'n1'), []);
        await world.stop();
      });

test('records of one edit after another make no load balancer of a pool', async (t) => {
  const world = await startWithEvil();
  await world.create('one', { metadata: { namespace: 'evil', annotations: { [POOL]: 'shared' } } });
  await world.advance(DONE_MS);
  for (let at = 0; at < 6; at++) {
    await forge(world, 'one', { serial: 100 + at });
    await world.advance(10_000);
  }
  t.is(world.balancer().listeners.size, 1);
  await world.stop();
});

test('listeners of a Service on two load balancers of its pool: those go that are not where its address is', async (t) => {
  const world = await startWithEvil();
  const annotations = { [POOL]: 'shared' };
  for (const name of ['one', 'two']) await world.create(name, { metadata: { annotations } });
  await world.advance(DONE_MS);
  t.is(world.balancers().length, 2);
  const address = world.ingress('one')[0]?.['ip'];
  const other = world.balancers().find(({ vip }) => vip !== address);
  await world.world.stop();
  const name = listenerNameOf(CLUSTER, world.service('one')?.metadata.uid ?? '', 'service');
  await world.addListener(other?.loadBalancerId ?? '', 81, name);
  await forge(world, 'one', { serial: 1, loadBalancerId: other?.loadBalancerId, ports: {} });
  await world.replace();
  await world.advance(DONE_MS);
  t.deepEqual(
    world.balancers().map(({ listeners }) => [...listeners.values()].map(({ port }) => port)),
    [[80], [80]],
  );
  t.deepEqual(
    world.ingress('one').map(({ ip }) => ip),
    [address],
  );
  await world.stop();
});

test("the security group of another's source ranges is refused, and holds nobody's end", async (t) => {
  const world = await startWithEvil();
  await world.create('victim', { spec: { loadBalancerSourceRanges: ['10.0.0.0/8'] } });
  await world.advance(DONE_MS);
  const { securityGroups } = world.world.scene.host.model.state;
  const [group = ''] = securityGroups.made.keys();
  const annotations = { [GROUPS]: group };
  await world.create('thief', { metadata: { namespace: 'evil', annotations } });
  await world.advance(DONE_MS);
  t.is(world.balancers().length, 1, 'none is made for it');
  t.regex(world.events('ServiceRefused').join(), /was made for the source ranges of another Service/);
  // As the console does, or an earlier release did.
  const bought = await world.buy({}, false);
  const balancer = world.balancers().find(({ loadBalancerId }) => loadBalancerId === bought);
  Object.assign(balancer ?? {}, { securityGroupIds: [group] });
  await world.delete('victim');
  await world.advance(300_000);
  t.is(world.service('victim'), undefined);
  t.deepEqual(
    world.balancers().map(({ loadBalancerId }) => loadBalancerId),
    [bought],
  );
  await world.stop();
});
