import test from 'ava';
import { INGRESSES } from '../../../kube/resource-types.ts';
import { DIRECT, IngressWorld, ruleOf } from './ingress-world.ts';

const EXISTING = 'kubernetes.io/ingress.existLbId';
const GROUP = 'ingress.cloud.tencent.com/enable-group';
const RECORD = 'tke.cloud.tencent.com/load-balancer-record';
const CLASS = 'kubernetes.io/ingress.class';
const CHANGE = 'tke.cloud.tencent.com/allow-address-change';
/** Longer than the registration of targets, and the deletion of what is left. */
const DONE_MS = 90_000;

test('a listener of somebody else on port 80 is an event, and stays', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  const id = await world.services.buy();
  await world.services.addListener(id, 80);
  await world.create('site', { annotations: { [EXISTING]: id } });
  await world.advance(DONE_MS);
  t.is(world.events('ListenerClash').length, 1);
  t.deepEqual(Object.keys(world.services.listeners()).toSorted(), ['TCP/80', 'UDP/53']);
  await world.stop();
});

test('a load balancer that was made for another object, or is in no VPC of ours, is refused', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  await world.services.create('api');
  await world.advance(DONE_MS);
  const id = world.balancer().loadBalancerId;
  await world.create('site', { annotations: { [EXISTING]: id } });
  await world.advance(DONE_MS);
  t.regex(world.events('IngressRefused')[0] ?? '', /kubernetes\.io\/ingress\.existLbId was made for/);
  t.deepEqual(Object.keys(world.services.listeners()), ['TCP/80']);
  await world.stop();
});

test('a group of which some or all records were removed, or lack the load balancer, leaves nothing', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  const annotations = { [EXISTING]: await world.services.buy(), [GROUP]: 'true' };
  const all = [['one'], ['two'], ['one', 'two']];
  for (const [removed, record] of [null, '{"serial":1}'].flatMap((one) => all.map((names) => [names, one] as const))) {
    await world.create('one', { annotations, spec: ruleOf('/a') });
    await world.create('two', { annotations, spec: ruleOf('/b') });
    await world.advance(DONE_MS);
    t.deepEqual(Object.keys(world.services.listeners()).toSorted(), ['HTTP/80', 'UDP/53']);
    await endWithout(world, removed, record);
    await world.advance(DONE_MS);
    t.deepEqual([world.ingress('one'), world.ingress('two')], [undefined, undefined]);
    t.deepEqual(Object.keys(world.services.listeners()), ['UDP/53'], `${removed}: ${record}`);
  }
  await world.stop();
});

test('a group without records does not count as begun here: a former leader may have sent something', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  const annotations = { [EXISTING]: await world.services.buy(), [GROUP]: 'true' };
  for (const name of ['one', 'two']) await world.create(name, { annotations, spec: ruleOf(`/${name}`) });
  await world.advance(DONE_MS);
  await world.services.replace();
  await world.advance(20_000);
  await endWithout(world, ['one', 'two'], null);
  await world.advance(10_000);
  t.not(world.ingress('one'), undefined);
  await world.advance(DONE_MS);
  t.deepEqual([world.ingress('one'), world.ingress('two')], [undefined, undefined]);
  t.deepEqual(Object.keys(world.services.listeners()), ['UDP/53']);
  await world.stop();
});

test('an Ingress leaves its group for a load balancer of its own, and one that has its own does not join', async (t) => {
  const world = await IngressWorld.start();
  const ip = await world.serve('web');
  const id = await world.services.buy();
  const annotations = { [EXISTING]: id, [GROUP]: 'true' };
  await world.create('one', { annotations, spec: ruleOf('/a', 'www.example.com') });
  await world.create('two', { annotations, spec: ruleOf('/b', 'www.example.com') });
  await world.create('alone');
  await world.advance(DONE_MS);
  await world.patch('two', { annotations: { [EXISTING]: null, [GROUP]: null, [CHANGE]: 'true' } });
  await world.patch('alone', { annotations });
  await world.advance(2 * DONE_MS);
  const paths = world.allRules().toSorted();
  t.deepEqual(paths, ['HTTP:80 /', 'HTTP:80 www.example.com/a', 'HTTP:80 www.example.com/b']);
  t.is(world.services.balancers().length, 3);
  t.is(world.events('ImmutableChangeRefused').length, 1);
  t.truthy(ip);
  await world.stop();
});

test('the rules of a member stay while its class is missing, while it cannot be read, and after a restart', async (t) => {
  const world = await IngressWorld.start();
  const [web, api] = [await world.serve('web'), await world.serve('api')];
  const id = await world.services.buy();
  const annotations = { [EXISTING]: id, [GROUP]: 'true' };
  await world.create('one', { annotations, spec: ruleOf('/a', 'www.example.com') });
  await world.create('two', { annotations, spec: ruleOf('/b', 'www.example.com', 'api') });
  await world.advance(DONE_MS);
  const both = {
    'HTTP:80 www.example.com/a': [`${web}:8080 10`],
    'HTTP:80 www.example.com/b': [`${api}:8080 10`],
  };
  t.deepEqual(world.rules(), both);
  await world.patch('two', { annotations: { [CLASS]: null } });
  await world.advance(DONE_MS);
  t.deepEqual(world.rules(), both, 'its class is missing');
  await world.patch('two', { annotations: { [CLASS]: 'qcloud', [DIRECT]: 'perhaps' } });
  await world.advance(DONE_MS);
  t.deepEqual(world.rules(), both, 'an annotation is malformed');
  await world.services.replace();
  await world.advance(DONE_MS);
  t.deepEqual(world.rules(), both, 'another process');
  await world.patch('two', { annotations: { [DIRECT]: 'true' }, spec: ruleOf('/c', 'www.example.com', 'api') });
  await world.advance(DONE_MS);
  t.deepEqual(Object.keys(world.rules()).toSorted(), ['HTTP:80 www.example.com/a', 'HTTP:80 www.example.com/c']);
  await world.stop();
});

/** Deletes the Ingresses `one` and `two`, all at once, before the controller writes the records again that are changed. */
async function endWithout(world: IngressWorld, names: readonly string[], record: string | null): Promise<void> {
  const { clock, admin } = world.services.world.scene;
  const body = { metadata: { annotations: { [RECORD]: record } } };
  const refOf = (name: string) => ({ namespace: 'default', name });
  await clock.run(
    Promise.all([
      ...names.map((name) => admin.patch(INGRESSES, refOf(name), { kind: 'merge', body })),
      ...['one', 'two'].map((name) => admin.delete(INGRESSES, refOf(name))),
    ]),
  );
}
