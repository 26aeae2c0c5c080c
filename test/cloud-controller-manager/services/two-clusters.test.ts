/** Two clusters of one VPC, each with its controller: none touches what is of the other, whatever has the same name or uid. */
import test, { type ExecutionContext } from 'ava';
import type { ModelLoadBalancer } from '../../../sim/vpc/api/model/clb/types.ts';
import { ServicePods } from './service-pods.ts';
import { CLUSTER, ServiceWorld } from './service-world.ts';

const OTHER = 'cls-service2';
const OWNER_TAG = 'tke-eni-owner';
const MINUTE_MS = 60_000;
const DONE_MS = 40_000;
/** Three sweeps for orphans, with one of them an hour after the others. */
const SWEPT_MS = 90 * MINUTE_MS;
const FLAGS = ['--delete-orphan-load-balancers=true'];
const NAMES = ['web', 'pods', 'lost', 'shared'];
const EXISTING = 'service.kubernetes.io/tke-existed-lbid';
const DIRECT = { 'service.cloud.tencent.com/direct-access': 'true' };

type Cluster = { readonly world: ServiceWorld; readonly pods: ServicePods };

/** Numbers instead of random uids, so that two clusters have the same. */
function countUids(): () => string {
  let serial = 0;
  return () => `00000000-0000-4000-8000-${String(++serial).padStart(12, '0')}`;
}

async function startTwo(): Promise<readonly [Cluster, Cluster]> {
  const one = await ServiceWorld.start({ flags: FLAGS, newUid: countUids() });
  const other = await ServiceWorld.start({ flags: FLAGS, newUid: countUids(), clusterId: OTHER, beside: one });
  await one.join('n1');
  await other.join('m1');
  const withPods = (world: ServiceWorld) => ({ world, pods: new ServicePods(world) });
  return [withPods(one), withPods(other)];
}

/** Makes the same Services in both; `shared` uses a load balancer of a person, with a port of its own. */
async function createAll({ world, pods }: Cluster, node: string, existing: string, port: number): Promise<void> {
  await world.create('web');
  await world.create('pods', { metadata: { annotations: DIRECT } });
  await world.create('lost');
  await world.create('shared', { metadata: { annotations: { [EXISTING]: existing } }, spec: { ports: [{ port }] } });
  await pods.run('pods', 'a', { node });
}

function ownedBy(world: ServiceWorld, clusterId: string): readonly ModelLoadBalancer[] {
  return world.balancers().filter(({ tags }) => tags[OWNER_TAG]?.startsWith(`${clusterId}/`));
}

const uidOf = ({ world }: Cluster, name: string) => world.service(name)?.metadata.uid;
const listenersOf = (one: ModelLoadBalancer | undefined) => [...(one?.listeners.values() ?? [])];

/** What one cluster has is the very same as before; a load balancer is never changed in place. */
function assertSame(
  t: ExecutionContext,
  now: readonly ModelLoadBalancer[],
  before: readonly ModelLoadBalancer[],
): void {
  t.is(now.length, before.length);
  for (const [at, one] of before.entries()) t.is(now[at], one);
}

test('the same names and uids: each cluster has its own load balancers, through changes, restarts, orphans and the end', async (t) => {
  const [one, other] = await startTwo();
  const existing = await one.world.buy();
  await createAll(one, 'n1', existing, 80);
  await createAll(other, 'm1', existing, 81);
  await one.world.advance(DONE_MS);
  for (const name of NAMES) t.is(uidOf(one, name), uidOf(other, name));
  t.deepEqual([ownedBy(one.world, CLUSTER).length, ownedBy(one.world, OTHER).length], [3, 3]);
  const shared = () => one.world.balancers().find(({ loadBalancerId }) => loadBalancerId === existing);
  const onPort = (port: number) => listenersOf(shared()).find((listener) => listener.port === port);
  t.deepEqual(
    listenersOf(shared()).map(({ port }) => port),
    [53, 80, 81],
  );
  t.not(onPort(80)?.name, onPort(81)?.name);
  // Two comparisons, so that nothing is left to be done.
  await one.world.advance(21 * MINUTE_MS);
  const kept = ownedBy(one.world, CLUSTER);
  const keptPort = onPort(80);

  await other.world.patch('web', { spec: { ports: [{ port: 8_443 }] } });
  await other.pods.end('a');
  await other.world.patch('shared', { metadata: { annotations: { [EXISTING]: null } } });
  await other.world.advance(DONE_MS);
  assertSame(t, ownedBy(one.world, CLUSTER), kept);
  await other.world.loseService('lost');
  await Promise.all([one, other].map(({ world }) => world.replace()));
  await other.world.advance(SWEPT_MS);
  assertSame(t, ownedBy(one.world, CLUSTER), kept);
  t.is(ownedBy(one.world, OTHER).filter(({ name }) => name.endsWith('_lost')).length, 0, 'its own orphan is gone');
  t.deepEqual(one.world.events('OrphanLoadBalancer'), []);
  for (const name of ['web', 'pods', 'shared']) await other.world.delete(name);
  await other.world.advance(SWEPT_MS);
  t.deepEqual(ownedBy(one.world, OTHER), []);
  assertSame(t, ownedBy(one.world, CLUSTER), kept);
  t.is(onPort(80), keptPort);
  t.is(onPort(81), undefined);
  t.deepEqual(one.world.events('DriftFound'), []);
  for (const { world } of [one, other]) await world.stop();
});

test('a Service that was restored from the other cluster, with its record, gets nothing of that cluster', async (t) => {
  const [one, other] = await startTwo();
  for (const name of ['web', 'pods'])
    await one.world.create(name, { metadata: { annotations: name === 'pods' ? DIRECT : {} } });
  await one.pods.run('pods', 'a', { node: 'n1' });
  await one.world.advance(21 * MINUTE_MS);
  const kept = ownedBy(one.world, CLUSTER);
  t.is(kept.length, 2);
  for (const name of ['web', 'pods']) {
    const { annotations = {}, finalizers = [] } = one.world.service(name)?.metadata ?? {};
    t.true(Object.keys(annotations).some((key) => key.endsWith('load-balancer-record')));
    await other.world.create(name, { metadata: { annotations, finalizers } });
    t.is(uidOf(other, name), uidOf(one, name));
  }
  await other.pods.run('pods', 'a', { node: 'm1' });
  await one.world.advance(SWEPT_MS);
  assertSame(t, ownedBy(one.world, CLUSTER), kept);
  t.deepEqual(ownedBy(one.world, OTHER), []);
  t.regex(other.world.events('ImmutableChangeRefused').join(), /annotate the Service with .*allow-address-change=true/);
  const allowed = { 'tke.cloud.tencent.com/allow-address-change': 'true' };
  for (const name of ['web', 'pods']) await other.world.patch(name, { metadata: { annotations: allowed } });
  await other.world.replace();
  await other.world.patch('web', { spec: { ports: [{ port: 8_443 }] } });
  await one.world.advance(15 * MINUTE_MS);
  assertSame(t, ownedBy(one.world, CLUSTER), kept);
  t.is(ownedBy(one.world, OTHER).length, 2, 'each has one of its own');
  for (const name of ['web', 'pods']) await other.world.delete(name);
  await one.world.advance(SWEPT_MS);
  assertSame(t, ownedBy(one.world, CLUSTER), kept);
  t.deepEqual(ownedBy(one.world, OTHER), []);
  t.is(other.world.service('web'), undefined);
  for (const { world } of [one, other]) await world.stop();
});
