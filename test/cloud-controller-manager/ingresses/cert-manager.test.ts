/** The manifests of docs/cert-manager.md in the simulated cloud, with what cert-manager does about a challenge of HTTP01. */
import { readFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { INGRESSES, SECRETS } from '../../../kube/resource-types.ts';
import { IngressWorld, ruleOf } from './ingress-world.ts';
import { path, plan, render } from './plan-facts.ts';

const HOST = 'shop.example.com';
const CHALLENGE = '/.well-known/acme-challenge/Zm9v-bar_1';
const DONE_MS = 60_000;
const READ_MS = 180_000;
const PAGE = new URL('../../../docs/cert-manager.md', import.meta.url);
const [IN_PLACE = [], IN_GROUP = []] = [...readFileSync(PAGE, 'utf8').matchAll(/```yaml\n([\s\S]+?)```/g)].map(
  ([, text = '']) => parseAllDocuments(text).map((one) => one.toJS() as KubeObject),
);

type Annotations = Readonly<Record<string, string>>;

/** Puts the id of a load balancer that exists in the place of the one on the page. */
function onBalancer<T>(value: T, id: string): T {
  return JSON.parse(JSON.stringify(value).replaceAll('lb-a1b2c3d4', id)) as T;
}

function ingressOf(documents: readonly KubeObject[]): KubeObject {
  const found = documents.find(({ kind }) => kind === 'Ingress');
  if (found === undefined) throw new Error('the page has no Ingress');
  return found;
}

async function start() {
  const world = await IngressWorld.start();
  const ips = { web: await world.serve('web'), solver: await world.serve('solver') };
  const rules = () => world.rulesOf(world.services.balancers()[0]?.loadBalancerId ?? '');
  return { world, rules, web: [`${ips.web}:8080 10`], solver: [`${ips.solver}:8080 10`] };
}

/** Lets the solver answer, issues, and ends the challenge: for a new host, then for a renewal. */
async function issueTwice(
  t: ExecutionContext,
  { world, rules, web, solver }: Awaited<ReturnType<typeof start>>,
  solve: () => Promise<void>,
  endSolving: () => Promise<void>,
): Promise<void> {
  const served = { [`HTTP:80 ${HOST}/`]: '-> 301', [`HTTPS:443 ${HOST}/`]: web };
  const challenge = { [`HTTP:80 ${HOST}${CHALLENGE}`]: solver };
  await solve();
  await world.advance(DONE_MS);
  t.deepEqual(rules(), challenge, 'nothing but the challenge is served without a certificate');
  await world.makeTlsSecret('shop-tls', HOST);
  await endSolving();
  await world.advance(READ_MS);
  t.deepEqual(rules(), served);
  const [first] = world.certificateIds();
  await solve();
  await world.advance(DONE_MS);
  t.deepEqual(rules(), { ...served, ...challenge }, 'at a renewal');
  const { clock, admin } = world.services.world.scene;
  await clock.run(admin.delete(SECRETS, { namespace: 'default', name: 'shop-tls' }));
  await world.makeTlsSecret('shop-tls', HOST);
  await endSolving();
  await world.advance(READ_MS);
  t.deepEqual(rules(), served);
  const shown = [...(world.listener('HTTPS', 443)?.layer7?.domains.values() ?? [])].flatMap(({ certIds }) => certIds);
  t.is(shown.length, 1);
  t.not(shown[0], first, 'the renewed one is shown');
}

test('a challenge in the Ingress itself ends for a new host, and for a renewal', async (t) => {
  const scene = await start();
  const { world } = scene;
  const site = ingressOf(IN_PLACE);
  await world.put(INGRESSES, site);
  await world.advance(DONE_MS);
  const own = site['spec'] as { readonly rules: readonly object[] };
  const rules = [...own.rules, ...ruleOf(CHALLENGE, HOST, 'solver', 'Exact').rules];
  await issueTwice(
    t,
    { ...scene, rules: () => exactlyNamed(scene.rules()) },
    async () => await world.patch('site', { spec: { rules } }),
    async () => await world.patch('site', { spec: { rules: own.rules } }),
  );
  await world.stop();
});

test('a challenge in a solver Ingress of the group ends for a new host, and for a renewal', async (t) => {
  const scene = await start();
  const { world } = scene;
  const documents = onBalancer(IN_GROUP, await world.services.buy({}, false));
  await world.put(INGRESSES, ingressOf(documents));
  const issuer = documents.find(({ kind }) => kind === 'ClusterIssuer')?.['spec'] as {
    readonly acme: {
      readonly solvers: readonly {
        readonly http01: {
          readonly ingress: { readonly ingressTemplate: { readonly metadata: { readonly annotations: Annotations } } };
        };
      }[];
    };
  };
  const { annotations = {} } = issuer.acme.solvers[0]?.http01.ingress.ingressTemplate.metadata ?? {};
  await issueTwice(
    t,
    scene,
    async () => await world.create('cm-acme-http-solver-x', { annotations, spec: ruleOf(CHALLENGE, HOST, 'solver') }),
    async () => await world.delete('cm-acme-http-solver-x'),
  );
  await world.stop();
});

test('where a challenge is, by the annotations that say where rules are', (t) => {
  const spec = (more: object = {}) => ({
    rules: [{ host: HOST, http: { paths: [path('/'), path(CHALLENGE)] } }],
    tls: [{ hosts: [HOST], secretName: 'ids' }],
    ...more,
  });
  const [http, https] = [`HTTP:80 ${HOST} `, `HTTPS:443 ${HOST} `];
  const listed = (annotations: Annotations, more: object = {}) => {
    const { desired, texts } = plan(spec(more), annotations);
    return [render(desired ?? []), texts] as const;
  };
  t.deepEqual(listed({}), [[`${http}${CHALLENGE}`, `${https}/`], []]);
  // No other path of the host is served in the clear, not for a default backend either.
  t.deepEqual(listed({}, { defaultBackend: { service: { name: 'web', port: { number: 80 } } } })[0], [
    `${http}${CHALLENGE}`,
    'HTTP:80  /',
    `${https}/`,
  ]);
  t.deepEqual(listed({ 'kubernetes.io/ingress.rule-mix': 'true' })[0], [`${http}${CHALLENGE}`, `${https}/`]);
  t.deepEqual(listed({ 'kubernetes.io/ingress.rule-mix-both': 'true' })[0], [
    `${http}/`,
    `${http}${CHALLENGE}`,
    `${https}/`,
    `${https}${CHALLENGE}`,
  ]);
  const [rules, texts] = listed({ 'ingress.cloud.tencent.com/listen-ports': '[{"HTTPS":443}]' });
  t.deepEqual(rules, [`${https}/`, `${https}${CHALLENGE}`]);
  t.regex(texts.join(), /are asked for by HTTP on port 80/);
});

/** Names rules of exactly one path as those of what begins with it. */
function exactlyNamed(rules: ReturnType<IngressWorld['rules']>): ReturnType<IngressWorld['rules']> {
  return Object.fromEntries(
    Object.entries(rules)
      .filter(([name]) => name !== `HTTP:80 ${HOST}=/` && name !== `HTTPS:443 ${HOST}=/`)
      .map(([name, its]) => [name.replace(`${HOST}=/`, `${HOST}/`), its]),
  );
}
