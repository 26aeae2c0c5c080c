/** Ingresses that are not served any more, and have their load balancers: a class that is missing, a group with mode skip. */
import test from 'ava';
import { BACKEND_READY_GATE as GATE } from '../../../crd/names.ts';
import { INGRESS_CLASSES } from '../../../kube/resource-types.ts';
import { addLists, published, unprotected } from '../services/published-lists.ts';
import { IngressWorld, ruleOf } from './ingress-world.ts';

const SERVICE_DIRECT = 'service.cloud.tencent.com/direct-access';
const MODE = 'ingress.cloud.tencent.com/mode';
const HOST = 'www.example.com';
const DONE_MS = 90_000;

/** A Service for Ingresses, with a Pod, on one node with a list. */
async function start() {
  const world = await IngressWorld.start();
  await addLists(world.services, ['n1']);
  return { world, ip: await world.serve('web') };
}

/** Makes an Ingress with a class, which goes then. */
async function createWithClass(world: IngressWorld): Promise<void> {
  await world.makeClass('ours', 'networking.tke.cloud.tencent.com/clb');
  const spec = { ...ruleOf('/', HOST), ingressClassName: 'ours' };
  await world.create('site', { annotations: { 'kubernetes.io/ingress.class': null }, spec });
  await world.advance(DONE_MS);
  const { clock, admin } = world.services.world.scene;
  await clock.run(admin.delete(INGRESS_CLASSES, { name: 'ours' }));
  await world.advance(DONE_MS);
}

/** Pods of a Service with direct access end one after the other; returns the address of the last one. */
async function replacePods(world: IngressWorld): Promise<string> {
  await world.services.create('api', { metadata: { annotations: { [SERVICE_DIRECT]: 'true' } } });
  await world.pods.run('api', 'api-0', { node: 'n1' });
  await world.advance(DONE_MS);
  const ip = await world.pods.run('api', 'api-1', { node: 'n1' });
  await world.advance(DONE_MS);
  await world.pods.end('api-0');
  await world.advance(600_000);
  return ip;
}

test('the targets of an Ingress follow its Pods while its class is missing, published before they are registered', async (t) => {
  const { world, ip } = await start();
  await createWithClass(world);
  const record = world.ingress('site')?.metadata;
  const next = await world.pods.run('web', 'web-1', { node: 'n1', gates: [GATE] });
  for (let second = 0; second < 30; second++) {
    await world.advance(1_000);
    t.deepEqual(unprotected(world.services), []);
  }
  t.deepEqual(world.rules()[`HTTP:80 ${HOST}/`], [`${ip}:8080 10`, `${next}:8080 10`].toSorted());
  t.is(world.pods.condition('web-1', GATE), 'True Registered');
  await world.pods.end('web-0');
  // A rule that is asked for meanwhile is not made.
  await world.patch('site', { spec: { rules: [...ruleOf('/', HOST).rules, ...ruleOf('/new', HOST).rules] } });
  await world.advance(3 * DONE_MS);
  t.deepEqual(world.rules(), { [`HTTP:80 ${HOST}/`]: [`${next}:8080 10`] });
  t.deepEqual(published(world.services, 'n1'), [next]);
  t.is(world.events('IngressRefused').length, 1);
  t.deepEqual(world.ingress('site')?.metadata.finalizers, record?.finalizers);
  await world.makeClass('ours', 'networking.tke.cloud.tencent.com/clb');
  await world.advance(DONE_MS);
  t.is(Object.keys(world.rules()).length, 2);
  await world.stop();
});

for (const isReplaced of [false, true])
  test(`addresses of others are taken back while a class is missing; after a restart: ${isReplaced}`, async (t) => {
    const { world, ip } = await start();
    await createWithClass(world);
    if (isReplaced) await world.services.replace();
    const last = await replacePods(world);
    t.deepEqual(published(world.services, 'n1'), [ip, last].toSorted());
    await world.stop();
  });

for (const [title, leaver] of [
  ['stays whole', undefined],
  ['loses its oldest Ingress', 'one'],
] as const)
  test(`addresses of others are taken back after a restart, and those of a group with mode skip stay; it ${title}`, async (t) => {
    const { world, ip } = await start();
    const annotations = {
      'kubernetes.io/ingress.existLbId': await world.services.buy(),
      'ingress.cloud.tencent.com/enable-group': 'true',
    };
    await world.create('one', { annotations, spec: ruleOf('/a', HOST) });
    await world.create('two', { annotations, spec: ruleOf('/b', HOST) });
    await world.advance(DONE_MS);
    await world.patch('two', { annotations: { [MODE]: 'skip' } });
    await world.services.replace();
    await world.advance(DONE_MS);
    if (leaver !== undefined) await world.delete(leaver);
    const last = await replacePods(world);
    t.deepEqual(published(world.services, 'n1'), [ip, last].toSorted());
    t.deepEqual(unprotected(world.services), []);
    await world.stop();
  });
