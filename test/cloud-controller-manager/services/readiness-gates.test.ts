import test, { type ExecutionContext } from 'ava';
import { BACKEND_READY_GATE as GATE } from '../../../crd/names.ts';
import { ServicePods } from './service-pods.ts';
import { ServiceWorld } from './service-world.ts';

const DIRECT = 'service.cloud.tencent.com/direct-access';
const SERVICE = { metadata: { annotations: { [DIRECT]: 'true' } } };
/** Longer than a creation, the registration of its targets and their first checks. */
const DONE_MS = 60_000;
const MINUTE_MS = 60_000;

async function start(options: Parameters<typeof ServiceWorld.start>[0] = {}) {
  const world = await ServiceWorld.start(options);
  const pods = new ServicePods(world);
  await world.join('n1');
  const { health } = world.world.scene.host.model.state.clb;
  const gated = (name: string, more: Partial<Parameters<ServicePods['run']>[2]> = {}): Promise<string> =>
    pods.run('web', name, { node: 'n1', gates: [GATE], ...more });
  const gate = (name: string): string | undefined => pods.condition(name, GATE);
  return { world, pods, health, gated, gate };
}

test('a Pod is registered before it is ready, and its gate is True once it is healthy', async (t) => {
  const { world, pods, health, gated, gate } = await start();
  await world.create('web', SERVICE);
  const ip = await gated('a', { isReady: false });
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners(), { 'TCP/80': [] }, 'its containers are not ready');
  t.is(gate('a'), undefined);
  health.say(ip, false);
  await pods.setContainersReady('a', true);
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners(), { 'TCP/80': [`${ip}:8080 10`] });
  t.is(gate('a'), 'False Unhealthy');
  t.regex(await world.world.metrics(), /_readiness_gates_pending\{reason="Unhealthy"\} 1/);
  health.say(ip, undefined);
  await world.advance(DONE_MS);
  t.is(gate('a'), 'True Registered');
  t.notRegex(await world.world.metrics(), /_readiness_gates_pending\{/);
  await pods.sync();
  t.is(pods.condition('a', 'Ready'), 'True');
  health.say(ip, false);
  await world.advance(DONE_MS);
  t.is(gate('a'), 'True Registered', 'it stays True');
  await world.stop();
});

test('nothing is written while nothing changes, also after a restart', async (t) => {
  const { world, pods, health, gated, gate } = await start();
  await world.create('web', SERVICE);
  health.say(await gated('a'), false);
  await world.advance(DONE_MS);
  t.is(gate('a'), 'False Unhealthy');
  const version = pods.pod('a')?.metadata.resourceVersion;
  await world.advance(5 * MINUTE_MS);
  await world.replace();
  await world.advance(5 * MINUTE_MS);
  t.is(gate('a'), 'False Unhealthy');
  const reasons = new Set([version, pods.pod('a')?.metadata.resourceVersion]);
  t.true(reasons.size <= 2);
  const settled = pods.pod('a')?.metadata.resourceVersion;
  await world.advance(5 * MINUTE_MS);
  t.is(pods.pod('a')?.metadata.resourceVersion, settled);
  await world.stop();
});

test('a process that dies while a gate is pending is followed by one that ends the wait', async (t) => {
  const { world, gated, gate } = await start();
  await world.create('web', SERVICE);
  await gated('a');
  await world.advance(3_000);
  t.not(gate('a'), 'True Registered');
  await world.replace();
  await world.advance(DONE_MS);
  t.is(gate('a'), 'True Registered');
  await world.stop();
});

test('a Pod that no Service with direct access selects does not wait', async (t) => {
  const { world, gated, gate } = await start();
  await world.create('web');
  await gated('a');
  await world.advance(DONE_MS);
  t.is(gate('a'), 'True NoLoadBalancer');
  await world.stop();
});

type Ending = (world: ServiceWorld) => Promise<void>;
const ENDINGS: readonly (readonly [string, Ending])[] = [
  ['its Service is deleted', (world) => world.delete('web')],
  ['direct access goes', (world) => world.patch('web', { metadata: { annotations: { [DIRECT]: 'false' } } })],
  ['the Service has another type', (world) => world.patch('web', { spec: { type: 'ClusterIP' } })],
  ['mode is skip', (world) => annotate(world, { 'service.cloud.tencent.com/mode': 'skip' })],
];

