import test from 'ava';
import { INGRESSES } from '../../../kube/resource-types.ts';
import { CLUSTER } from '../services/service-world.ts';
import { DIRECT, IngressWorld, ruleOf } from './ingress-world.ts';

const ID = 'kubernetes.io/ingress.qcloud-loadbalance-id';
const VIP = 'tke.cloud.tencent.com/load-balancer-address';
const FINALIZER = 'networking.tke.cloud.tencent.com/load-balancer-cleanup';
const CLASS = 'kubernetes.io/ingress.class';
const MODE = 'ingress.cloud.tencent.com/mode';
/** Longer than a creation and the registration of its targets. */
const DONE_MS = 60_000;

test('an Ingress without a host gets a load balancer with HTTP:80, whose rule leads to its Pods, and its address', async (t) => {
  const world = await IngressWorld.start();
  const ip = await world.serve('web');
  await world.create('site');
  await world.advance(DONE_MS);
  t.deepEqual(world.rules(), { 'HTTP:80 /': [`${ip}:8080 10`] });
  const balancer = world.balancer();
  const uid = world.ingress('site')?.metadata.uid;
  t.like(balancer, { type: 'OPEN', name: `${CLUSTER}_default_site` });
  t.like(balancer.tags, {
    'tke-eni-owner': `${CLUSTER}/ingress/${uid}`,
    'tke-clusterId': CLUSTER,
    'tke-lb-ingress-uuid': uid,
  });
  t.deepEqual(world.addresses('site'), [balancer.vip]);
  t.is(world.annotation('site', VIP), balancer.vip);
  t.is(world.annotation('site', ID), balancer.loadBalancerId);
  t.deepEqual(world.ingress('site')?.metadata.finalizers, [FINALIZER]);
  t.is(world.events('EnsuringLoadBalancer').length, 1);
  await world.delete('site');
  await world.advance(DONE_MS);
  t.is(world.ingress('site'), undefined);
  t.deepEqual(world.services.balancers(), []);
  await world.stop();
});

test('Nodes are the backends of an Ingress without direct access, by the node ports of its Services', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web', { type: 'NodePort', ports: [{ name: 'http', port: 80, nodePort: 30_080 }] });
  await world.create('site', { annotations: { [DIRECT]: null } });
  await world.advance(DONE_MS);
  const node = world.services.nodeIp('n1');
  t.deepEqual(world.rules(), { 'HTTP:80 /': [`${node}:30080 10`] });
  const two = await world.services.join('n2');
  await world.advance(DONE_MS);
  t.deepEqual(world.rules(), { 'HTTP:80 /': [`${node}:30080 10`, `${two}:30080 10`].toSorted() });
  await world.stop();
});

test('of another class, or without one: nothing is made; a class that changes takes the load balancer away', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  await world.makeClass('ours', 'networking.tke.cloud.tencent.com/clb');
  await world.makeClass('theirs', 'example.com/other');
  await world.create('none', { annotations: { [CLASS]: null } });
  await world.create('missing', { annotations: { [CLASS]: null }, spec: { ...ruleOf('/'), ingressClassName: 'nope' } });
  await world.advance(DONE_MS);
  t.deepEqual(world.services.balancers(), []);
  await world.patch('missing', { annotations: { note: 'x' } });
  await world.advance(DONE_MS);
  t.is(world.events('IngressRefused').length, 1);
  t.deepEqual(world.ingress('missing')?.metadata.finalizers ?? [], []);
  await world.makeClass('nope', 'networking.tke.cloud.tencent.com/clb');
  await world.advance(DONE_MS);
  t.deepEqual(world.addresses('missing'), [world.balancer().vip]);
  await world.patch('missing', { spec: { ingressClassName: 'theirs' } });
  await world.advance(2 * DONE_MS);
  t.deepEqual(world.services.balancers(), []);
  t.deepEqual(world.ingress('missing')?.metadata.finalizers ?? [], []);
  t.is(world.annotation('missing', ID), undefined);
  await world.stop();
});

