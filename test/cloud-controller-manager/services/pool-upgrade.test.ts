/** A Service of a pool whose record is of a former release, without uid, keeps its ports whatever one listing says. */
import test from 'ava';
import { SERVICE_ANNOTATION } from '../../../crd/names.ts';
import { SERVICES } from '../../../kube/resource-types.ts';
import { ServiceWorld } from './service-world.ts';

const POOL = { [SERVICE_ANNOTATION.pool]: 'p', [SERVICE_ANNOTATION.poolPorts]: 'allotted' };
const SETTLED_MS = 25 * 60_000;
const UPGRADED_MS = 240_000;

/** Two Services that share a load balancer, as a former release left them; no replica runs that keeps them. */
async function startOld(hasStatus: boolean): Promise<ServiceWorld> {
  const world = await ServiceWorld.start();
  await world.join('n1');
  for (const name of ['a', 'b']) await world.create(name, { metadata: { annotations: POOL } });
  await world.advance(SETTLED_MS);
  await world.replace('--load-balancers=none');
  const { clock, admin } = world.world.scene;
  for (const name of ['a', 'b']) {
    const { uid: _, ...record } = recordOf(world, name);
    await world.patch(name, { metadata: { annotations: { [SERVICE_ANNOTATION.record]: JSON.stringify(record) } } });
    const patch = { kind: 'merge', body: { status: { loadBalancer: null } }, subresource: 'status' } as const;
    if (!hasStatus) await clock.run(admin.patch(SERVICES, { namespace: 'default', name }, patch));
  }
  return world;
}

function recordOf(world: ServiceWorld, name: string): Readonly<Record<string, unknown>> {
  return JSON.parse(world.annotation(name, SERVICE_ANNOTATION.record) ?? '{}') as Record<string, unknown>;
}

/** The ports on the load balancer, by Service. */
function portsOf(world: ServiceWorld): readonly unknown[] {
  return ['a', 'b'].map((name) => recordOf(world, name)['ports']);
}

/** Gives all listeners other names, as a person does; returns what gives them their own again. */
function rename(world: ServiceWorld): () => void {
  const { host, clock } = world.world.scene;
  const one = world.balancer();
  const listeners = new Map([...one.listeners].map(([id, its]) => [id, { ...its, name: `shop-${its.port}` }] as const));
  host.model.state.clb.put({ ...one, listeners }, clock.nowMs());
  return () => host.model.state.clb.put({ ...world.balancer(), listeners: one.listeners }, clock.nowMs());
}

test('its status has the address of the load balancer: a listing without its name moves it nowhere', async (t) => {
  const world = await startOld(true);
  const [before, listeners] = [portsOf(world), Object.keys(world.listeners())];
  rename(world);
  await world.replace();
  await world.advance(SETTLED_MS);
  t.deepEqual(portsOf(world), before);
  t.deepEqual(Object.keys(world.listeners()), listeners);
  for (const name of ['a', 'b']) t.is(recordOf(world, name)['uid'], world.service(name)?.metadata.uid);
  await world.stop();
});

test('without a status one contradiction moves it nowhere, and two a minute apart place it as a new one', async (t) => {
  const world = await startOld(false);
  const before = portsOf(world);
  const heal = rename(world);
  await world.replace();
  await world.advance(40_000);
  t.deepEqual(portsOf(world), before, 'one contradiction');
  heal();
  await world.advance(UPGRADED_MS);
  t.deepEqual(portsOf(world), before);
  t.is(world.ingress('a').length, 1);
  await world.stop();
  const other = await startOld(false);
  rename(other);
  await other.replace();
  await other.advance(UPGRADED_MS);
  for (const name of ['a', 'b']) t.is(recordOf(other, name)['uid'], other.service(name)?.metadata.uid);
  t.notDeepEqual(portsOf(other), before);
  await other.stop();
});
