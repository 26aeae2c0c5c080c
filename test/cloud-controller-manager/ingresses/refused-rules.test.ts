/** What the cloud does not take, and what is of others: all else of an Ingress goes on. */
import test from 'ava';
import { BACKEND_READY_GATE as GATE } from '../../../crd/names.ts';
import { IngressWorld, ruleOf } from './ingress-world.ts';

/** Longer than a creation, the registration of its targets, and a refusal. */
const DONE_MS = 90_000;
const LATER_MS = 600_000;
const CERTIFICATE = 'ingress.cloud.tencent.com/certificate';
const HOST = 'www.example.com';
const OTHER = 'b.example.com';
const PERSON = { priority: 'warm', owner: 'person', signal: new AbortController().signal } as const;
const BOTH = [...ruleOf('/', HOST).rules, ...ruleOf('/', OTHER).rules];

test('a site on HTTP whose Secret is missing stays there, its Pods are followed, and it moves when there is one', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  await world.create('site', { spec: ruleOf('/', HOST) });
  await world.advance(DONE_MS);
  await world.patch('site', { spec: { tls: [{ hosts: [HOST], secretName: 'site-tls' }] } });
  await world.advance(DONE_MS);
  t.regex(world.events('CertificateRefused').join(), /there is no such Secret.*stays as it is/);
  const next = [`${await world.pods.run('web', 'web-1', { node: 'n1' })}:8080 10`];
  await world.advance(30_000);
  await world.pods.end('web-0');
  await world.advance(DONE_MS);
  t.deepEqual(world.rules(), { [`HTTP:80 ${HOST}/`]: next });
  await world.makeTlsSecret('site-tls', HOST);
  await world.advance(LATER_MS);
  t.deepEqual(world.rules(), { [`HTTPS:443 ${HOST}/`]: next });
  await world.stop();
});

test('a certificate that the cloud does not have stops its host alone', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  await world.create('site', { spec: ruleOf('/', HOST) });
  await world.advance(DONE_MS);
  const certificate = JSON.stringify([{ hosts: [OTHER], qcloud_cert_id: ['aaaaaaaa'] }]);
  await world.patch('site', { annotations: { [CERTIFICATE]: certificate }, spec: { rules: BOTH } });
  await world.advance(DONE_MS);
  const next = await world.pods.run('web', 'web-1', { node: 'n1' });
  await world.advance(30_000);
  await world.pods.end('web-0');
  await world.advance(LATER_MS);
  t.deepEqual(world.rules(), { [`HTTP:80 ${HOST}/`]: [`${next}:8080 10`] });
  const messages = world.events('SyncLoadBalancerFailed').join();
  t.regex(messages, /the cloud refused of lb-\w+: createRules HTTPS\/443 b\.example\.com\/: .*All else is done/);
  await world.stop();
});

test('a Pod is ready though one of the hosts before it has no certificate', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  await world.create('site', { spec: { tls: [{ hosts: [OTHER], secretName: 'not-there' }], rules: BOTH } });
  await world.advance(DONE_MS);
  await world.pods.run('web', 'web-1', { node: 'n1', gates: [GATE] });
  await world.advance(DONE_MS);
  t.regex(world.pods.condition('web-1', GATE) ?? '', /^True/);
  await world.stop();
});

test('in a full listener the host changes that is the default one', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  const hosts = Array.from({ length: 50 }, (_, at) => `a${at}.example.com`);
  const spec = (all: readonly string[]) => ({ rules: all.flatMap((host) => ruleOf('/', host).rules) });
  await world.create('site', { spec: spec(hosts) });
  await world.advance(DONE_MS);
  const first = world.listener('HTTP', 80)?.layer7?.defaultDomain;
  await world.patch('site', { spec: spec(['new.example.com', ...hosts.filter((one) => one !== first)]) });
  await world.advance(LATER_MS);
  t.true(Object.keys(world.rules()).includes('HTTP:80 new.example.com/'));
  t.deepEqual(world.events('SyncLoadBalancerFailed'), []);
  await world.stop();
});

/** A rule of a load balancer: its listener, and itself. */
type RulePlace = { readonly listenerId: string; readonly ruleId: string };

/** An Ingress with the paths /a and /b, and a person's rule on another listener; `redirect` is what the person does. */
async function withPerson(flags: readonly string[] = []) {
  const world = await IngressWorld.start({ flags });
  await world.serve('web');
  const { clock } = world.services.world.scene;
  const { cloud } = world.services;
  await world.create('site', { spec: { rules: [...ruleOf('/a', HOST).rules, ...ruleOf('/b', HOST).rules] } });
  await world.advance(DONE_MS);
  const { loadBalancerId: id } = world.balancer();
  const listener = world.listener('HTTP', 80);
  const ports = [{ port: 8080, name: 'of-a-person' }];
  const made = await clock.run(cloud.listeners.create(id, { protocol: 'HTTP', ports, settings: {} }, PERSON));
  await clock.run(cloud.loadBalancers.settle(made.task, PERSON));
  const [theirListener = ''] = made.listenerIds;
  const spec = [{ domain: HOST, url: '/theirs', settings: {} }];
  const rule = await clock.run(cloud.rules.create(id, theirListener, spec, PERSON));
  await clock.run(cloud.loadBalancers.settle(rule.task, PERSON));
  const ofPathA = [...(listener?.layer7?.rules.values() ?? [])].find(({ url }) => url === '/a');
  const ours: RulePlace = { listenerId: listener?.listenerId ?? '', ruleId: ofPathA?.ruleId ?? '' };
  const theirs: RulePlace = { listenerId: theirListener, ruleId: rule.ruleIds[0] ?? '' };
  const redirect = async (from: RulePlace, to: RulePlace): Promise<void> => {
    const rewrite = { sourceRuleId: from.ruleId, targetRuleId: to.ruleId, sourceDomain: HOST, code: 301 as const };
    const rewrites = [{ ...rewrite, takesUrl: false }];
    const all = { sourceListenerId: from.listenerId, targetListenerId: to.listenerId, rewrites };
    await clock.run(cloud.loadBalancers.settle(await clock.run(cloud.rewrites.create(id, all, PERSON)), PERSON));
  };
  return { world, ours, theirs, redirect };
}

test('a rule to which a redirect of somebody else leads stays, and all else follows', async (t) => {
  const { world, ours, theirs, redirect } = await withPerson();
  await redirect(theirs, ours);
  await world.patch('site', { spec: ruleOf('/b', HOST) });
  await world.advance(DONE_MS);
  t.regex(world.events('ListenerClash').join(), /a redirect that is not of this Ingress leads to it/);
  const next = await world.pods.run('web', 'web-1', { node: 'n1' });
  await world.advance(30_000);
  await world.pods.end('web-0');
  await world.advance(LATER_MS);
  t.deepEqual(world.rules()[`HTTP:80 ${HOST}/b`], [`${next}:8080 10`]);
  t.is(world.rules()[`HTTP:8080 ${HOST}/theirs`], '-> 301');
  await world.stop();
});

test('with --load-balancer-drift=report a redirect that somebody adds to a rule of theirs stays', async (t) => {
  const { world, ours, theirs, redirect } = await withPerson(['--load-balancer-drift=report']);
  await redirect(ours, theirs);
  await world.advance(2 * LATER_MS);
  t.regex(world.events('DriftFound').join(), /redirect of HTTP\/80 www\.example\.com\/a is .*It stays/);
  t.is(world.rules()[`HTTP:80 ${HOST}/a`], '-> 301');
  await world.stop();
});
