/** `tke-eni lb --plan` of Ingresses: before the controller made anything, when all is in order, and after people changed something. */
import { readFileSync } from 'node:fs';
import test from 'ava';
import { parse } from 'yaml';
import { renderLbPlans } from '../../../../cli/commands/lb/run-lb.ts';
import type { KubeClient } from '../../../../kube/kube-client.ts';
import { makeCertificate } from '../../../../runtime/make-certificate.ts';
import { serviceAccountUser } from '../../../../sim/kube-api/auth/tokens.ts';
import { IngressWorld, ruleOf } from '../../../cloud-controller-manager/ingresses/ingress-world.ts';
import { ingressPlansOf, PERSON, readLb } from './lb-scene.ts';

const VIEWER = new URL('../../../../conf/kubernetes/components/viewer/cluster-role.yaml', import.meta.url);
const DONE_MS = 60_000;
const PLAIN = { width: 200, isColored: false };
const HOST = 'www.example.com';
const AUTO_REWRITE = { 'ingress.cloud.tencent.com/auto-rewrite': 'true' };
const DAY_MS = 86_400_000;

/** A Secret of TLS for the host, as of the clock of a world. */
async function makeTls(world: IngressWorld): Promise<string> {
  const nowMs = world.services.world.scene.clock.nowMs();
  const spec = { commonName: HOST, use: 'server', names: [HOST] } as const;
  const { cert, key } = makeCertificate({ ...spec, notBeforeMs: nowMs - DAY_MS, notAfterMs: nowMs + 90 * DAY_MS });
  await world.makeSecret('tls', { 'tls.crt': cert, 'tls.key': key }, 'kubernetes.io/tls');
  return key;
}

/** A client with the rights of the ClusterRole tke-eni-viewer. */
async function makeViewer(world: IngressWorld): Promise<KubeClient> {
  const { server } = world.services.world.scene;
  const type = { group: 'rbac.authorization.k8s.io', version: 'v1', isNamespaced: false };
  await world.put({ ...type, plural: 'clusterroles', kind: 'ClusterRole' }, parse(readFileSync(VIEWER, 'utf8')));
  await world.put(
    { ...type, plural: 'clusterrolebindings', kind: 'ClusterRoleBinding' },
    {
      ...{ apiVersion: `${type.group}/v1`, kind: 'ClusterRoleBinding', metadata: { name: 'viewer' } },
      roleRef: { apiGroup: type.group, kind: 'ClusterRole', name: 'tke-eni-viewer' },
      subjects: [{ kind: 'ServiceAccount', namespace: 'default', name: 'viewer' }],
    },
  );
  return server.client({ user: serviceAccountUser('default', 'viewer') });
}

const SECURE = { ...ruleOf('/a', HOST, 'web', 'Prefix'), tls: [{ hosts: [HOST], secretName: 'tls' }] };

/** Kinds of steps with their objects, one text each. */
function stepsOf(plans: ReturnType<typeof ingressPlansOf>): readonly string[] {
  return plans.flatMap(({ steps }) => steps.flatMap(({ kind, objects }) => objects.map((one) => `${kind} ${one}`)));
}

test('what is to be made: listeners, rules, the certificate of a Secret that is not read, targets, redirects', async (t) => {
  const world = await IngressWorld.start({ hasRights: false });
  const ip = await world.serve('web');
  const key = await makeTls(world);
  await world.create('site', { spec: SECURE, annotations: AUTO_REWRITE });
  await world.advance(DONE_MS);
  const viewer = await makeViewer(world);
  const asked = new Set<string>();
  const client: Pick<KubeClient, 'listPage'> = {
    listPage: (type, ...rest) => {
      asked.add(type.plural);
      return viewer.listPage(type, ...rest);
    },
  };
  const facts = await readLb(world.services, undefined, { plan: true, client });
  t.true(asked.has('ingresses'));
  // The cluster has no definition of TkeServiceConfig; all else may be listed.
  for (const fact of [facts.nodes, facts.pods, facts.slices, facts.ingresses]) t.is(fact?.kind, 'known');
  t.like(facts.configs, { kind: 'unknown', why: 'the cluster has no tkeserviceconfigs.cloud.tencent.com' });
  t.false(asked.has('secrets'));
  const plans = ingressPlansOf(facts);
  t.deepEqual(stepsOf(plans), [
    'create cls-service1_default_site',
    'createListeners HTTP/80',
    'createListeners HTTPS/443',
    `createRules HTTP/80 ${HOST}=/a`,
    `createRules HTTP/80 ${HOST}/a/`,
    `createRules HTTPS/443 ${HOST}=/a with the certificate of Secret default/tls`,
    `createRules HTTPS/443 ${HOST}/a/ with the certificate of Secret default/tls`,
    `register HTTPS/443 ${HOST}=/a ${ip}:8080`,
    `register HTTPS/443 ${HOST}/a/ ${ip}:8080`,
    `createRewrites HTTP/80 ${HOST}=/a to HTTPS/443 ${HOST}=/a by 301`,
    `createRewrites HTTP/80 ${HOST}/a/ to HTTPS/443 ${HOST}/a/ by 301`,
  ]);
  t.deepEqual(plans[0]?.secrets, ['default/tls']);
  const text = renderLbPlans({ plans: [], ingressPlans: plans }, PLAIN);
  t.regex(text, /Ingress default\/site\n {2}1\. create: no load balancer has the tag of the Ingress/);
  t.regex(text, /Secrets are not read, nor compared: default\/tls/);
  t.regex(text, /\d+ calls for 0 Services and 1 Ingresses\n$/);
  const [, body = ''] = key.split('\n');
  t.false(`${JSON.stringify([plans, facts.ingresses])}${text}`.includes(body));
  // Ingresses are read for a plan alone.
  t.is((await readLb(world.services)).ingresses, undefined);
  await world.stop();
});