function annotate(world: ServiceWorld, annotations: Readonly<Record<string, string>>): Promise<void> {
  return world.patch('web', { metadata: { annotations } });
}

for (const [title, end] of ENDINGS) {
  test(`a Pod does not wait any longer when ${title}`, async (t) => {
    const { world, health, gated, gate } = await start();
    await world.create('web', SERVICE);
    health.say(await gated('a'), false);
    await world.advance(DONE_MS);
    t.is(gate('a'), 'False Unhealthy');
    await end(world);
    await world.advance(20_000);
    t.is(gate('a'), 'True NoLoadBalancer');
    await world.stop();
  });
}

async function waitsInVain(
  t: ExecutionContext,
  { world, gate }: Pick<Awaited<ReturnType<typeof start>>, 'world' | 'gate'>,
  name: string,
  reason: string,
): Promise<void> {
  await world.advance(DONE_MS);
  t.is(gate(name), `False ${reason}`);
  await world.advance(6 * MINUTE_MS);
  t.is(gate(name), `True ${reason}`);
}

test('a Service that is refused holds a Pod up for some minutes', async (t) => {
  const scene = await start();
  const bad = { [DIRECT]: 'true', 'service.cloud.tencent.com/security-groups': 'everyone' };
  await scene.world.create('web', { metadata: { annotations: bad } });
  await scene.gated('a');
  await waitsInVain(t, scene, 'a', 'NotRegistered');
  await scene.world.stop();
});

test('load balancers that only the records of a tenant name are asked for alone once a minute, at most 30 in a pass', async (t) => {
  const scene = await start();
  const { host } = scene.world.world.scene;
  const asked: string[] = [];
  host.gate = async ({ action, params, moment }) => {
    const { LoadBalancerIds: ids = [] } = params as { readonly LoadBalancerIds?: readonly string[] };
    if (action === 'DescribeTargetHealth' && moment === 'before' && ids.length === 1) asked.push(...ids);
    return 'go';
  };
  for (let at = 0; at < 40; at++) {
    const record = JSON.stringify({ serial: 1, loadBalancerId: `lb-${(0x10000000 + at).toString(16)}` });
    const annotations = {
      ...{ [DIRECT]: 'true', 'service.cloud.tencent.com/pass-to-target': 'maybe' },
      ...{ 'tke.cloud.tencent.com/load-balancer-record': record },
    };
    await scene.world.create(`s${at}`, { metadata: { annotations }, spec: { selector: { app: 'web' } } });
  }
  await scene.gated('a');
  await scene.world.advance(DONE_MS);
  t.regex(scene.gate('a') ?? '', /^False /);
  t.is(new Set(asked).size, 40);
  t.true(asked.length <= 80, `${asked.length} questions in a minute`);
  await scene.world.stop();
});

test('so does the quota of targets', async (t) => {
  const scene = await start();
  scene.world.world.scene.host.model.state.clb.limits.targets = 1;
  await scene.world.create('web', SERVICE);
  await scene.gated('a');
  await scene.gated('b');
  await scene.world.advance(DONE_MS);
  const unbound = scene.gate('a') === 'True Registered' ? 'b' : 'a';
  t.is(scene.gate(unbound === 'a' ? 'b' : 'a'), 'True Registered');
  await waitsInVain(t, scene, unbound, 'QuotaExceeded');
  await scene.world.stop();
});

test('a Pod of two Services waits for both, and a Pod that cannot be bound for none', async (t) => {
  const { world, pods, health, gated, gate } = await start();
  await world.create('web', SERVICE);
  await world.create('api', { ...SERVICE, spec: { selector: { app: 'web' } } });
  pods.alsoSelects('api', 'web');
  const ip = await gated('a');
  const annotations = { 'tke.cloud.tencent.com/networks': 'tke-bridge' };
  await gated('gr', { ip: '192.168.1.7', annotations });
  health.say(ip, false);
  await world.advance(DONE_MS);
  t.is(world.balancers().length, 2);
  t.is(gate('a'), 'False Unhealthy');
  t.is(gate('gr'), 'True NoLoadBalancer');
  health.say(ip, true);
  await world.advance(DONE_MS);
  t.is(gate('a'), 'True Registered');
  await world.stop();
});

