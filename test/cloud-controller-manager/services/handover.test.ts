/** A new leader looks first at load balancers behind which Pods end, and by the rules of every comparison. */
import test from 'ava';
import { TKE_CONFIG } from '../../../cloud-controller-manager/services/find-tke-traces.ts';
import { DIRECT_ACCESS_ANNOTATION } from '../../../crd/names.ts';
import { CONFIG_MAPS } from '../../../kube/resource-types.ts';
import { DIRECT, IngressWorld, ruleOf } from '../ingresses/ingress-world.ts';
import { type HandoverSize, measureHandover } from './measure-handover.ts';
import { startWithLists } from './published-lists.ts';
import { ServicePods } from './service-pods.ts';
import { ServiceWorld } from './service-world.ts';

const SIZE: HandoverSize = { services: 30, podsEach: 3, ending: 5, nodes: 10 };
const EXISTING = 'kubernetes.io/ingress.existLbId';
const HOST = 'www.example.com';
/** A target with a weight above 0. */
const SERVING = / [1-9]\d*$/;

test('a new leader: Pods that end have weight 0 before instances or other load balancers were looked at', async (t) => {
  const slow = (world: ServiceWorld): void => {
    const { faults } = world.world.scene.host;
    faults.add({ fault: { kind: 'latency', ms: 9_000 }, actions: ['DescribeInstances'] });
  };
  const { firstSeconds, lastSeconds, callsBefore } = await measureHandover({ ...SIZE, disturb: slow });
  t.log({ firstSeconds, lastSeconds, callsBefore });
  t.true(firstSeconds < 2);
  t.true(lastSeconds < 4);
  const { DescribeListeners: listeners = 0, DescribeTargets: targets = 0 } = callsBefore;
  t.true(Math.max(listeners, targets) <= 2 * SIZE.ending, JSON.stringify(callsBefore));
});

test('a new leader: only Pods that end lose their weight, and none at an address where one serves', async (t) => {
  const world = await ServiceWorld.start();
  const pods = new ServicePods(world);
  await world.join('n1');
  await world.create('web', { metadata: { annotations: { [DIRECT_ACCESS_ANNOTATION]: 'true' } } });
  const [a, b] = [await pods.run('web', 'a', { node: 'n1' }), await pods.run('web', 'b', { node: 'n1' })];
  await world.advance(90_000);
  await world.world.stop();
  await pods.delete('a');
  // As a kubelet may say that has the same address for another Pod.
  await pods.run('web', 'c', { node: 'n1', ip: b });
  await pods.delete('c');
  world.world.scene.host.faults.add({ fault: { kind: 'latency', ms: 9_000 }, actions: ['DescribeInstances'] });
  await world.replace();
  await world.advance(2_000);
  t.deepEqual(world.listeners()['TCP/80'], [`${a}:8080 0`, `${b}:8080 10`].toSorted());
  await world.advance(120_000);
  t.deepEqual(world.listeners()['TCP/80'], [`${a}:8080 0`, `${b}:8080 10`].toSorted());
  await world.stop();
});

test("a new leader: a Service with mode skip is left, and nothing is done beside the product's controller", async (t) => {
  const world = await ServiceWorld.start();
  const pods = new ServicePods(world);
  await world.join('n1');
  const direct = { [DIRECT_ACCESS_ANNOTATION]: 'true' };
  const skipped = { 'service.cloud.tencent.com/mode': 'skip' };
  await world.create('web', { metadata: { annotations: direct } });
  const ip = await pods.run('web', 'a', { node: 'n1' });
  await world.advance(90_000);
  await world.patch('web', { metadata: { annotations: skipped } });
  await world.advance(10_000);
  await world.world.stop();
  await pods.delete('a');
  await world.replace();
  await world.advance(5_000);
  t.deepEqual(world.listeners()['TCP/80'], [`${ip}:8080 10`]);
  await world.world.stop();
  await world.patch('web', { metadata: { annotations: { 'service.cloud.tencent.com/mode': null } } });
  const { admin, clock } = world.world.scene;
  await clock.run(admin.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...TKE_CONFIG } }));
  await world.replace();
  await world.advance(5_000);
  t.regex(world.events('LoadBalancersKeptByOther').join(), /TKE's own service controller/);
  t.deepEqual(world.listeners()['TCP/80'], [`${ip}:8080 10`]);
  await world.stop();
});

test('a new leader: where the cloud does not answer about one load balancer, the others are drained, and work begins', async (t) => {
  const hang = (world: ServiceWorld): void => {
    world.world.scene.host.faults.add({ fault: { kind: 'hang' }, actions: ['DescribeListeners'], times: 1 });
  };
  const { firstSeconds, lastSeconds } = await measureHandover({ ...SIZE, disturb: hang });
  t.true(firstSeconds < 2, String(firstSeconds));
  t.true(lastSeconds < 40, String(lastSeconds));
});