test('nothing where all is in order; what people change is planned, and is what the controller then does', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  await makeTls(world);
  await world.create('site', { spec: SECURE, annotations: AUTO_REWRITE });
  await world.advance(3 * DONE_MS);
  const read = async () => ingressPlansOf(await readLb(world.services, 'default/site', { plan: true }));
  t.deepEqual(await read(), [{ ingresses: ['default/site'], steps: [], notices: [], secrets: ['default/tls'] }]);
  const { clock, host } = world.services.world.scene;
  const { rules, rewrites, loadBalancers } = world.services.cloud;
  const { loadBalancerId: id } = world.balancer();
  const https = world.listener('HTTPS', 443);
  const [first] = [...(https?.layer7?.rules.values() ?? [])];
  const settle = async (change: Promise<Parameters<typeof loadBalancers.settle>[0]>) =>
    clock.run(loadBalancers.settle(await clock.run(change), PERSON));
  await settle(rules.modify(id, https?.listenerId ?? '', first?.ruleId ?? '', { scheduler: 'IP_HASH' }, PERSON));
  const redirects = await clock.run(rewrites.list(id, PERSON));
  await settle(rewrites.delete(id, redirects.slice(0, 1), PERSON));
  const plans = await read();
  t.deepEqual(
    plans[0]?.steps.map(({ kind }) => kind),
    ['modifyRule', 'createRewrites'],
  );
  t.like(plans[0]?.steps[0], { reason: 'scheduler differs from what the Ingress asks for' });
  host.forget();
  await world.advance(700_000);
  const made = host.seen
    .map(({ action }) => action)
    .filter((action) => /^(Batch|Modify|Create|Delete|Manual)/.test(action));
  t.deepEqual(made, ['ModifyRule', 'ManualRewrite']);
  t.deepEqual(stepsOf(await read()), []);
  await world.delete('site');
  // Its finalizer holds it.
  t.deepEqual(
    stepsOf(await read())
      .at(-1)
      ?.split(' ')[0],
    'delete',
  );
  await world.stop();
});

test('Ingresses that share a load balancer are one plan; those of others and wrong ones are said to be so', async (t) => {
  const world = await IngressWorld.start({ hasRights: false });
  await world.serve('web');
  const id = await world.services.buy();
  const shared = { 'ingress.cloud.tencent.com/enable-group': 'true', 'kubernetes.io/ingress.existLbId': id };
  await world.create('one', { spec: ruleOf('/', 'a.example'), annotations: shared });
  await world.advance(1_000);
  const rules = [...ruleOf('/', 'a.example').rules, ...ruleOf('/', 'b.example').rules];
  await world.create('two', { spec: { rules }, annotations: shared });
  await world.create('other', { annotations: { 'kubernetes.io/ingress.class': 'nginx' } });
  await world.create('wrong', { annotations: { 'ingress.cloud.tencent.com/listen-ports': '[]' } });
  await world.create('lost', { spec: ruleOf('/', 'c.example', 'gone') });
  const plans = ingressPlansOf(await readLb(world.services, undefined, { plan: true }));
  t.deepEqual(
    plans.map(({ ingresses }) => ingresses),
    [['default/lost'], ['default/one', 'default/two'], ['default/wrong']],
  );
  const [lost, group, wrong] = plans;
  t.regex(lost?.notices[0]?.message ?? '', /Service "gone" does not exist/);
  t.like(wrong, { steps: [], notices: [{ reason: 'AnnotationInvalid', blocks: true }] });
  t.deepEqual(
    group?.steps.map(({ kind, objects }) => [kind, ...objects].slice(0, 3).join(' ')),
    [
      'createListeners HTTP/80',
      'createRules HTTP/80 a.example/ HTTP/80 b.example/',
      group?.steps[2] === undefined ? '' : ['register', ...group.steps[2].objects].join(' '),
    ],
  );
  t.regex(group?.notices[0]?.message ?? '', /^default\/two: HTTP:80 "a\.example" "\/" is of the Ingress default\/one/);
  // A named one brings those that share its load balancer.
  const named = ingressPlansOf(await readLb(world.services, 'default/two', { plan: true }));
  t.deepEqual(named, [group]);
  await t.throwsAsync(readLb(world.services, 'default/none', { plan: true }), { message: /and no Ingress/ });
  await world.stop();
});

