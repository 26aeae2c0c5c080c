/** What an Ingress asks for that cannot be: each is an event that says what to do, and goes on by itself once it is done. */
import test from 'ava';
import { makeCertificate } from '../../../runtime/make-certificate.ts';
import { IngressWorld, ruleOf } from './ingress-world.ts';

/** Longer than a creation, the registration of its targets, and a refusal. */
const DONE_MS = 90_000;
const LATER_MS = 700_000;
const HOST = 'www.example.com';
/** Longer than a domain of the cloud. */
const LONG_HOST = `${'a'.repeat(60)}.${'b'.repeat(30)}.com`;
const PERSON = { priority: 'warm', owner: 'person', signal: new AbortController().signal } as const;
const TLS = { tls: [{ hosts: [HOST], secretName: 'site-tls' }], ...ruleOf('/', HOST) };

/** A certificate until a time, as the values of a Secret. */
function certificate(notAfterMs: number, host = HOST): Readonly<Record<string, string>> {
  const spec = { commonName: host, use: 'server' as const, names: [host] };
  const { cert, key } = makeCertificate({ ...spec, notBeforeMs: Date.UTC(2000, 0, 1), notAfterMs });
  return { 'tls.crt': cert, 'tls.key': key };
}

async function start(): Promise<{ readonly world: IngressWorld; readonly target: readonly string[] }> {
  const world = await IngressWorld.start();
  return { world, target: [`${await world.serve('web')}:8080 10`] };
}

test('a certificate that has expired, or is of another host', async (t) => {
  const { world, target } = await start();
  await world.makeSecret('site-tls', certificate(Date.UTC(2001, 0, 1)), 'kubernetes.io/tls');
  await world.makeSecret('other-tls', certificate(Date.UTC(2099, 0, 1), 'other.example.com'), 'kubernetes.io/tls');
  const rules = [
    ...ruleOf('/', HOST).rules,
    ...ruleOf('/', 'b.example.com').rules,
    ...ruleOf('/', 'c.example.com').rules,
  ];
  const tls = [...TLS.tls, { hosts: ['b.example.com'], secretName: 'other-tls' }];
  await world.create('site', { spec: { tls, rules } });
  await world.advance(DONE_MS);
  const messages = world.events('CertificateRefused').join('\n');
  t.regex(messages, /hosts "www\.example\.com": Secret "site-tls": the certificate has expired at 2001-01-01/);
  t.regex(messages, /hosts "b\.example\.com": Secret "other-tls": the certificate is not for "b\.example\.com"/);
  t.deepEqual(world.rules(), { 'HTTP:80 c.example.com/': target }, 'the host without one is served');
  await world.stop();
});

test('a class that does not exist, and one of another controller', async (t) => {
  const { world } = await start();
  const named = { annotations: { 'kubernetes.io/ingress.class': null } };
  await world.create('site', { ...named, spec: { ...ruleOf('/'), ingressClassName: 'qclod' } });
  await world.advance(DONE_MS);
  t.regex(
    world.events('IngressRefused').join(),
    /spec\.ingressClassName "qclod": there is no such IngressClass.*make one/,
  );
  t.deepEqual(world.services.balancers(), []);
  await world.makeClass('qclod', 'networking.tke.cloud.tencent.com/clb');
  await world.advance(DONE_MS);
  t.is(world.addresses('site').length, 1);
  await world.stop();
});

test('an existing load balancer that is not there, and a change that means another address', async (t) => {
  const { world } = await start();
  await world.create('site', { annotations: { 'kubernetes.io/ingress.existLbId': 'lb-0000abcd' } });
  await world.create('other');
  await world.advance(DONE_MS);
  t.regex(
    world.events('IngressRefused').join(),
    /lb-0000abcd does not exist in this region; name another one in the annotation kubernetes\.io\/ingress\.existLbId$/,
  );
  await world.patch('other', { annotations: { 'kubernetes.io/ingress.existLbId': await world.services.buy() } });
  await world.advance(DONE_MS);
  t.regex(world.events('ImmutableChangeRefused').join(), /annotate the Ingress with .*allow-address-change=true/);
  t.deepEqual(world.events('ServiceRefused'), []);
  await world.stop();
});