test('a new leader: Pods behind an Ingress too', async (t) => {
  const world = await IngressWorld.start();
  const a = await world.serve('web');
  await world.pods.run('web', 'web-1', { node: 'n1' });
  await world.create('site', { annotations: { [DIRECT]: 'true' } });
  await world.advance(90_000);
  await world.services.world.stop();
  await world.pods.delete('web-0');
  const { host } = world.services.world.scene;
  host.faults.add({ fault: { kind: 'latency', ms: 9_000 }, actions: ['DescribeInstances'] });
  await world.services.replace();
  await world.advance(2_000);
  const weights = [...world.balancer().listeners.values()].flatMap(({ layer7 }) =>
    [...(layer7?.rules.values() ?? [])].flatMap(({ targets }) =>
      [...targets.values()].map(({ ip, weight }) => [ip, weight] as const),
    ),
  );
  t.deepEqual(
    weights.filter(([, weight]) => weight === 0).map(([ip]) => ip),
    [a],
  );
  t.is(weights.length, 2);
  await world.stop();
});

for (const isSlow of [false, true])
  test(`a new leader: the last target serves until its successor does, instances ${isSlow ? 'slow' : 'at once'}`, async (t) => {
    const world = await ServiceWorld.start();
    const pods = new ServicePods(world);
    for (const node of ['n1', 'n2']) await world.join(node);
    await world.create('web', { metadata: { annotations: { [DIRECT_ACCESS_ANNOTATION]: 'true' } } });
    const old = await pods.run('web', 'a', { node: 'n1' });
    await world.advance(90_000);
    await world.world.stop();
    await pods.delete('a');
    const next = await pods.run('web', 'b', { node: 'n2' });
    const { host, clock } = world.world.scene;
    if (isSlow) host.faults.add({ fault: { kind: 'latency', ms: 9_000 }, actions: ['DescribeInstances'] });
    const leading = world.replace();
    for (let waitedMs = 0; waitedMs < 40_000; waitedMs += 20) {
      await clock.advance(20);
      const targets = world.listeners()['TCP/80'] ?? [];
      if (!targets.some((target) => SERVING.test(target))) return t.fail(`${waitedMs} ms: ${targets.join()}`);
    }
    await leading;
    t.deepEqual(world.listeners()['TCP/80'], [`${old}:8080 0`, `${next}:8080 10`].toSorted());
    await world.stop();
  });

for (const isSkipped of [false, true])
  test(`a new leader: an endpoint that says it ends takes no target of another Ingress of the group, ${isSkipped ? 'which has mode skip' : 'which binds Nodes'}`, async (t) => {
    const world = await IngressWorld.start();
    await world.serve('web', { type: 'NodePort' });
    await world.serve('other');
    const group = { [EXISTING]: await world.services.buy(), 'ingress.cloud.tencent.com/enable-group': 'true' };
    await world.create('site', { annotations: { ...group, [DIRECT]: 'false' }, spec: ruleOf('/s', HOST) });
    await world.create('other', { annotations: { ...group, [DIRECT]: 'true' }, spec: ruleOf('/o', HOST, 'other') });
    await world.advance(90_000);
    const targetsOf = () => [Object.entries(world.rules()).find(([rule]) => rule.includes('/s'))?.[1] ?? []].flat();
    const before = targetsOf();
    const [ip = '', port = ''] = before[0]?.split(' ')[0]?.split(':') ?? [];
    await world.pods.putSlice('other', 'more', {
      ports: [{ name: 'http', protocol: 'TCP', port: Number(port) }],
      endpoints: [{ addresses: [ip], conditions: { ready: false, serving: true, terminating: true } }],
    });
    if (isSkipped) await world.patch('site', { annotations: { 'ingress.cloud.tencent.com/mode': 'skip' } });
    await world.advance(90_000);
    t.deepEqual(targetsOf(), before);
    await world.services.world.stop();
    const { host, clock } = world.services.world.scene;
    host.faults.add({ fault: { kind: 'latency', ms: 9_000 }, actions: ['DescribeInstances'] });
    const leading = world.services.replace();
    for (let waitedMs = 0; waitedMs < 20_000; waitedMs += 100) {
      await clock.advance(100);
      if (targetsOf().join() !== before.join()) return t.fail(`${waitedMs} ms: ${targetsOf().join()}`);
    }
    await leading;
    t.true(before.some((target) => SERVING.test(target)));
    await world.stop();
  });

for (const isSlow of [false, true])
  test(`a new leader: a Pod that ends beside others does not wait for its replacement to be registered, instances ${isSlow ? 'slow' : 'at once'}`, async (t) => {
    const { world, pods } = await startWithLists();
    await world.create('web', { metadata: { annotations: { [DIRECT_ACCESS_ANNOTATION]: 'true' } } });
    const [a, b] = [await pods.run('web', 'a', { node: 'n1' }), await pods.run('web', 'b', { node: 'n2' })];
    await world.advance(90_000);
    await world.world.stop();
    await pods.delete('a');
    const c = await pods.run('web', 'c', { node: 'n2' });
    const { host } = world.world.scene;
    if (isSlow) host.faults.add({ fault: { kind: 'latency', ms: 9_000 }, actions: ['DescribeInstances'] });
    await world.replace();
    await world.advance(2_500);
    t.true(world.listeners()['TCP/80']?.includes(`${a}:8080 0`), world.listeners()['TCP/80']?.join());
    await world.advance(30_000);
    t.deepEqual(world.listeners()['TCP/80'], [`${a}:8080 0`, `${b}:8080 10`, `${c}:8080 10`].toSorted());
    await world.stop();
  });
