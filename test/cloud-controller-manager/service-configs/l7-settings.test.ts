import test from 'ava';
import type { RuleSettings } from '../../../cloud/rules.ts';
import type { DesiredRule, DesiredRuleListener } from '../../../cloud-controller-manager/balancers/desired-rules.ts';
import type { LoadBalancerConfig } from '../../../cloud-controller-manager/service-configs/l4-settings.ts';
import { configureRules } from '../../../cloud-controller-manager/service-configs/l7-settings.ts';

type L7Listener = NonNullable<LoadBalancerConfig['l7Listeners']>[number];
type Domain = NonNullable<L7Listener['domains']>[number];
type RuleEntry = NonNullable<Domain['rules']>[number];

const PLANNED: RuleSettings = {
  scheduler: 'WRR',
  sessionSeconds: 0,
  healthCheck: { isOn: true, kind: 'HTTP', http: { path: '/', method: 'HEAD', codes: 31 } },
  forwardType: 'HTTP',
};

function ruleOf(domain: string, url: string, more: Partial<DesiredRule> = {}): DesiredRule {
  return { domain, url, settings: PLANNED, targets: [], ...(domain === '' ? { isDefault: true } : {}), ...more };
}

/** HTTP:80 with the rules of one prefix, of another host and of the address. */
const HTTP: DesiredRuleListener = {
  protocol: 'HTTP',
  port: 80,
  rules: [ruleOf('a.example', '=/a'), ruleOf('a.example', '/a/'), ruleOf('b.example', '/'), ruleOf('', '/')],
};

/** Configures HTTP:80 by an entry. */
function configured(entry: Omit<L7Listener, 'protocol' | 'port'>, listener: DesiredRuleListener = HTTP) {
  const { protocol, port } = listener;
  const result = configureRules([listener], { l7Listeners: [{ protocol, port, ...entry }] });
  const rules = result.listeners.flatMap((one) => one.rules);
  return {
    ...result,
    rules,
    ruleAt: (domain: string, url: string) => rules.find((one) => one.domain === domain && one.url === url),
  };
}

/** Configures the rules of a.example. */
function ofHost(...rules: readonly RuleEntry[]) {
  return configured({ domains: [{ domain: 'a.example', rules }] });
}

test('without a configuration, or an entry for it, a rule is as the Ingress asks for', (t) => {
  t.deepEqual(configureRules([HTTP], undefined), { listeners: [HTTP], unused: [] });
  const other: LoadBalancerConfig = {
    l7Listeners: [
      { protocol: 'HTTPS', port: 80, domains: [{ domain: 'a.example', rules: [{ url: '/a', scheduler: 'IP_HASH' }] }] },
    ],
  };
  t.deepEqual(configureRules([HTTP], other), { listeners: [HTTP], unused: [] });
  t.deepEqual(configured({}).listeners, [HTTP]);
});

test('one that cannot be read: rules keep what they have, and new ones are as the Ingress asks for', (t) => {
  const { listeners, unused } = configureRules([HTTP], 'unknown');
  t.deepEqual(unused, []);
  for (const { settings, initialSettings } of listeners.flatMap(({ rules }) => rules)) {
    t.deepEqual(settings, {});
    t.deepEqual(initialSettings, PLANNED);
  }
});

const NAMES: readonly (readonly [given: readonly string[], exact: string | undefined, below: string | undefined])[] = [
  [['/a'], '/a', '/a'],
  [['/a/'], '/a/', '/a/'],
  [['=/a'], '=/a', undefined],
  [['/a', '=/a'], '=/a', '/a'],
  [['/a', '/a/'], '/a', '/a/'],
  [['/a/', '=/a'], '=/a', '/a/'],
  [['/A'], undefined, undefined],
  [['/'], undefined, undefined],
];

for (const [given, exact, below] of NAMES) {
  test(`entries ${given.join(' and ')} with the rules =/a and /a/`, (t) => {
    // The expire time tells which entry it was.
    const { ruleAt } = ofHost(
      ...given.map((url, at) => ({ url, session: { enable: true, sessionExpireTime: 100 + at } })),
    );
    const chosen = (url: string) => {
      const seconds = ruleAt('a.example', url)?.settings.sessionSeconds ?? 0;
      return seconds === 0 ? undefined : given[seconds - 100];
    };
    t.is(chosen('=/a'), exact);
    t.is(chosen('/a/'), below);
  });
}

test("the domain '' is the address, a host is compared in lower case, / is every path", (t) => {
  const rules: readonly RuleEntry[] = [{ url: '/', scheduler: 'LEAST_CONN' }];
  const { ruleAt, unused } = configured({
    domains: [
      { domain: '', rules },
      { domain: 'B.example', rules },
    ],
  });
  t.is(ruleAt('', '/')?.settings.scheduler, 'LEAST_CONN');
  t.is(ruleAt('b.example', '/')?.settings.scheduler, 'LEAST_CONN');
  t.is(ruleAt('a.example', '/a/')?.settings.scheduler, 'WRR');
  t.deepEqual(unused, []);
});

