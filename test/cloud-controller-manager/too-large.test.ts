/** Services and Ingresses of a tenant that are too large to be kept. */
import test from 'ava';
import { IngressWorld, ruleOf } from './ingresses/ingress-world.ts';
import { ServiceWorld } from './services/service-world.ts';

const DONE_MS = 90_000;
const GONE_MS = 180_000;

/** Labels that are set, or taken away. */
function labels(count: number, value: string | null = ''): object {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`label-${at}`, value]));
}

test('a Service that is too large is refused; what it has stays, and goes with it', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  await world.create('web');
  await world.advance(DONE_MS);
  const before = world.listeners();
  t.deepEqual(Object.keys(before), ['TCP/80']);

  await world.patch('web', { metadata: { labels: labels(60_000) }, spec: { ports: [{ port: 81 }] } });
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners(), before);
  t.regex(world.events('ServiceInvalid').join('\n'), /the Service default\/web.*got more than 3072 KiB of memory/);

  await world.patch('web', { metadata: { labels: labels(60_000, null) } });
  await world.advance(DONE_MS);
  t.deepEqual(Object.keys(world.listeners()), ['TCP/81']);

  await world.patch('web', { metadata: { labels: labels(60_000) } });
  await world.advance(DONE_MS);
  await world.delete('web');
  await world.advance(GONE_MS);
  t.deepEqual(world.balancers(), []);
  await world.stop();
});

test('an Ingress that is too large is refused; what it has stays', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  await world.create('site', { spec: ruleOf('/') });
  await world.advance(DONE_MS);
  const before = world.rules();
  t.is(Object.keys(before).length, 1);

  const hosts = Array.from({ length: 60_000 }, (_, at) => `h${at}.example.com`);
  await world.patch('site', { spec: { ...ruleOf('/other'), tls: [{ hosts, secretName: 's' }] } });
  await world.advance(DONE_MS);
  t.deepEqual(world.rules(), before);
  t.regex(world.events('IngressInvalid').join('\n'), /the Ingress default\/site.*got more than 3072 KiB of memory/);
  await world.services.stop();
});
