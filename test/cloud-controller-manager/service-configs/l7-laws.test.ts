import test from 'ava';
import fc from 'fast-check';
import type { RuleSettings } from '../../../cloud/rules.ts';
import { changesOf } from '../../../cloud-controller-manager/balancers/compare-settings.ts';
import type { DesiredRule, DesiredRuleListener } from '../../../cloud-controller-manager/balancers/desired-rules.ts';
import type { LoadBalancerConfig } from '../../../cloud-controller-manager/service-configs/l4-settings.ts';
import { configureRules } from '../../../cloud-controller-manager/service-configs/l7-settings.ts';
import { planAutoRules } from '../../../cloud-controller-manager/service-configs/plan-auto-rules.ts';
import { tkeServiceConfig } from '../../../crd/tke-service-config.ts';
import { decodeOrThrow } from '../../../runtime/decode.ts';
import { assertLaw } from '../../support/law.ts';

const DOMAINS = ['', 'a.example', 'b.example', '*.example'];
const URLS = ['/', '=/', '/a', '=/a', '/a/', '/b/', '=/b'];
const REDIRECT = { protocol: 'HTTPS', port: 443, domain: '', url: '/', code: 301 } as const;

const settingsOf = (domain: string): RuleSettings => ({
  ...{ scheduler: 'WRR', sessionSeconds: 0, forwardType: 'HTTP' },
  healthCheck: {
    ...{ isOn: true, kind: 'HTTP' },
    http: { path: '/', method: 'HEAD', codes: 31, ...(domain.startsWith('*') ? { domain: 'check.example' } : {}) },
  },
});

const ruleArb = fc
  .record({ domain: fc.constantFrom(...DOMAINS), url: fc.constantFrom(...URLS), redirects: fc.boolean() })
  .map(
    ({ domain, url, redirects }): DesiredRule => ({
      ...{ domain, url, settings: settingsOf(domain) },
      ...(redirects ? { redirect: REDIRECT } : { targets: [] }),
      ...(domain === '' ? { isDefault: true } : {}),
    }),
  );
const rulesArb = fc.uniqueArray(ruleArb, { selector: ({ domain, url }) => `${domain} ${url}`, maxLength: 8 });
const listenersArb = fc.uniqueArray(
  fc.record({ protocol: fc.constantFrom('HTTP', 'HTTPS'), port: fc.constantFrom(80, 443), rules: rulesArb }),
  { selector: ({ port }) => port, maxLength: 2 },
);

const maybe = <T>(arb: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arb, { nil: undefined });
/** An object without the fields that are undefined, as the decoder returns it. */
const partsOf = <T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  // A field that is left has a value.
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
const checkArb = fc
  .record({
    enable: maybe(fc.boolean()),
    intervalTime: maybe(fc.integer({ min: 5, max: 9 })),
    timeout: maybe(fc.integer({ min: 2, max: 9 })),
    sourceIpType: maybe(fc.constantFrom(0, 1)),
    httpCode: maybe(fc.integer({ min: 1, max: 31 })),
    httpCheckPath: maybe(fc.constantFrom('/', '/up')),
  })
  .map(partsOf);
const entryArb = fc
  .record({
    scheduler: maybe(fc.constantFrom('WRR', 'LEAST_CONN', 'IP_HASH')),
    forwardType: maybe(fc.constantFrom('HTTP', 'GRPC')),
    session: maybe(fc.record({ enable: fc.boolean() })),
    healthCheck: maybe(checkArb),
  })
  .map(partsOf);
const namedArb = fc.tuple(fc.constantFrom(...URLS), entryArb).map(([url, entry]) => ({ ...entry, url }));
const domainArb = fc.record({ domain: fc.constantFrom(...DOMAINS), rules: fc.array(namedArb, { maxLength: 4 }) });
const configArb = fc
  .array(
    fc
      .record({
        protocol: fc.constantFrom('HTTP', 'HTTPS'),
        port: fc.constantFrom(80, 443),
        defaultServer: maybe(fc.constantFrom(...DOMAINS)),
        domains: fc.array(domainArb, { maxLength: 3 }),
      })
      .map(({ defaultServer, ...one }) => ({ ...one, ...(defaultServer === undefined ? {} : { defaultServer }) })),
    { maxLength: 2 },
  )
  // What the decoder returns, whatever was drawn.
  .map((l7Listeners) => decoded({ l7Listeners }));

function decoded(loadBalancer: object): LoadBalancerConfig {
  const head = { apiVersion: 'cloud.tencent.com/v1alpha1', kind: 'TkeServiceConfig', metadata: { name: 'any' } };
  return decodeOrThrow(tkeServiceConfig, { ...head, spec: { loadBalancer } }, 'it').spec?.loadBalancer ?? {};
}

function rulesOf(listeners: readonly DesiredRuleListener[]): readonly DesiredRule[] {
  return listeners.flatMap(({ rules }) => rules);
}

/** A rule without what a configuration may change. */
function restOf({ settings: _, initialSettings: __, isDefault: ___, ...rest }: DesiredRule): object {
  return rest;
}

test('a rule that was made as configured has nothing to change; its targets, certificate and redirect are not touched', (t) =>
  assertLaw(
    t,
    (tt) =>
      fc.property(listenersArb, fc.oneof(configArb, fc.constant('unknown' as const)), (listeners, config) => {
        const { listeners: configured } = configureRules(listeners, config);
        const before = rulesOf(listeners);
        for (const [at, rule] of rulesOf(configured).entries()) {
          tt.is(changesOf(rule.settings, { ...(rule.initialSettings ?? rule.settings) }), undefined);
          const planned = before[at];
          if (planned !== undefined) tt.deepEqual(restOf(rule), restOf(planned));
        }
        for (const { rules } of configured) {
          const defaults = new Set(rules.flatMap(({ isDefault, domain }) => (isDefault === true ? [domain] : [])));
          tt.true(defaults.size <= 1);
        }
        tt.deepEqual(configureRules(listeners, config), configureRules(listeners, config));
      }),
    { numRuns: 300 },
  ));

test('a configuration that is made names each rule once it was written, and then stays', (t) =>
  assertLaw(
    t,
    (tt) =>
      fc.property(listenersArb, configArb, (listeners, { l7Listeners }) => {
        const planned = planAutoRules(listeners, l7Listeners) ?? l7Listeners ?? [];
        const written = decoded({ l7Listeners: planned });
        tt.is(planAutoRules(listeners, written.l7Listeners), undefined);
        const { listeners: configured } = configureRules(listeners, written);
        for (const rule of rulesOf(configured))
          if (rule.redirect === undefined) tt.true(rule.initialSettings !== undefined, `${rule.domain} ${rule.url}`);
      }),
    { numRuns: 300 },
  ));
