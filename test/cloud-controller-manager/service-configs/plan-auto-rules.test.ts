import test from 'ava';
import type { DesiredRule, DesiredRuleListener } from '../../../cloud-controller-manager/balancers/desired-rules.ts';
import { configureRules } from '../../../cloud-controller-manager/service-configs/l7-settings.ts';
import { planAutoRules } from '../../../cloud-controller-manager/service-configs/plan-auto-rules.ts';
import { tkeServiceConfig } from '../../../crd/tke-service-config.ts';
import { decodeOrThrow } from '../../../runtime/decode.ts';

type Planned = ReturnType<typeof planAutoRules>;

const REDIRECT = { protocol: 'HTTPS', port: 443, domain: 'a.example', url: '/', code: 301 } as const;

function ruleOf(domain: string, url: string, more: Partial<DesiredRule> = {}): DesiredRule {
  return { domain, url, settings: {}, targets: [], ...more };
}

function httpOf(...rules: readonly DesiredRule[]): DesiredRuleListener {
  return { protocol: 'HTTP', port: 80, rules };
}

/** `HTTP:80 a.example /a`, one for each entry. */
function render(planned: Planned): readonly string[] {
  return (planned ?? []).flatMap(({ protocol, port, domains = [] }) =>
    domains.flatMap(({ domain, rules = [] }) => rules.map(({ url }) => `${protocol}:${port} ${domain} ${url}`)),
  );
}

const PREFIX = [ruleOf('a.example', '=/a'), ruleOf('a.example', '/a/')];

test('an entry for each path of each host, which the decoder takes, and which changes nothing but the names of defaults', (t) => {
  const listeners = [
    httpOf(...PREFIX, ruleOf('', '/'), ruleOf('a.example', '/b')),
    { protocol: 'HTTPS', port: 443, rules: [ruleOf('a.example', '=/')] } as const,
  ];
  const l7Listeners = planAutoRules(listeners, undefined);
  t.deepEqual(render(l7Listeners), [
    'HTTP:80 a.example /a',
    'HTTP:80 a.example /b',
    'HTTP:80  /',
    'HTTPS:443 a.example /',
  ]);
  const object = {
    apiVersion: 'cloud.tencent.com/v1alpha1',
    kind: 'TkeServiceConfig',
    metadata: { name: 'web-auto-ingress-config' },
    spec: { loadBalancer: { l7Listeners } },
  };
  const decoded = decodeOrThrow(tkeServiceConfig, object, 'it').spec?.loadBalancer?.l7Listeners;
  t.deepEqual(decoded, l7Listeners);
  t.is(planAutoRules(listeners, decoded), undefined);
  const configured = configureRules(listeners, { l7Listeners: decoded ?? [] });
  t.deepEqual(configured.unused, []);
  t.true(configured.listeners.every(({ rules }) => rules.every(({ settings }) => settings.scheduler === 'WRR')));
});

test('a rule that redirects has no entry', (t) => {
  t.deepEqual(planAutoRules([httpOf(ruleOf('a.example', '/', { redirect: REDIRECT }))], undefined), []);
});

test('what people changed stays; entries come and go with paths, hosts and listeners', (t) => {
  const changed = [
    {
      protocol: 'HTTP',
      port: 80,
      defaultServer: 'a.example',
      domains: [
        { domain: 'A.example', http2: true, rules: [{ url: '/a', scheduler: 'IP_HASH' }, { url: '=/a' }] },
        { domain: 'gone.example', rules: [{ url: '/' }] },
      ],
    },
    { protocol: 'HTTP', port: 81 },
  ] as const;
  const planned = planAutoRules([httpOf(...PREFIX, ruleOf('a.example', '/b'))], changed);
  t.deepEqual(render(planned), ['HTTP:80 A.example /a', 'HTTP:80 A.example =/a', 'HTTP:80 A.example /b']);
  t.like(planned?.[0], { defaultServer: 'a.example' });
  t.like(planned?.[0]?.domains?.[0], { http2: true, rules: [{ url: '/a', scheduler: 'IP_HASH' }, { url: '=/a' }] });
  t.deepEqual(render(planAutoRules([httpOf(...PREFIX)], planned)), ['HTTP:80 A.example /a', 'HTTP:80 A.example =/a']);
  t.is(planAutoRules([httpOf(...PREFIX, ruleOf('a.example', '/b'))], planned), undefined);
});

test('a url that no entry names gets one of its path', (t) => {
  const present = [
    { protocol: 'HTTP', port: 80, domains: [{ domain: 'a.example', rules: [{ url: '=/a' }] }] },
  ] as const;
  t.deepEqual(render(planAutoRules([httpOf(...PREFIX)], present)), ['HTTP:80 a.example =/a', 'HTTP:80 a.example /a']);
});