test('a path and a host that a load balancer cannot have stop no other rule', async (t) => {
  const { world, target } = await start();
  const rules = [...ruleOf('/a b', HOST).rules, ...ruleOf('/', LONG_HOST).rules, ...ruleOf('/ok', HOST).rules];
  await world.create('site', { spec: { rules } });
  await world.advance(DONE_MS);
  const messages = world.events('IngressRefused').join('\n');
  t.regex(messages, /path "\/a b" has characters that a url of a load balancer cannot have/);
  t.regex(messages, /host "a+\.b+… has 95 characters, and may have 80/);
  t.deepEqual(world.rules(), { [`HTTP:80 ${HOST}/ok`]: target });
  await world.stop();
});

test('more rules than a listener may have', async (t) => {
  const { world } = await start();
  const rules = Array.from({ length: 52 }, (_, at) => ruleOf(`/${at}`, HOST).rules).flat();
  await world.create('site', { spec: { rules } });
  await world.advance(DONE_MS);
  t.regex(world.events('RulesOverQuota').join(), /HTTP:80 may have 50 rules; 2 of this Ingress are not served; raise/);
  t.is(Object.keys(world.rules()).length, 50);
  await world.stop();
});

test('a rule that somebody else adds is a drift, and one on a listener of their own stays', async (t) => {
  const { world, target } = await start();
  const { clock } = world.services.world.scene;
  const { cloud } = world.services;
  await world.create('site');
  await world.advance(DONE_MS);
  const { loadBalancerId: id, vip } = world.balancer();
  const listenerId = world.listener('HTTP', 80)?.listenerId ?? '';
  const ports = [{ port: 8080, name: 'of-a-person' }];
  const made = await clock.run(cloud.listeners.create(id, { protocol: 'HTTP', ports, settings: {} }, PERSON));
  await clock.run(cloud.loadBalancers.settle(made.task, PERSON));
  for (const [listener, url] of [
    [listenerId, '/mine'],
    [made.listenerIds[0] ?? '', '/theirs'],
  ] as const) {
    const rule = await clock.run(cloud.rules.create(id, listener, [{ domain: vip, url, settings: {} }], PERSON));
    await clock.run(cloud.loadBalancers.settle(rule.task, PERSON));
  }
  await world.advance(LATER_MS);
  t.regex(
    world.events('DriftFound').join(),
    /somebody else changed lb-\w+: the rule HTTP\/80 \/mine was added\. It is set again/,
  );
  t.deepEqual(world.rules(), { 'HTTP:80 /': target, 'HTTP:8080 /theirs': [] });
  await world.stop();
});

test('a load balancer that is protected against deletion', async (t) => {
  const { world } = await start();
  await world.create('site');
  await world.advance(DONE_MS);
  await world.services.protect(world.balancer().loadBalancerId, true);
  await world.delete('site');
  await world.advance(DONE_MS);
  t.regex(
    world.events('DeleteLoadBalancerFailed').join(),
    /; take the protection off in the console, or annotate the Ingress with ingress\.cloud\.tencent\.com\/mode=skip/,
  );
  t.not(world.ingress('site'), undefined);
  await world.services.protect(world.balancer().loadBalancerId, false);
  await world.advance(LATER_MS);
  t.is(world.ingress('site'), undefined);
  t.deepEqual(world.services.balancers(), []);
  await world.stop();
});

test('an annotation that is no JSON, and an object that is no Ingress, keep what is there', async (t) => {
  const { world, target } = await start();
  await world.create('site');
  await world.advance(DONE_MS);
  await world.patch('site', { annotations: { 'ingress.cloud.tencent.com/listen-ports': '80' } });
  await world.advance(DONE_MS);
  t.regex(world.events('AnnotationInvalid').join(), /listen-ports must be .*JSON list such as .*, not "80"/);
  t.deepEqual(world.rules(), { 'HTTP:80 /': target });
  await world.stop();
});
