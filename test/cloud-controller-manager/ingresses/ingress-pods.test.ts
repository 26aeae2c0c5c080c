/** What Ingresses and Services share: readiness gates of Pods, published addresses, names. */
import test from 'ava';
import { BACKEND_READY_GATE as GATE } from '../../../crd/names.ts';
import { addLists, published, unprotected } from '../services/published-lists.ts';
import { DIRECT, IngressWorld, ruleOf } from './ingress-world.ts';

const SERVICE_DIRECT = 'service.cloud.tencent.com/direct-access';
const MODE = 'ingress.cloud.tencent.com/mode';
/** Longer than a creation, the registration of its targets and their first checks. */
const DONE_MS = 60_000;
const SECOND_MS = 1_000;

async function start() {
  const world = await IngressWorld.start();
  const { health } = world.services.world.scene.host.model.state.clb;
  const gated = (name: string, service = 'web'): Promise<string> =>
    world.pods.run(service, name, { node: 'n1', gates: [GATE] });
  const gate = (name: string): string | undefined => world.pods.condition(name, GATE);
  const bare = (name: string) => world.services.create(name, { spec: { type: 'ClusterIP' } });
  return { world, health, gated, gate, bare };
}

test('the gate of a Pod waits until it is a healthy target of the rules of an Ingress', async (t) => {
  const { world, health, gated, gate, bare } = await start();
  await bare('web');
  await world.create('site', { spec: ruleOf('/a', 'www.example.com') });
  const ip = await gated('a');
  health.say(ip, false);
  await world.advance(DONE_MS);
  t.deepEqual(world.rules(), { 'HTTP:80 www.example.com/a': [`${ip}:8080 10`] });
  t.is(gate('a'), 'False Unhealthy');
  const message = messageOf(world, 'a');
  t.regex(message, /of HTTP\/80 www\.example\.com\/a of the Ingress default\/site fails$/);
  health.say(ip, undefined);
  await world.advance(DONE_MS);
  t.is(gate('a'), 'True Registered');
  t.is(messageOf(world, 'a'), 'a healthy target of Ingress default/site');
  await world.stop();
});

test('a gate waits for the Service and the Ingress that lead to the Pod', async (t) => {
  const { world, health, gated, gate } = await start();
  await world.services.create('web', { metadata: { annotations: { [SERVICE_DIRECT]: 'true' } } });
  await world.create('web');
  const ip = await gated('a');
  health.say(ip, false);
  await world.advance(DONE_MS);
  t.is(world.services.balancers().length, 2);
  t.is(gate('a'), 'False Unhealthy');
  health.say(ip, undefined);
  await world.advance(DONE_MS);
  t.is(messageOf(world, 'a'), 'a healthy target of Ingress default/web, default/web');
  await world.stop();
});

for (const [title, end] of [
  ['the Ingress goes', (world: IngressWorld) => world.delete('site')],
  ['direct access goes', (world: IngressWorld) => world.patch('site', { annotations: { [DIRECT]: 'false' } })],
  ['mode is skip', (world: IngressWorld) => world.patch('site', { annotations: { [MODE]: 'skip' } })],
] as const) {
  test(`a gate does not wait any longer when ${title}`, async (t) => {
    const { world, health, gated, gate, bare } = await start();
    await bare('web');
    await world.create('site');
    health.say(await gated('a'), false);
    await world.advance(DONE_MS);
    t.is(gate('a'), 'False Unhealthy');
    await end(world);
    await world.advance(20 * SECOND_MS);
    t.is(gate('a'), 'True NoLoadBalancer');
    await world.stop();
  });
}

test('an Ingress and a Service of one name have load balancers of their own, and end by themselves', async (t) => {
  const { world } = await start();
  await addLists(world.services, ['n1']);
  await world.services.create('web', { metadata: { annotations: { [SERVICE_DIRECT]: 'true' } } });
  const ip = await world.pods.run('web', 'a', { node: 'n1' });
  await world.create('web');
  for (let second = 0; second < 40; second++) {
    await world.advance(SECOND_MS);
    t.deepEqual(unprotected(world.services), []);
  }
  t.is(world.services.balancers().length, 2);
  t.deepEqual(published(world.services, 'n1'), [ip]);
  // What the Service has no more, the Ingress has still, and it follows the Pods of the Service.
  await world.services.patch('web', { spec: { type: 'ClusterIP' } });
  await world.advance(3 * DONE_MS);
  t.deepEqual(world.rules(), { 'HTTP:80 /': [`${ip}:8080 10`] });
  t.deepEqual(published(world.services, 'n1'), [ip]);
  const other = await world.pods.run('web', 'b', { node: 'n1' });
  await world.advance(20 * SECOND_MS);
  t.deepEqual(world.rules(), { 'HTTP:80 /': [`${ip}:8080 10`, `${other}:8080 10`].toSorted() });
  await world.delete('web');
  await world.advance(3 * DONE_MS);
  t.deepEqual([world.services.balancers(), published(world.services, 'n1')], [[], []]);
  await world.stop();
});

function messageOf(world: IngressWorld, pod: string): string {
  const status = world.pods.pod(pod)?.['status'] as {
    readonly conditions?: readonly { readonly type: string; readonly message?: string }[];
  };
  return status.conditions?.find(({ type }) => type === GATE)?.message ?? '';
}

test('the gate of a Pod waits for the rules of a group', async (t) => {
  const { world, health, gated, gate, bare } = await start();
  await bare('web');
  await bare('api');
  const annotations = {
    'kubernetes.io/ingress.existLbId': await world.services.buy(),
    'ingress.cloud.tencent.com/enable-group': 'true',
  };
  await world.create('one', { annotations, spec: ruleOf('/a', 'www.example.com') });
  await world.create('two', { annotations, spec: ruleOf('/b', 'www.example.com', 'api') });
  const ip = await gated('b', 'api');
  health.say(ip, false);
  await world.advance(DONE_MS);
  t.is(gate('b'), 'False Unhealthy');
  health.say(ip, undefined);
  await world.advance(DONE_MS);
  t.is(messageOf(world, 'b'), 'a healthy target of Ingress default/two');
  await world.stop();
});
