/** A tenant with rights in the namespace `evil` alone, and what was kept, uploaded or placed for the namespace `default`. */
import test from 'ava';
import { SERVICE_ANNOTATION } from '../../crd/names.ts';
import { INGRESSES, SERVICES } from '../../kube/resource-types.ts';
import { IngressWorld, ruleOf } from './ingresses/ingress-world.ts';
import { CLUSTER, ServiceWorld } from './services/service-world.ts';

const { pool: POOL, poolPorts: PORTS, record: RECORD } = SERVICE_ANNOTATION;
const RETAIN = 'service.cloud.tencent.com/loadbalance-retain';
const EXISTED = 'service.kubernetes.io/tke-existed-lbid';
const EXISTING = 'kubernetes.io/ingress.existLbId';
const GROUP = 'ingress.cloud.tencent.com/enable-group';
const NAMESPACE_TAG = 'tke-eni-namespace';
const HOST = 'www.example.com';
const NAMESPACES = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', isNamespaced: false };
const DONE_MS = 90_000;
const GONE_MS = 180_000;

/** Makes the namespace of the tenant. */
async function makeEvil(world: ServiceWorld): Promise<void> {
  const { clock, admin } = world.world.scene;
  await clock.run(admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'evil' } }));
}

/** Makes an Ingress of the tenant. */
async function phish(world: IngressWorld, annotations: Readonly<Record<string, string>>, path = '/'): Promise<void> {
  await makeEvil(world.services);
  const metadata = {
    ...{ name: 'phish', namespace: 'evil' },
    annotations: { 'kubernetes.io/ingress.class': 'qcloud', ...annotations },
  };
  const object = { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata, spec: ruleOf(path, HOST) };
  await world.put(INGRESSES, object);
}

/** A load balancer that was kept for the namespace `default`. */
async function startKept(flags: readonly string[] = []) {
  const world = await ServiceWorld.start({ flags });
  await makeEvil(world);
  await world.join('n1');
  await world.create('keep', { metadata: { annotations: { [RETAIN]: 'true' } } });
  await world.advance(DONE_MS);
  await world.delete('keep');
  await world.advance(GONE_MS);
  const kept = world.balancer();
  const use = async (name: string, namespace: string) =>
    await world.create(name, {
      metadata: { namespace, annotations: { [EXISTED]: kept.loadBalancerId } },
      spec: { ports: [{ port: namespace === 'evil' ? 81 : 80 }] },
    });
  const retag = (tags: Readonly<Record<string, string>>): void => {
    Object.assign(world.balancer(), { tags });
  };
  const ports = () => [...world.balancer().listeners.values()].map(({ port }) => port);
  return { world, kept, use, retag, ports };
}

test('a kept load balancer is used by its namespace alone, until the console says otherwise', async (t) => {
  const { world, kept, use, retag, ports } = await startKept();
  t.is(kept.tags[NAMESPACE_TAG], 'default');
  await use('thief', 'evil');
  await use('next', 'default');
  await world.advance(DONE_MS);
  t.deepEqual(ports(), [80]);
  t.regex(
    world.events('ServiceRefused').join(),
    /is for another namespace; to use it here, write the tag tke-eni-namespace: evil/,
  );
  t.deepEqual(world.ingress('thief'), []);
  retag({ ...kept.tags, [NAMESPACE_TAG]: 'evil' });
  await world.advance(700_000);
  t.deepEqual(ports().toSorted(), [80, 81]);
  await world.stop();
});

test('one that an earlier release made and kept is of the namespace in its name, and of none without', async (t) => {
  const { world, kept, use, retag, ports } = await startKept();
  const { [NAMESPACE_TAG]: _, ...older } = kept.tags;
  retag(older);
  await use('thief', 'evil');
  await use('next', 'default');
  await world.advance(DONE_MS);
  t.deepEqual(ports(), [80]);
  await world.delete('next');
  await world.advance(GONE_MS);
  Object.assign(world.balancer(), { name: 'kept_by-hand' });
  await use('later', 'default');
  await world.advance(DONE_MS);
  t.deepEqual(ports(), []);
  t.regex(
    world.events('ServiceRefused').join(),
    /nothing says for which namespace; .* write the tag tke-eni-namespace: default/,
  );
  await world.stop();
});

