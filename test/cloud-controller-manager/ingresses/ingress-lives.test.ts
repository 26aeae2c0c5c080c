/** Load balancers that outlive their Ingress, or are refused something. */
import test from 'ava';
import { IngressWorld, ruleOf } from './ingress-world.ts';

const MINUTE_MS = 60_000;
const DONE_MS = 60_000;
/** Three sweeps, with one of them an hour after the others. */
const SWEPT_MS = 90 * MINUTE_MS;
const EXISTING = 'kubernetes.io/ingress.existLbId';
const MODE = 'ingress.cloud.tencent.com/mode';
const RETAIN = 'ingress.cloud.tencent.com/loadbalance-retain';
const PROTECTION = 'ingress.cloud.tencent.com/deletion-protection';
const SUBNET = { 'kubernetes.io/ingress.subnetId': 'subnet-node0001' };
const DELETES = '--delete-orphan-load-balancers=true';

/** Two Ingresses, of which one is lost: it goes, and its load balancer stays. */
async function withOrphan(flags: readonly string[]): Promise<IngressWorld> {
  const world = await IngressWorld.start({ flags });
  await world.serve('web');
  await world.create('stays');
  await world.create('gone');
  await world.advance(DONE_MS);
  await world.patch('gone', { annotations: { [MODE]: 'skip' } });
  await world.advance(5_000);
  await world.delete('gone');
  await world.advance(5_000);
  return world;
}

test('a load balancer without its Ingress is reported, and with the flag it is deleted', async (t) => {
  const world = await withOrphan([]);
  t.is(world.services.balancers().length, 2);
  await world.advance(SWEPT_MS);
  t.is(world.services.balancers().length, 2);
  t.regex(world.events('OrphanLoadBalancer').join(), /_default_gone, .* was made for an Ingress with the uid/);
  t.false(world.events('OrphanLoadBalancer').join().includes('_stays'));
  await world.stop();
  const other = await withOrphan([DELETES]);
  await other.advance(SWEPT_MS);
  t.regex(other.balancer().name, /_default_stays$/);
  t.is(other.events('OrphanLoadBalancerDeleted').length, 1);
  await other.stop();
});

test('without --ingress=clb load balancers of Ingresses are no orphans', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  await world.services.create('api');
  await world.create('site');
  await world.advance(DONE_MS);
  t.is(world.services.balancers().length, 2);
  await world.services.replace('--ingress=none', DELETES);
  await world.advance(SWEPT_MS);
  t.is(world.services.balancers().length, 2);
  t.deepEqual(world.events('OrphanLoadBalancer'), []);
  await world.stop();
});

test('a load balancer that is kept may be used by a Service, and the other way round', async (t) => {
  const world = await IngressWorld.start();
  const ip = await world.serve('web');
  await world.create('site', { annotations: { [RETAIN]: 'true' } });
  await world.advance(DONE_MS);
  const { loadBalancerId, vip } = world.balancer();
  await world.delete('site');
  await world.advance(2 * DONE_MS);
  t.is(world.ingress('site'), undefined);
  t.is(world.balancer().listeners.size, 0);
  const annotations = { 'service.kubernetes.io/tke-existed-lbid': loadBalancerId };
  await world.services.create('api', { metadata: { annotations }, spec: { ports: [{ port: 443 }] } });
  await world.create('site', { annotations: { [EXISTING]: loadBalancerId } });
  await world.advance(2 * DONE_MS);
  t.is(world.balancer().vip, vip);
  t.deepEqual(Object.keys(world.services.listeners()).toSorted(), ['HTTP/80', 'TCP/443']);
  t.deepEqual(world.rules(), { 'HTTP:80 /': [`${ip}:8080 10`] });
  await world.stop();
});

test('a change that needs another load balancer is refused, and targets follow', async (t) => {
  const world = await IngressWorld.start();
  const first = await world.serve('web');
  await world.create('site');
  await world.advance(DONE_MS);
  const { vip } = world.balancer();
  await world.patch('site', { annotations: SUBNET });
  await world.advance(DONE_MS);
  t.is(world.events('ImmutableChangeRefused').length, 1);
  const second = await world.pods.run('web', 'web-1', { node: 'n1' });
  await world.advance(20_000);
  t.deepEqual(world.rules(), { 'HTTP:80 /': [`${first}:8080 10`, `${second}:8080 10`].toSorted() });
  t.is(world.balancer().vip, vip);
  await world.patch('site', { annotations: { 'tke.cloud.tencent.com/allow-address-change': 'true' } });
  await world.advance(3 * DONE_MS);
  t.is(world.balancer().type, 'INTERNAL');
  t.deepEqual(world.addresses('site'), [world.balancer().vip]);
  await world.stop();
});

test('a malformed annotation stops nothing of the targets, and one of the targets stops all', async (t) => {
  const world = await IngressWorld.start();
  const first = await world.serve('web');
  await world.create('site', { spec: ruleOf('/a', 'www.example.com') });
  await world.advance(DONE_MS);
  await world.patch('site', { annotations: { [PROTECTION]: 'maybe' }, spec: ruleOf('/b', 'www.example.com') });
  const second = await world.pods.run('web', 'web-1', { node: 'n1' });
  await world.advance(DONE_MS);
  t.is(world.events('AnnotationInvalid').length, 1);
  t.deepEqual(Object.keys(world.rules()), ['HTTP:80 www.example.com/a']);
  await world.patch('site', { spec: ruleOf('/a', 'www.example.com') });
  await world.advance(DONE_MS);
  t.deepEqual(world.rules(), {
    'HTTP:80 www.example.com/a': [`${first}:8080 10`, `${second}:8080 10`].toSorted(),
  });
  await world.patch('site', { annotations: { [PROTECTION]: null, 'ingress.cloud.tencent.com/direct-access': 'x' } });
  await world.pods.run('web', 'web-2', { node: 'n1' });
  await world.advance(DONE_MS);
  t.is(world.rules()['HTTP:80 www.example.com/a']?.length, 2);
  await world.stop();
});

test('an Ingress that is protected against deletion waits, until that is taken off', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  await world.create('site', { annotations: { [PROTECTION]: 'true' } });
  await world.advance(DONE_MS);
  t.true(world.balancer().isDeleteProtected);
  await world.delete('site');
  await world.advance(2 * DONE_MS);
  t.truthy(world.ingress('site'));
  t.regex(
    world.events('DeleteLoadBalancerFailed').join(),
    /annotate the Ingress with ingress\.cloud\.tencent\.com\/mode=skip/,
  );
  await world.patch('site', { annotations: { [PROTECTION]: 'false' } });
  await world.advance(3 * DONE_MS);
  t.is(world.ingress('site'), undefined);
  t.deepEqual(world.services.balancers(), []);
  await world.stop();
});
