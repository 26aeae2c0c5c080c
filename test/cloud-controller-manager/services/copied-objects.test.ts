/** Objects that are copied or restored with their annotations start new; those of a former release, without uids, go on. */
import test from 'ava';
import type { KubeObject, ResourceType } from '../../../kube/kube-client.ts';
import { INGRESSES, SERVICES } from '../../../kube/resource-types.ts';
import { IngressWorld } from '../ingresses/ingress-world.ts';
import { ServiceWorld } from './service-world.ts';

const DONE_MS = 40_000;
/** Until the record has a hash of what is in force. */
const SETTLED_MS = 25 * 60_000;
const RECORD = 'tke.cloud.tencent.com/load-balancer-record';
const POOL = {
  'tke.cloud.tencent.com/load-balancer-pool': 'p',
  'tke.cloud.tencent.com/load-balancer-pool-ports': 'allotted',
};
const OWNER_TAG = 'tke-eni-owner';
const CLUSTER_TAG = 'tke-clusterId';

/** As `kubectl get -o yaml`, another name, `kubectl apply`. */
async function copy(
  services: ServiceWorld,
  type: ResourceType,
  object: KubeObject | undefined,
  name: string,
  isOld = false,
) {
  if (object === undefined) throw new Error('nothing to copy');
  const { clock, admin } = services.world.scene;
  const { uid, resourceVersion, creationTimestamp, ...metadata } = object.metadata;
  const { clusterIP, clusterIPs, ports, ...spec } = object['spec'] as Record<string, unknown>;
  const its = (ports as readonly { readonly nodePort?: number }[] | undefined)?.map(({ nodePort, ...port }) => port);
  const annotations = isOld ? withoutUid(metadata.annotations) : metadata.annotations;
  const body = {
    ...object,
    metadata: { ...metadata, name, annotations },
    spec: { ...spec, ...(its && { ports: its }) },
  };
  delete (body as { status?: unknown }).status;
  await clock.run(admin.create(type, body as KubeObject));
}

/** What a release without uids wrote. */
function withoutUid(annotations: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { uid: _, ...record } = JSON.parse(annotations[RECORD] ?? '{}') as Record<string, unknown>;
  return { ...annotations, [RECORD]: JSON.stringify(record) };
}

const idOf = (services: ServiceWorld, name: string): unknown =>
  (JSON.parse(services.annotation(name, RECORD) ?? '{}') as { loadBalancerId?: string }).loadBalancerId;

for (const isOld of [false, true])
  test(`a copy, ${isOld ? 'with' : 'without'} a record of a former release, gets a load balancer of its own`, async (t) => {
    const world = await IngressWorld.start();
    const { services } = world;
    await world.serve('web');
    await services.create('a');
    await services.create('b', { metadata: { annotations: POOL } });
    await world.create('site');
    await world.advance(SETTLED_MS);
    const before = services.balancers();
    await copy(services, SERVICES, services.service('a'), 'a2', isOld);
    await copy(services, SERVICES, services.service('b'), 'b2', isOld);
    await copy(services, INGRESSES, world.ingress('site'), 'site2', isOld);
    await world.advance(180_000);
    t.is(services.balancers().length, before.length + 2, 'the Service of the pool shares one');
    t.not(idOf(services, 'a2'), idOf(services, 'a'));
    t.not(services.ingress('a2')[0]?.['ip'], services.ingress('a')[0]?.['ip']);
    t.is(idOf(services, 'b2'), idOf(services, 'b'));
    const portsOf = (name: string): unknown =>
      (JSON.parse(services.annotation(name, RECORD) ?? '{}') as { ports?: unknown }).ports;
    t.notDeepEqual(portsOf('b2'), portsOf('b'));
    t.not(world.addresses('site2')[0], world.addresses('site')[0]);
    t.is(world.addresses('site2').length, 1);
    t.deepEqual(services.events('ImmutableChangeRefused'), []);
    t.deepEqual(services.events('ListenerClash'), []);
    for (const name of ['a2', 'b2']) await services.delete(name);
    await world.delete('site2');
    await world.advance(300_000);
    t.deepEqual(
      services.balancers().map(({ loadBalancerId, listeners }) => [loadBalancerId, listeners.size]),
      before.map(({ loadBalancerId, listeners }) => [loadBalancerId, listeners.size]),
    );
    for (const name of ['a2', 'b2']) t.is(services.service(name), undefined);
    await world.stop();
  });