test('so does a target that the cloud refuses', async (t) => {
  const scene = await start();
  await scene.world.create('web', SERVICE);
  await scene.gated('bad', { ip: '10.0.200.9' });
  await waitsInVain(t, scene, 'bad', 'NotRegistered');
  await scene.world.stop();
});

for (const action of ['BatchRegisterTargets', 'DescribeListeners', 'DescribeTargetHealth'])
  test(`so does ${action} that the key may not call, though the load balancer is there`, async (t) => {
    const scene = await start();
    const { world, gated, gate } = scene;
    await world.create('web', SERVICE);
    await gated('a');
    await world.advance(DONE_MS);
    t.is(gate('a'), 'True Registered');
    world.world.scene.host.faults.add({ fault: { kind: 'error', code: 'UnauthorizedOperation' }, actions: [action] });
    await gated('b');
    await waitsInVain(t, scene, 'b', 'NotRegistered');
    await world.stop();
  });

test('a fault of the cloud that is over by itself is waited for', async (t) => {
  const { world, gated, gate } = await start();
  await world.create('web', SERVICE);
  await gated('a');
  await world.advance(DONE_MS);
  const { faults } = world.world.scene.host;
  const end = faults.add({ fault: { kind: 'error', code: 'InternalError' }, actions: ['BatchRegisterTargets'] });
  await gated('b');
  await world.advance(12 * MINUTE_MS);
  t.is(gate('b'), 'False NotRegistered');
  end();
  await world.advance(6 * MINUTE_MS);
  t.is(gate('b'), 'True Registered');
  await world.stop();
});

test('a load balancer that is gone keeps no Pod of another Service waiting', async (t) => {
  const { world, pods, health, gated, gate } = await start({ flags: ['--load-balancer-drift=report'] });
  await world.create('api', SERVICE);
  const ip = await pods.run('api', 'other', { node: 'n1', gates: [GATE] });
  health.say(ip, false);
  await world.advance(DONE_MS);
  t.is(gate('other'), 'False Unhealthy');
  const [{ loadBalancerId } = { loadBalancerId: '' }] = world.balancers();
  await world.discard(loadBalancerId);
  await world.create('web', SERVICE);
  await gated('a');
  await world.advance(DONE_MS);
  t.is(gate('a'), 'True Registered');
  await world.stop();
});

test('the health of the Pod that had the address before does not count', async (t) => {
  const { world, pods, gated, gate } = await start();
  await world.create('web', SERVICE);
  const ip = await gated('a');
  await world.advance(DONE_MS);
  t.is(gate('a'), 'True Registered');
  await pods.delete('a');
  await world.advance(10_000);
  t.deepEqual(world.listeners(), { 'TCP/80': [`${ip}:8080 0`] });
  await pods.end('a');
  await gated('a', { ip });
  for (let waitedMs = 0; waitedMs < 20_000 && gate('a') !== 'True Registered'; waitedMs += 200)
    await world.advance(200);
  t.deepEqual(world.listeners(), { 'TCP/80': [`${ip}:8080 10`] }, 'it is led to when it is ready');
  t.is(gate('a'), 'True Registered');
  await world.stop();
});

test('a Pod that another gate takes out of service is drained, though its containers are ready and this gate is True', async (t) => {
  const { world, pods, gate } = await start();
  await world.create('web', SERVICE);
  const other = 'example.com/in-service';
  const run = (name: string) => pods.run('web', name, { node: 'n1', gates: [GATE, other] });
  const [a, b] = [await run('a'), await run('b')];
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners(), { 'TCP/80': [] }, 'the other gate was never True');
  for (const name of ['a', 'b']) await pods.setCondition(name, other, true);
  await world.advance(DONE_MS);
  await pods.sync();
  const both = [`${a}:8080 10`, `${b}:8080 10`].toSorted();
  t.deepEqual(
    [gate('a'), pods.condition('a', 'Ready'), world.listeners()['TCP/80']],
    ['True Registered', 'True', both],
  );
  await pods.setCondition('a', other, false);
  await world.advance(10_000);
  t.deepEqual(world.listeners()['TCP/80'], [`${a}:8080 0`, `${b}:8080 10`].toSorted());
  await pods.setCondition('a', other, true);
  await world.advance(10_000);
  t.deepEqual(world.listeners()['TCP/80'], both);
  await world.stop();
});
