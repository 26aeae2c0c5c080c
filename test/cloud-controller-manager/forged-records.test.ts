/** A tenant writes the record of a Service as he likes: nothing of others is published, made, kept or ended by it. */
import test from 'ava';
import { desiredHashOf } from '../../cloud-controller-manager/balancers/desired-hash.ts';
import { planLoadBalancer } from '../../cloud-controller-manager/services/plan-load-balancer.ts';
import { readAnnotations } from '../../cloud-controller-manager/services/read-annotations.ts';
import { readServiceHead, readServiceSpec } from '../../cloud-controller-manager/services/read-service.ts';
import { SERVICE_ANNOTATION, SERVICE_FINALIZER } from '../../crd/names.ts';
import { SERVICES } from '../../kube/resource-types.ts';
import { CLUSTER, ServiceWorld } from './services/service-world.ts';

const { record: RECORD } = SERVICE_ANNOTATION;
const EXISTED = 'service.kubernetes.io/tke-existed-lbid';
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

/** Writes the record of a Service of the tenant, with its uid. */
async function forge(world: ServiceWorld, name: string, record: object): Promise<void> {
  const { clock, admin } = world.world.scene;
  const uid = world.service(name)?.metadata.uid;
  const annotations = { [RECORD]: JSON.stringify({ uid, ...record }) };
  const patch = { kind: 'merge', body: { metadata: { annotations } } } as const;
  await clock.run(admin.patch(SERVICES, { namespace: 'evil', name }, patch));
}

/** The hash of what a Service without backends asks for. Everything in it can be guessed. */
function hashOf(world: ServiceWorld, name: string, loadBalancerId: string): string {
  const object = world.service(name);
  if (object === undefined) throw new Error(`no Service ${name}`);
  const service = readServiceHead(object);
  const { settings } = readAnnotations(service.annotations, service.labels);
  const facts = { service, spec: readServiceSpec(object), settings, nodes: [], maxTargets: 100 };
  const { desired } = planLoadBalancer({ ...facts, clusterId: CLUSTER, vpcId: 'vpc-00000001' });
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