test('records of a former release, without uids, are believed: nothing of a load balancer changes, and they get a uid', async (t) => {
  const world = await IngressWorld.start();
  const { services } = world;
  await world.serve('web');
  const group = {
    'kubernetes.io/ingress.existLbId': await services.buy({}, false),
    'ingress.cloud.tencent.com/enable-group': 'true',
  };
  await services.create('own');
  await services.create('pooled', { metadata: { annotations: POOL } });
  await world.create('site');
  await world.create('one', { annotations: group });
  await world.advance(SETTLED_MS);
  const before = services.balancers();
  const { clock, admin, host } = services.world.scene;
  const strip = async (type: ResourceType, object: KubeObject | undefined): Promise<void> => {
    const { name = '', namespace = '', annotations } = object?.metadata ?? {};
    const body = { metadata: { annotations: { [RECORD]: withoutUid(annotations)[RECORD] ?? null } } };
    await clock.run(admin.patch(type, { namespace, name }, { kind: 'merge', body }));
  };
  await services.replace('--load-balancers=none', '--ingress=none');
  for (const name of ['own', 'pooled']) await strip(SERVICES, services.service(name));
  for (const name of ['site', 'one']) await strip(INGRESSES, world.ingress(name));
  host.forget();
  await services.replace();
  await world.advance(SETTLED_MS);
  t.deepEqual(
    Object.keys(host.counts()).filter((action) => /^(Create|Modify|Set|Delete|Batch)/.test(action)),
    [],
  );
  t.deepEqual(services.balancers(), before);
  for (const object of [
    services.service('own'),
    services.service('pooled'),
    world.ingress('site'),
    world.ingress('one'),
  ]) {
    const { uid, settled } = JSON.parse(object?.metadata.annotations?.[RECORD] ?? '{}') as Record<string, unknown>;
    t.is(uid, object?.metadata.uid, object?.metadata.name);
    t.regex(String(settled), /^[0-9a-f]{16}$/, object?.metadata.name);
  }
  await world.stop();
});

test('why a load balancer on record is not its own: removed tags, and another cluster id', async (t) => {
  const world = await ServiceWorld.start();
  const ip = await world.join('n1');
  await world.create('web', { spec: { ports: [{ port: 80, nodePort: 30_080 }] } });
  await world.advance(DONE_MS);
  const { host, clock } = world.world.scene;
  const one = world.balancer();
  const owner = one.tags[OWNER_TAG] ?? '';
  host.model.state.clb.put({ ...one, tags: {} }, clock.nowMs());
  await world.advance(660_000);
  const [removed = ''] = world.events('ImmutableChangeRefused');
  t.true(removed.includes(`put the tags ${OWNER_TAG}=${owner} and ${CLUSTER_TAG}=`), removed);
  await world.patch('web', { spec: { ports: [{ port: 80, nodePort: 30_081 }] } });
  await world.advance(120_000);
  t.deepEqual(world.listeners()['TCP/80'], [`${ip}:30081 10`], 'its targets follow meanwhile');
  host.model.state.clb.put({ ...world.balancer(), tags: one.tags }, clock.nowMs());
  await world.advance(120_000);
  await world.replace('--clusterid=cls-other');
  await world.advance(DONE_MS);
  t.is(world.balancers().length, 1);
  t.regex(
    world.events('ImmutableChangeRefused').join('\n'),
    /made in the cluster cls-service1, and this is cls-other: correct --clusterid/,
  );
  await world.stop();
});