test('one that was bought is for everybody, unless its tag names a namespace', async (t) => {
  const world = await ServiceWorld.start();
  await makeEvil(world);
  await world.join('n1');
  const open = await world.buy({}, false);
  const reserved = await world.buy({ tags: { [NAMESPACE_TAG]: 'default' } }, false);
  for (const [name, id] of [
    ['a', open],
    ['b', reserved],
  ] as const)
    await world.create(name, { metadata: { namespace: 'evil', annotations: { [EXISTED]: id } } });
  await world.advance(DONE_MS);
  t.deepEqual(
    world.balancers().map(({ listeners }) => listeners.size),
    [1, 0],
  );
  await world.stop();
});

test('a group on a kept load balancer takes members of its namespace alone, and is not held by others', async (t) => {
  const world = await IngressWorld.start();
  const ip = await world.serve('web');
  const id = await world.services.buy({
    name: `kept_${CLUSTER}_default_web`,
    tags: { 'tke-eni-owner': `${CLUSTER}/ingress/u-1`, 'tke-clusterId': CLUSTER, [NAMESPACE_TAG]: 'default' },
  });
  await world.services.protect(id, true);
  const annotations = { [EXISTING]: id, [GROUP]: 'true' };
  await phish(world, annotations);
  await world.advance(5_000);
  await world.create('shop', { annotations, spec: ruleOf('/shop', HOST) });
  await world.advance(DONE_MS);
  t.deepEqual(world.rulesOf(id), { [`HTTP:80 ${HOST}/shop`]: [`${ip}:8080 10`] });
  t.regex(world.events('IngressRefused').join(), /is for another namespace/);
  t.deepEqual(world.addresses('phish'), []);
  await world.stop();
});

test('a certificate of a Secret is used by its id in no other namespace, nor in its own', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  await world.makeTlsSecret('tls', HOST);
  await world.create('shop', { spec: { ...ruleOf('/', HOST), tls: [{ hosts: [HOST], secretName: 'tls' }] } });
  await world.advance(DONE_MS);
  const { certificates } = world.services.world.scene.host.model.state;
  const [certificate] = certificates.all();
  if (certificate === undefined) throw new Error('there is no certificate');
  t.is(certificate.tags[NAMESPACE_TAG], 'default');
  // The ids of the simulated cloud are longer than real ones.
  const certId = 'AbCd1234';
  certificates.put({ ...certificate, certId });
  const named = JSON.stringify([{ hosts: [HOST], qcloud_cert_id: [certId] }]);
  await phish(world, { 'ingress.cloud.tencent.com/certificate': named });
  await world.advance(DONE_MS);
  t.regex(world.events('CertificateRefused').join(), /the certificate AbCd1234 is of a Secret of an Ingress/);
  const used = world.services
    .balancers()
    .filter(({ name }) => name.includes('evil'))
    .flatMap(({ listeners }) => [...listeners.values()]);
  t.deepEqual(used, []);
  await world.stop();
});

test('a record that a tenant writes takes no room of a pool, and keeps no empty load balancer', async (t) => {
  const world = await ServiceWorld.start();
  await makeEvil(world);
  await world.join('n1');
  const shared = { [POOL]: 'edge', [PORTS]: 'allotted' };
  await world.create('a', { metadata: { annotations: shared } });
  await world.advance(DONE_MS);
  const { loadBalancerId } = world.balancer();
  const ports = Array.from({ length: 60 }, (_, at) => ({ name: `p${at}`, port: 1_000 + at }));
  const { clock, admin } = world.world.scene;
  const forged = JSON.stringify({ serial: 1, loadBalancerId, ports: {} });
  for (const [name, more] of [
    ['internal', { type: 'ClusterIP' }],
    ['other', { type: 'LoadBalancer', loadBalancerClass: 'example.com/other' }],
  ] as const)
    await clock.run(
      admin.create(SERVICES, {
        ...{ apiVersion: 'v1', kind: 'Service' },
        metadata: { name, namespace: 'evil', annotations: { [POOL]: 'edge', [RECORD]: forged } },
        spec: { ports, ...more },
      }),
    );
  await world.advance(40_000);
  await world.create('b', { metadata: { annotations: shared } });
  await world.advance(DONE_MS);
  t.is(world.balancers().length, 1, 'no second load balancer is made');
  t.is(world.balancer().listeners.size, 2);
  for (const name of ['a', 'b']) await world.delete(name);
  await world.advance(GONE_MS + 1_500_000);
  t.deepEqual(world.balancers(), []);
  await world.stop();
});

