import test from 'ava';
import { ServiceWorld } from '../services/service-world.ts';

const RETAIN = 'service.cloud.tencent.com/loadbalance-retain';
const PROTECTION = 'service.cloud.tencent.com/deletion-protection';
const EXISTED = 'service.kubernetes.io/tke-existed-lbid';
const RANGES = 'service.beta.kubernetes.io/load-balancer-source-ranges';
const DONE_MS = 60_000;
const GONE_MS = 180_000;

const annotated = (annotations: Readonly<Record<string, string | null>>) => ({ metadata: { annotations } });

async function start() {
  const flags = ['--delete-orphan-load-balancers', '--orphan-load-balancer-period=10m'];
  const world = await ServiceWorld.start({ flags });
  await world.join('n1');
  return world;
}

test('a load balancer outlives its Service, is no orphan, and serves another Service under the same address', async (t) => {
  const world = await start();
  await world.create('web', annotated({ [RETAIN]: 'true', [RANGES]: '10.0.0.0/8' }));
  await world.advance(DONE_MS);
  const { loadBalancerId, vip, name } = world.balancer();
  await world.delete('web');
  await world.advance(GONE_MS);
  t.is(world.service('web'), undefined);
  const kept = world.balancer();
  t.like(kept, { loadBalancerId, isDeleteProtected: true, name: `kept_${name}`, securityGroupIds: [] });
  t.is(kept.listeners.size, 0);
  // Several sweeps.
  await world.advance(3_600_000);
  t.is(world.balancer().loadBalancerId, loadBalancerId);
  t.deepEqual(world.events('OrphanLoadBalancer'), []);
  await world.create('next', annotated({ [EXISTED]: loadBalancerId }));
  await world.advance(DONE_MS);
  t.is(world.listener('TCP', 80)?.targets.size, 1);
  t.deepEqual(
    world.ingress('next').map(({ ip }) => ip),
    [vip],
  );
  await world.delete('next');
  await world.advance(GONE_MS);
  t.is(world.service('next'), undefined);
  t.is(world.balancer().listeners.size, 0);
  await world.stop();
});

test('a load balancer of a living Service is not free for another one, protected or not', async (t) => {
  const world = await start();
  await world.create('web', annotated({ [PROTECTION]: 'true' }));
  await world.advance(DONE_MS);
  const { loadBalancerId, isDeleteProtected } = world.balancer();
  t.true(isDeleteProtected);
  await world.create('next', annotated({ [EXISTED]: loadBalancerId }));
  await world.advance(DONE_MS);
  t.regex(world.events('ServiceRefused').join('\n'), /was made for cls-service1\/service\//);
  await world.stop();
});

test('a protected load balancer holds its Service until the protection is taken off', async (t) => {
  const world = await start();
  await world.create('web', annotated({ [PROTECTION]: 'true' }));
  await world.advance(DONE_MS);
  await world.delete('web');
  await world.advance(GONE_MS);
  t.truthy(world.service('web'));
  t.true(world.events('DeleteLoadBalancerFailed').length > 0);
  await world.patch('web', annotated({ [PROTECTION]: 'false' }));
  await world.advance(GONE_MS);
  t.is(world.service('web'), undefined);
  t.deepEqual(world.balancers(), []);
  await world.stop();
});