const SETTINGS: readonly (readonly [name: string, entry: Omit<RuleEntry, 'url'>, settings: RuleSettings])[] = [
  ['nothing', {}, {}],
  ['the scheduler', { scheduler: 'IP_HASH' }, { scheduler: 'IP_HASH' }],
  ['the protocol', { forwardType: 'GRPC' }, { forwardType: 'GRPC' }],
  ['a session', { session: { enable: true, sessionExpireTime: 86_400 } }, { sessionSeconds: 86_400 }],
  ['a session without a time', { session: { enable: true } }, { sessionSeconds: 30 }],
  ['no session', { session: { enable: false, sessionExpireTime: 90 } }, { sessionSeconds: 0 }],
  ['a time alone', { session: { sessionExpireTime: 90 } }, {}],
  ['no check', { healthCheck: { enable: false, intervalTime: 9 } }, { healthCheck: { isOn: false } }],
  ['a check', { healthCheck: { enable: true } }, { healthCheck: { isOn: true } }],
  ['an empty check', { healthCheck: {} }, {}],
  [
    'times',
    { healthCheck: { intervalTime: 10, timeout: 3, healthNum: 4, unHealthNum: 5, sourceIpType: 0 } },
    {
      healthCheck: {
        ...{ intervalSeconds: 10, timeoutSeconds: 3, healthyThreshold: 4, unhealthyThreshold: 5 },
        source: 'vip',
      },
    },
  ],
  [
    'what is asked for',
    { healthCheck: { httpCheckPath: '/up', httpCheckDomain: 'up.example', httpCheckMethod: 'GET', httpCode: 2 } },
    { healthCheck: { kind: 'HTTP', http: { path: '/up', domain: 'up.example', method: 'GET', codes: 2 } } },
  ],
];

for (const [name, entry, settings] of SETTINGS) {
  test(`what is left out stays: an entry with ${name}`, (t) => {
    const { ruleAt, unused } = ofHost({ url: '/a', ...entry });
    t.deepEqual(ruleAt('a.example', '/a/')?.settings, settings);
    t.deepEqual(unused, []);
  });
}

test('a new rule has what the Ingress asks for where the configuration says nothing', (t) => {
  const check = { domain: 'check.example' };
  const wildcard: DesiredRuleListener = {
    ...{ protocol: 'HTTP', port: 80 },
    rules: [ruleOf('*.example', '/', { settings: { ...PLANNED, healthCheck: { isOn: true, http: check } } })],
  };
  const initialOf = (entry: Omit<RuleEntry, 'url'>) =>
    configured({ domains: [{ domain: '*.example', rules: [{ url: '/', ...entry }] }] }, wildcard).rules[0]
      ?.initialSettings;
  t.deepEqual(initialOf({ scheduler: 'LEAST_CONN' }), {
    ...PLANNED,
    scheduler: 'LEAST_CONN',
    healthCheck: { isOn: true, http: check },
  });
  t.deepEqual(initialOf({ healthCheck: { httpCheckPath: '/up', intervalTime: 9 } })?.healthCheck, {
    ...{ isOn: true, kind: 'HTTP', intervalSeconds: 9 },
    http: { ...check, path: '/up' },
  });
  t.deepEqual(initialOf({ healthCheck: { enable: false } })?.healthCheck, { isOn: false });
});

test('the default domain is the one of the configuration; one that the Ingress does not have changes nothing', (t) => {
  const isDefault = (server?: string) =>
    configured(server === undefined ? {} : { defaultServer: server })
      .rules.filter((rule) => rule.isDefault === true)
      .map(({ domain }) => domain);
  t.deepEqual(isDefault(), ['']);
  t.deepEqual(isDefault('B.example'), ['b.example']);
  t.deepEqual(isDefault('a.example'), ['a.example', 'a.example']);
  t.deepEqual(isDefault('c.example'), ['']);
  t.deepEqual(configured({ defaultServer: 'c.example' }).unused, ['defaultServer of HTTP:80']);
});

test('what has no effect is named', (t) => {
  t.deepEqual(configured({ keepaliveEnable: 0, snatEnable: false }).unused, []);
  t.deepEqual(configured({ keepaliveEnable: 1, snatEnable: true }).unused, [
    'keepaliveEnable of HTTP:80',
    'snatEnable of HTTP:80',
  ]);
  const domains: readonly Domain[] = [
    { domain: 'c.example', rules: [{ url: '/' }] },
    {
      domain: 'a.example',
      http2: true,
      rules: [{ url: '/x' }, { url: '=/a/' }, { url: '/a', healthCheck: { timeout: 7 } }],
    },
  ];
  t.deepEqual(configured({ domains }).unused, [
    'domain c.example, which the Ingress does not have, of HTTP:80',
    'http2 of a.example of HTTP:80',
    'rule /x, which the Ingress does not have, of a.example of HTTP:80',
    'rule =/a/, which the Ingress does not have, of a.example of HTTP:80',
    'healthCheck.timeout of rule /a of a.example of HTTP:80',
  ]);
});