test('a record with a port that is never allotted gives no such port', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  await world.create('a', { metadata: { annotations: { [POOL]: 'edge', [PORTS]: 'allotted' } } });
  await world.advance(DONE_MS);
  const { loadBalancerId } = world.balancer();
  const forged = JSON.stringify({ serial: 1, loadBalancerId, ports: { 'TCP/80': 443 } });
  await world.create('b', { metadata: { annotations: { [POOL]: 'edge', [PORTS]: 'allotted', [RECORD]: forged } } });
  await world.advance(DONE_MS);
  t.deepEqual([...world.balancer().listeners.values()].map(({ port }) => port).toSorted(), [10_000, 10_001]);
  await world.stop();
});

test('what nothing stops: Services of a pool take load balancers of the account, but no place that another has', async (t) => {
  const world = await ServiceWorld.start();
  await makeEvil(world);
  await world.join('n1');
  const { limits } = world.world.scene.host.model.state.clb;
  Object.assign(limits, { openBalancers: 3, listeners: 4 });
  const shared = { [POOL]: 'edge', [PORTS]: 'allotted' };
  await world.create('early', { metadata: { annotations: shared } });
  await world.advance(DONE_MS);
  const addressOf = (name: string): unknown => world.ingress(name)[0]?.['ip'];
  const [address, listeners] = [addressOf('early'), world.listeners()];
  for (let at = 0; at < 8; at++)
    await world.create(`greedy-${at}`, { metadata: { namespace: 'evil', annotations: shared } });
  await world.advance(DONE_MS);
  await world.create('late', { metadata: { annotations: shared } });
  await world.advance(DONE_MS);
  t.is(world.balancers().length, 3, 'another one was made for the greedy');
  t.is(world.ingress('late').length, 1, 'there is room on the last one');
  for (let at = 8; at < 20; at++)
    await world.create(`greedy-${at}`, { metadata: { namespace: 'evil', annotations: shared } });
  await world.advance(DONE_MS);
  await world.create('too-late', { metadata: { annotations: shared } });
  await world.advance(DONE_MS);
  t.is(world.balancers().length, 3);
  t.deepEqual(world.ingress('too-late'), [], 'the account is used up');
  t.regex(world.events('SyncLoadBalancerFailed').join(), /quota/i);
  t.is(addressOf('early'), address);
  const [first] = world.balancers();
  const kept = Object.keys(listeners).filter((key) =>
    [...(first?.listeners.values() ?? [])].some(({ protocol, port }) => `${protocol}/${port}` === key),
  );
  t.deepEqual(kept, Object.keys(listeners), 'who has a place keeps it');
  await world.stop();
});

test('what nothing stops: a path of a host that no Ingress of the group has, the challenge of its certificate too', async (t) => {
  const world = await IngressWorld.start();
  const ip = await world.serve('web');
  const id = await world.services.buy({}, false);
  const annotations = { [EXISTING]: id, [GROUP]: 'true' };
  const challenge = '/.well-known/acme-challenge/';
  await world.create('shop', { annotations, spec: ruleOf('/', HOST) });
  await world.advance(DONE_MS);
  await phish(world, annotations, challenge);
  await world.advance(DONE_MS);
  const rules = world.rulesOf(id);
  t.deepEqual(Object.keys(rules).toSorted(), [`HTTP:80 ${HOST}/`, `HTTP:80 ${HOST}${challenge}`]);
  t.deepEqual(rules[`HTTP:80 ${HOST}/`], [`${ip}:8080 10`], 'what the owner has stays his');
  // The way out: the owner has the path himself, before others do.
  await world.services.world.scene.clock.run(
    world.services.world.scene.admin.delete(INGRESSES, { namespace: 'evil', name: 'phish' }),
  );
  await world.advance(GONE_MS);
  await world.create('own-challenge', { annotations, spec: ruleOf(challenge, HOST) });
  await world.advance(DONE_MS);
  const { clock, admin } = world.services.world.scene;
  const metadata = {
    ...{ name: 'again', namespace: 'evil' },
    annotations: { 'kubernetes.io/ingress.class': 'qcloud', ...annotations },
  };
  const apiVersion = 'networking.k8s.io/v1';
  await clock.run(admin.create(INGRESSES, { apiVersion, kind: 'Ingress', metadata, spec: ruleOf(challenge, HOST) }));
  await world.advance(DONE_MS);
  t.deepEqual(world.rulesOf(id)[`HTTP:80 ${HOST}${challenge}`], [`${ip}:8080 10`]);
  t.regex(world.events('RuleClash').join(), /is of the Ingress default\/own-challenge/);
  await world.services.stop();
});