for (const isSeenByOther of [false, true]) {
  const title = isSeenByOther ? 'and keeps that of the other controller' : 'of its load balancer that is gone';
  test(`an Ingress of another class has no address any more ${title}`, async (t) => {
    const world = await IngressWorld.start();
    await world.create('site');
    await world.advance(DONE_MS);
    t.deepEqual(world.addresses('site'), [world.balancer().vip]);
    const { clock, admin } = world.services.world.scene;
    const body = { status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } } };
    const target = { namespace: 'default', name: 'site' };
    await world.patch('site', { annotations: { [CLASS]: 'nginx' } });
    if (isSeenByOther) await clock.run(admin.patch(INGRESSES, target, { kind: 'merge', body, subresource: 'status' }));
    await world.advance(DONE_MS);
    t.deepEqual(world.services.balancers(), []);
    t.deepEqual(world.addresses('site'), isSeenByOther ? ['192.0.2.1'] : []);
    t.deepEqual(world.ingress('site')?.metadata.finalizers ?? [], []);
    await world.stop();
  });
}

test('with --ingress-without-class an Ingress without a class is served', async (t) => {
  const world = await IngressWorld.start({ flags: ['--ingress-without-class'] });
  const ip = await world.serve('web');
  await world.create('site', { annotations: { [CLASS]: null } });
  await world.advance(DONE_MS);
  t.deepEqual(world.rules(), { 'HTTP:80 /': [`${ip}:8080 10`] });
  await world.stop();
});

test('mode skip leaves the load balancer, and it stays when the Ingress goes', async (t) => {
  const world = await IngressWorld.start();
  const ip = await world.serve('web');
  await world.create('site');
  await world.advance(DONE_MS);
  await world.patch('site', { annotations: { [MODE]: 'skip' }, spec: ruleOf('/other') });
  await world.advance(DONE_MS);
  t.deepEqual(world.rules(), { 'HTTP:80 /': [`${ip}:8080 10`] });
  await world.delete('site');
  await world.advance(DONE_MS);
  t.is(world.ingress('site'), undefined);
  t.deepEqual(world.rules(), { 'HTTP:80 /': [`${ip}:8080 10`] });
  await world.stop();
});

test('a restart writes nothing, and a settled one reads no target', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  await world.makeTlsSecret('cert', 'www.example.com');
  const tls = [{ hosts: ['www.example.com'], secretName: 'cert' }];
  await world.create('site', { spec: { ...ruleOf('/', 'www.example.com'), tls } });
  await world.advance(1_260_000);
  t.true(world.annotation('site', 'tke.cloud.tencent.com/load-balancer-record')?.includes('settled'));
  const version = world.ingress('site')?.metadata.resourceVersion;
  const { host } = world.services.world.scene;
  host.seen.length = 0;
  await world.services.replace();
  await world.advance(DONE_MS);
  const actions = Object.keys(host.counts());
  t.true(actions.every((action) => action.startsWith('Describe')));
  t.false(actions.includes('DescribeTargets'));
  t.is(world.ingress('site')?.metadata.resourceVersion, version);
  await world.stop();
});

test('without the rights to Ingresses Services are served, and an event says what is missing, until they are granted', async (t) => {
  const world = await IngressWorld.start({ hasRights: false });
  const ip = await world.serve('web');
  await world.services.create('api');
  await world.create('site');
  await world.advance(DONE_MS);
  t.is(world.services.balancers().length, 1);
  t.true(world.services.ingress('api').length > 0);
  t.is(world.events('Forbidden').filter((message) => message.includes('ingresses.networking.k8s.io')).length, 1);
  t.regex(await world.services.world.metrics(), /ingress-lb-controller: patch ingresses\.networking\.k8s\.io\/status/);
  await world.services.delete('api');
  await world.grant();
  await world.advance(2 * DONE_MS);
  t.deepEqual(world.rules(), { 'HTTP:80 /': [`${ip}:8080 10`] });
  t.notRegex(await world.services.world.metrics(), /ingress-lb-controller: patch ingresses/);
  await world.stop();
});
