/** The rights to Ingresses are taken from a controller that runs. */
import test from 'ava';
import { addLists, published, unprotected } from '../services/published-lists.ts';
import { MORE_RIGHTS } from '../services/service-world.ts';
import { IngressWorld, ruleOf } from './ingress-world.ts';

const MODE = 'service.cloud.tencent.com/mode';
const DIRECT = 'service.cloud.tencent.com/direct-access';
const HOST = 'www.example.com';
const DONE_MS = 60_000;
const PROBLEM = /orphans of ingresses: list ingresses\.networking\.k8s\.io/;

test('orphans of Services are found while Ingresses may not be listed any more, and none of an Ingress', async (t) => {
  const world = await IngressWorld.start();
  const { scene } = world.services.world;
  await world.serve('web');
  await world.create('site');
  await world.services.create('stays');
  await world.services.create('gone');
  await world.advance(DONE_MS);
  await scene.setRules((rules) => [...rules, ...MORE_RIGHTS]);
  await world.services.patch('gone', { metadata: { annotations: { [MODE]: 'skip' } } });
  await world.advance(5_000);
  await world.services.delete('gone');
  await world.advance(90 * DONE_MS);
  t.deepEqual(
    world.events('OrphanLoadBalancer').map((one) => one.includes('_gone')),
    [true],
  );
  t.is(world.services.balancers().length, 3);
  t.regex(await world.services.world.metrics(), PROBLEM);
  await world.grant();
  await world.advance(60 * DONE_MS);
  t.notRegex(await world.services.world.metrics(), PROBLEM);
  await world.stop();
});

test('without the rights to Ingresses addresses of Services are taken back, and targets of Ingresses stay published', async (t) => {
  const world = await IngressWorld.start();
  const { scene } = world.services.world;
  await addLists(world.services, ['n1']);
  const own = await world.serve('web');
  const shared = await world.serve('shop');
  const group = {
    'kubernetes.io/ingress.existLbId': await world.services.buy(),
    'ingress.cloud.tencent.com/enable-group': 'true',
  };
  await world.create('site');
  await world.create('shop', { annotations: group, spec: ruleOf('/', HOST, 'shop') });
  await world.advance(DONE_MS);
  await scene.setRules((rules) => [...rules, ...MORE_RIGHTS]);
  await world.services.replace();
  await world.services.create('api', { metadata: { annotations: { [DIRECT]: 'true' } } });
  await world.pods.run('api', 'api-0', { node: 'n1' });
  await world.advance(DONE_MS);
  const last = await world.pods.run('api', 'api-1', { node: 'n1' });
  await world.advance(DONE_MS);
  for (const pod of ['api-0', 'web-0', 'shop-0']) await world.pods.end(pod);
  await world.advance(10 * DONE_MS);
  t.deepEqual(published(world.services, 'n1'), [own, shared, last].toSorted());
  t.deepEqual(unprotected(world.services), []);
  await world.grant();
  await world.advance(5 * DONE_MS);
  t.deepEqual(published(world.services, 'n1'), [last]);
  t.deepEqual(unprotected(world.services), []);
  await world.stop();
});

test('where no right to Ingresses was ever granted, addresses of Services are taken back', async (t) => {
  const world = await IngressWorld.start({ hasRights: false });
  const { scene } = world.services.world;
  await scene.setRules((rules) => [...rules, ...MORE_RIGHTS]);
  await addLists(world.services, ['n1']);
  await world.services.create('api', { metadata: { annotations: { [DIRECT]: 'true' } } });
  await world.pods.run('api', 'api-0', { node: 'n1' });
  await world.advance(2 * DONE_MS);
  const last = await world.pods.run('api', 'api-1', { node: 'n1' });
  await world.advance(DONE_MS);
  await world.pods.end('api-0');
  await world.advance(5 * DONE_MS);
  t.deepEqual(published(world.services, 'n1'), [last]);
  await world.stop();
});
