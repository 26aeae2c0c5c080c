import test from 'ava';
import fc from 'fast-check';
import type { DesiredRuleListener } from '../../../cloud-controller-manager/balancers/desired-rules.ts';
import { type RuleClaim, resolveClashes } from '../../../cloud-controller-manager/ingresses/resolve-clashes.ts';
import { assertLaw } from '../../support/law.ts';
import { path, plan, render } from './plan-facts.ts';

const HOSTS = ['', 'a.example', 'b.example', '*.example'];
const PATHS = ['/', '/x', '/x/', '/y', 'bad'];
const TKE = 'kubernetes.io/ingress';
const CLOUD = 'ingress.cloud.tencent.com';
const MOST = 8;

const pathArb = fc.record({
  text: fc.constantFrom(...PATHS),
  type: fc.constantFrom('Exact', 'Prefix', 'ImplementationSpecific'),
  service: fc.constantFrom('web', 'other', 'gone', 'udp'),
});
const mixedArb = fc.record({
  host: fc.constantFrom(...HOSTS),
  path: fc.constantFrom(...PATHS),
  backend: fc.constant({ serviceName: 'web', servicePort: 80 }),
  rewrite: fc.option(
    fc.record({ port: fc.constantFrom(80, 443), host: fc.constantFrom(...HOSTS), path: fc.constantFrom(...PATHS) }),
    { nil: undefined, freq: 2 },
  ),
});
const rulesArb = fc.array(mixedArb, { maxLength: 3 });
const flagArb = fc.constantFrom(undefined, 'true', 'false');
const ingressArb = fc.record({
  rules: fc.array(fc.record({ host: fc.constantFrom(...HOSTS), paths: fc.array(pathArb, { maxLength: 3 }) }), {
    maxLength: 3,
  }),
  hasDefault: fc.boolean(),
  tls: fc.uniqueArray(
    fc.record({ host: fc.constantFrom(...HOSTS), secret: fc.constantFrom('ids', 'missing', 'locked') }),
    {
      selector: ({ host }) => host,
      maxLength: 3,
    },
  ),
  http: rulesArb,
  https: rulesArb,
  flags: fc.record({ mix: flagArb, both: flagArb, auto: flagArb, rewrite: flagArb }),
  ports: fc.constantFrom(undefined, '[{"HTTP":80},{"HTTPS":443},{"HTTPS":8443}]'),
});
type Given = typeof ingressArb extends fc.Arbitrary<infer T> ? T : never;

function planOf({ rules, hasDefault, tls, http, https, flags, ports }: Given) {
  const spec = {
    rules: rules.map(({ host, paths }) => ({
      host,
      http: { paths: paths.map((one) => path(one.text, one.type, one.service)) },
    })),
    ...(hasDefault ? { defaultBackend: { service: { name: 'rest', port: { number: 80 } } } } : {}),
    tls: tls.map(({ host, secret }) => ({ hosts: host === '' ? [] : [host], secretName: secret })),
  };
  const given = {
    [`${TKE}.rule-mix`]: flags.mix,
    [`${TKE}.rule-mix-both`]: flags.both,
    [`${CLOUD}/auto-rewrite`]: flags.auto,
    [`${CLOUD}/rewrite-support`]: flags.rewrite,
    [`${CLOUD}/listen-ports`]: ports,
    [`${TKE}.http-rules`]: JSON.stringify(http),
    [`${TKE}.https-rules`]: JSON.stringify(https),
  };
  const annotations = Object.fromEntries(
    Object.entries(given).flatMap(([key, text]) => (text === undefined ? [] : [[key, text]])),
  );
  return plan(spec, annotations);
}

/** What is wrong with listeners of one load balancer. */
function faultsOf(listeners: readonly DesiredRuleListener[]): readonly string[] {
  const ids = listeners.flatMap(({ protocol, port, rules }) =>
    rules.map(({ domain, url }) => `${protocol}:${port} ${domain} ${url}`),
  );
  const redirected = new Set(
    listeners.flatMap(({ protocol, port, rules }) =>
      rules.flatMap(({ domain, url, redirect }) =>
        redirect === undefined ? [] : [`${protocol}:${port} ${domain} ${url}`],
      ),
    ),
  );
  const certificates = new Map<string, string>();
  return [
    ...(new Set(ids).size === ids.length ? [] : ['a rule twice']),
    ...listeners.flatMap(({ protocol, port, rules }) =>
      rules.flatMap(({ domain, certificate, redirect, targets }) => {
        const host = `${port} ${domain}`;
        const text = JSON.stringify(certificate);
        const known = certificates.get(host) ?? text;
        certificates.set(host, text);
        const to =
          redirect === undefined
            ? undefined
            : `${redirect.protocol}:${redirect.port} ${redirect.domain} ${redirect.url}`;
        return [
          ...((certificate !== undefined) === (protocol === 'HTTPS') ? [] : [`certificate of ${protocol} ${domain}`]),
          ...(known === text ? [] : [`two certificates of ${domain}`]),
          ...(to === undefined || ids.includes(to) ? [] : [`redirect to no rule: ${to}`]),
          ...(to === undefined || !redirected.has(to) ? [] : [`a chain by ${to}`]),
          ...(to === undefined || targets === undefined ? [] : ['a redirect with targets']),
        ];
      }),
    ),
  ];
}

test('no rule twice; HTTPS has certificates; redirects lead to rules, and in no chain; the same each time', (t) =>
  assertLaw(
    t,
    (tt) =>
      fc.property(ingressArb, (given) => {
        const planned = planOf(given);
        if (planned.desired !== undefined) tt.deepEqual(faultsOf(planned.desired), []);
        tt.deepEqual(planOf(given).listeners, planned.listeners);
        tt.is(
          planned.desired === undefined,
          planned.notices.some(({ blocks }) => blocks),
        );
      }),
    { numRuns: 300 },
  ));

test('Ingresses on one load balancer: the same for each order, and within the laws and the quota', (t) =>
  assertLaw(
    t,
    (tt) =>
      fc.property(
        fc.array(fc.record({ given: ingressArb, day: fc.integer({ min: 1, max: 2 }) }), { minLength: 1, maxLength: 4 }),
        (all) => {
          const claims = all.map(({ given, day }, index): RuleClaim => {
            const ingress = { key: `d/${index}`, uid: `u${index}`, createdAt: `2026-01-0${day}T00:00:00Z` };
            return { ingress, isGrouped: true, listeners: planOf(given).desired ?? [] };
          });
          const granted = resolveClashes(claims, MOST);
          const reversed = resolveClashes(claims.toReversed(), MOST);
          const together = [...granted.values()].flatMap(({ listeners }) => listeners);
          tt.deepEqual(faultsOf(together), []);
          const perPort = Map.groupBy(together, ({ port }) => port);
          for (const [, its] of perPort) {
            tt.true(its.reduce((sum, { rules }) => sum + rules.length, 0) <= MOST);
            tt.is(new Set(its.map(({ protocol }) => protocol)).size, 1);
          }
          for (const [uid, { listeners }] of granted) tt.deepEqual(reversed.get(uid)?.listeners, listeners);
          const first = claims.toSorted((a, b) =>
            a.ingress.createdAt + a.ingress.uid < b.ingress.createdAt + b.ingress.uid ? -1 : 1,
          )[0];
          const alone = first === undefined ? undefined : resolveClashes([first], MOST).get(first.ingress.uid);
          tt.deepEqual(render(granted.get(first?.ingress.uid ?? '')?.listeners ?? []), render(alone?.listeners ?? []));
        },
      ),
    { numRuns: 100 },
  ));