test('a group that is served: nothing while it is in order; the rules of one that leaves, and of the last one', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  const id = await world.services.buy();
  const annotations = { 'ingress.cloud.tencent.com/enable-group': 'true', 'kubernetes.io/ingress.existLbId': id };
  await world.create('one', { spec: ruleOf('/', 'a.example'), annotations });
  await world.advance(1_000);
  await world.create('two', { spec: ruleOf('/', 'b.example'), annotations });
  await world.advance(3 * DONE_MS);
  const read = async () => ingressPlansOf(await readLb(world.services, undefined, { plan: true }));
  const both = { ingresses: ['default/one', 'default/two'], steps: [], notices: [], secrets: [] };
  t.deepEqual(await read(), [both]);
  await world.delete('one');
  const [left] = await read();
  t.deepEqual(left?.ingresses, ['default/two']);
  t.regex(left?.steps.at(-1)?.objects[0] ?? '', /^HTTP\/80 a\.example\/ loc-/);
  await world.advance(3 * DONE_MS);
  t.deepEqual(await read(), [{ ...both, ingresses: ['default/two'] }]);
  const mode = 'ingress.cloud.tencent.com/mode';
  await world.patch('two', { annotations: { [mode]: 'skip' } });
  const [skipped] = await read();
  t.deepEqual(skipped?.steps, []);
  t.regex(skipped?.notices[0]?.message ?? '', /default\/two: .*or its mode is not skip/);
  await world.patch('two', { annotations: { [mode]: null } });
  await world.delete('two');
  t.deepEqual(
    (await read()).flatMap(({ steps }) => steps.map(({ kind }) => kind)),
    ['deleteListeners'],
  );
  await world.stop();
});

test('a certificate by its id, a load balancer that is kept, mode skip', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  const retain = { 'ingress.cloud.tencent.com/loadbalance-retain': 'true' };
  await world.create('kept', { annotations: retain });
  await world.advance(2 * DONE_MS);
  const certificate = {
    'ingress.cloud.tencent.com/certificate': '[{"hosts":["c.example"],"qcloud_cert_id":["abcd1234"]}]',
  };
  await world.create('ids', { spec: ruleOf('/', 'c.example'), annotations: certificate });
  const read = async (name: string) => ingressPlansOf(await readLb(world.services, `default/${name}`, { plan: true }));
  t.true(stepsOf(await read('ids')).includes('createRules HTTPS/443 c.example/ with certificate abcd1234'));
  await world.delete('kept');
  t.deepEqual(
    (await read('kept')).flatMap(({ steps }) => steps.map(({ kind }) => kind)),
    ['deleteListeners', 'modify'],
  );
  await world.create('skipped', { annotations: { 'ingress.cloud.tencent.com/mode': 'skip' } });
  t.deepEqual(await read('skipped'), [{ ingresses: ['default/skipped'], steps: [], notices: [], secrets: [] }]);
  await world.stop();
});

test('what is beyond the bounds of a plan: no step, the reason of the event, and what is there stays', async (t) => {
  const world = await IngressWorld.start();
  await world.serve('web');
  await world.create('site', { spec: ruleOf('/a', HOST, 'web', 'Exact') });
  await world.advance(DONE_MS);
  const before = world.allRules();
  t.is(before.length, 1);
  const backend = { service: { name: 'web', port: { number: 80 } } };
  const paths = Array.from({ length: 200 }, (_, at) => ({ path: `/${at}`, pathType: 'Prefix', backend }));
  const ports = Array.from({ length: 50 }, (_, at) => ({ HTTP: 2_000 + at }));
  await world.patch('site', {
    spec: { rules: [{ host: HOST, http: { paths } }] },
    annotations: { 'ingress.cloud.tencent.com/listen-ports': JSON.stringify(ports) },
  });
  await world.advance(DONE_MS);
  t.deepEqual(world.allRules(), before);
  const plans = ingressPlansOf(await readLb(world.services, undefined, { plan: true }));
  t.deepEqual(stepsOf(plans), []);
  const [notice] = plans.flatMap(({ notices }) => notices);
  t.regex(notice?.message ?? '', /400 rules x 50 ports of listeners are 20000, and at most 5000 are planned/);
  t.true(world.events('IngressRefused').some((event) => event.includes('400 rules x 50 ports of listeners are 20000')));
  await world.stop();
});
