/** A new leader sets weight 0 of Pods that end before it does anything else. */
import test from 'ava';
import { TKE_CONFIG } from '../../../cloud-controller-manager/services/find-tke-traces.ts';
import { DIRECT_ACCESS_ANNOTATION } from '../../../crd/names.ts';
import { CONFIG_MAPS } from '../../../kube/resource-types.ts';
import { DIRECT, IngressWorld } from '../ingresses/ingress-world.ts';
import { type HandoverSize, measureHandover } from './measure-handover.ts';
import { ServicePods } from './service-pods.ts';
import { ServiceWorld } from './service-world.ts';

const SIZE: HandoverSize = { services: 30, podsEach: 3, ending: 5, nodes: 10 };
const READS = /^Describe(?!LoadBalancers$|Instances$|Quota$)/;

test('a new leader: Pods that end have weight 0 before instances, quotas or other load balancers were looked at', async (t) => {
  const slow = (world: ServiceWorld): void => {
    const { faults } = world.world.scene.host;
    for (const action of ['DescribeInstances', 'DescribeQuota', 'DescribeLoadBalancers'])
      faults.add({ fault: { kind: 'latency', ms: 9_000 }, actions: [action] });
  };
  const { firstSeconds, lastSeconds, callsBefore } = await measureHandover({ ...SIZE, disturb: slow });
  t.log({ firstSeconds, lastSeconds, callsBefore });
  t.true(firstSeconds < 2);
  t.true(lastSeconds < 4);
  const reads = Object.entries(callsBefore).filter(([action]) => READS.test(action));
  t.true(
    reads.every(([, count]) => count <= SIZE.ending),
    JSON.stringify(callsBefore),
  );
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
  for (const action of ['DescribeInstances', 'DescribeQuota'])
    host.faults.add({ fault: { kind: 'latency', ms: 9_000 }, actions: [action] });
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
