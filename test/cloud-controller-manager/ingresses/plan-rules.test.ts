import test from 'ava';
import { path, plan, render } from './plan-facts.ts';

type Row = readonly [
  title: string,
  spec: object,
  annotations: Readonly<Record<string, string>>,
  rules: readonly string[] | 'refused',
  texts?: readonly RegExp[],
];

const TKE = 'kubernetes.io/ingress';
const CLOUD = 'ingress.cloud.tencent.com';
const BACKEND = { service: { name: 'web', port: { number: 80 } } };
const ruleOf = (host: string | undefined, ...paths: readonly object[]) => ({
  ...(host === undefined ? {} : { host }),
  http: { paths },
});
const A = ruleOf('a.example', path('/'));
const B = ruleOf('b.example', path('/'));
const TLS_A = [{ hosts: ['a.example'], secretName: 'ids' }];
const mixed = (host: string, its: string, more: object = {}) => ({
  host,
  path: its,
  backend: { serviceName: 'web', servicePort: '80' },
  ...more,
});
const both = { [`${TKE}.rule-mix`]: 'true', [`${CLOUD}/rewrite-support`]: 'true' };

const ROWS: readonly Row[] = [
  ['a host on HTTP', { rules: [A] }, {}, ['HTTP:80 a.example /']],
  ['no host: the address', { rules: [ruleOf(undefined, path('/x'))] }, {}, ['HTTP:80  /x']],
  ['an exact path', { rules: [ruleOf('a.example', path('/x', 'Exact'))] }, {}, ['HTTP:80 a.example =/x']],
  [
    'a prefix is by elements',
    { rules: [ruleOf('a.example', path('/x', 'Prefix'), path('/y/', 'Prefix'), path('/', 'Prefix'))] },
    {},
    ['=/x', '/x/', '=/y', '/y/', '/'].map((url) => `HTTP:80 a.example ${url}`),
  ],
  [
    'an exact path beside its prefix is its own',
    { rules: [ruleOf('a.example', path('/x', 'Prefix'), path('/x', 'Exact', 'other'))] },
    {},
    ['HTTP:80 a.example =/x', 'HTTP:80 a.example /x/'],
  ],
  [
    'a path twice with different backends',
    { rules: [ruleOf('a.example', path('/x'), path('/x', 'ImplementationSpecific', 'other'))] },
    {},
    ['HTTP:80 a.example /x'],
    [/^IngressInvalid: HTTP:80 "a\.example" "\/x" is there twice/],
  ],
  [
    'a path twice with one backend',
    { rules: [ruleOf('a.example', path('/x'), path('/x'))] },
    {},
    ['HTTP:80 a.example /x'],
    [],
  ],
  [
    'what a url cannot have',
    { rules: [ruleOf('a.example', path('/x y'), path('/ok'), path(`/${'x'.repeat(120)}`))] },
    {},
    ['HTTP:80 a.example /ok'],
    [/^IngressRefused: path "\/x y" has characters/, /^IngressRefused: path .* has 121 characters, and may have 120/],
  ],
  [
    'what a domain cannot be',
    { rules: [ruleOf(`${'x'.repeat(79)}.example`, path('/')), ruleOf('_a.example', path('/')), A] },
    {},
    ['HTTP:80 a.example /'],
    [/has 87 characters/, /"_a\.example" must be a name/],
  ],
  ['a wildcard', { rules: [ruleOf('*.example.com', path('/'))] }, {}, ['HTTP:80 *.example.com /']],
  ['a default backend alone', { defaultBackend: BACKEND }, {}, ['HTTP:80  /']],
  [
    'a default backend serves what hosts leave out',
    { defaultBackend: BACKEND, rules: [ruleOf('a.example', path('/x')), B, { host: 'c.example' }] },
    {},
    ['a.example /x', 'a.example /', 'b.example /', ' /', 'c.example /'].map((rule) => `HTTP:80 ${rule}`),
  ],
  [
    'backends that are resources beside a Service',
    {
      defaultBackend: { resource: { apiGroup: 'x.example', kind: 'Bucket', name: 'b' } },
      rules: [
        ruleOf('a.example', path('/ok'), {
          ...path('/static'),
          backend: { resource: { apiGroup: 'x.example', kind: 'Bucket', name: 'b' } },
        }),
      ],
    },
    {},
    ['HTTP:80 a.example /ok'],
    [
      /^IngressRefused: only Services.*defaultBackend \(a resource of kind "Bucket"\), host "a\.example" path "\/static" \(/,
    ],
  ],
  [
    'backends that are resources alone',
    { defaultBackend: { resource: { apiGroup: 'x.example', kind: 'Bucket', name: 'b' } } },
    {},
    'refused',
    [/^IngressRefused: only Services.*: defaultBackend/, /^IngressInvalid: the Ingress has neither rules/],
  ],
  ['nothing at all', {}, {}, 'refused', [/^IngressInvalid: the Ingress has neither rules nor a default backend/]],
  [
    'TLS hosts on HTTPS, others on HTTP',
    { rules: [A, B], tls: TLS_A },
    {},
    ['HTTP:80 b.example /', 'HTTPS:443 a.example /'],
  ],
  [
    'a default certificate is for all',
    { rules: [A, B], tls: [{ secretName: 'ids' }] },
    {},
    ['HTTPS:443 a.example /', 'HTTPS:443 b.example /'],
  ],
  [
    'a certificate of a wildcard',
    { rules: [A, ruleOf('x.a.example', path('/'))], tls: [{ hosts: ['*.example'], secretName: 'ids' }] },
    {},
    ['HTTP:80 x.a.example /', 'HTTPS:443 a.example /'],
  ],
  [
    'two default certificates',
    { rules: [A], tls: [{ secretName: 'ids' }, { secretName: 'ids2' }] },
    {},
    'refused',
    [/^IngressInvalid: certificates: there are two entries without hosts/],
  ],
  [
    'a host in two entries',
    { rules: [A], tls: [...TLS_A, ...TLS_A] },
    {},
    'refused',
    [/host "a\.example" is in two entries/],
  ],
  [
    'rule-mix: rules of the spec that are named in neither are on HTTPS',
    { rules: [A, B], tls: [{ secretName: 'ids' }] },
    { [`${TKE}.rule-mix`]: 'true', [`${TKE}.http-rules`]: JSON.stringify([mixed('a.example', '/')]) },
    ['HTTP:80 a.example /', 'HTTPS:443 b.example /'],
  ],
  [
    'rule-mix: a rule on both, of the type that the spec has',
    { rules: [ruleOf('a.example', path('/x', 'Exact'))], tls: TLS_A },
    {
      [`${TKE}.rule-mix`]: 'true',
      [`${TKE}.http-rules`]: JSON.stringify([mixed('a.example', '/x')]),
      [`${TKE}.https-rules`]: JSON.stringify([mixed('a.example', '/x')]),
    },
    ['HTTP:80 a.example =/x', 'HTTPS:443 a.example =/x'],
  ],
  [
    'an HTTPS host without a certificate',
    { rules: [A, B], tls: TLS_A },
    { [`${TKE}.rule-mix`]: 'true' },
    ['HTTPS:443 a.example /'],
    [/^CertificateRefused: host "b\.example" is on HTTPS and has no certificate/],
  ],
  [
    'http-rules without rule-mix',
    { rules: [A] },
    { [`${TKE}.http-rules`]: '[]' },
    ['HTTP:80 a.example /'],
    [/^AnnotationRefused: .*no effect without rule-mix/],
  ],
  [
    'rule-mix-both',
    { rules: [A], tls: TLS_A },
    { [`${TKE}.rule-mix-both`]: 'true' },
    ['HTTP:80 a.example /', 'HTTPS:443 a.example /'],
  ],
  [
    'rule-mix-both with auto-rewrite',
    { rules: [A], tls: TLS_A },
    { [`${TKE}.rule-mix-both`]: 'true', [`${CLOUD}/auto-rewrite`]: 'true' },
    'refused',
    [/rule-mix-both is not together with auto-rewrite/, /has a rule of its own/],
  ],
  [
    'listen-ports',
    { rules: [A, B], tls: TLS_A },
    { [`${CLOUD}/listen-ports`]: '[{"HTTP":8080},{"HTTPS":8443},{"HTTPS":9443}]' },
    ['HTTP:8080 b.example /', 'HTTPS:8443 a.example /', 'HTTPS:9443 a.example /'],
  ],
  [
    'listen-ports without a protocol that is used',
    { rules: [A] },
    { [`${CLOUD}/listen-ports`]: '[{"HTTPS":443}]' },
    'refused',
    [/rules are on HTTP, and the annotation .*listen-ports has no port of HTTP/],
  ],
  [
    'auto-rewrite',
    { rules: [ruleOf('a.example', path('/x', 'Prefix'))], tls: TLS_A },
    { [`${CLOUD}/auto-rewrite`]: 'true', [`${CLOUD}/auto-rewrite-code`]: '307' },
    [
      'HTTP:80 a.example =/x -> 307 HTTPS:443 a.example =/x',
      'HTTP:80 a.example /x/ -> 307 HTTPS:443 a.example /x/',
      'HTTPS:443 a.example =/x',
      'HTTPS:443 a.example /x/',
    ],
  ],
  ['auto-rewrite, off', { rules: [A], tls: TLS_A }, { [`${CLOUD}/auto-rewrite`]: 'false' }, ['HTTPS:443 a.example /']],
  [
    'auto-rewrite without HTTPS',
    { rules: [A] },
    { [`${CLOUD}/auto-rewrite`]: 'true' },
    ['HTTP:80 a.example /'],
    [/auto-rewrite: no rule is on HTTPS:443/],
  ],
  [
    'a rewrite',
    { rules: [A], tls: TLS_A },
    {
      ...both,
      [`${TKE}.http-rules`]: JSON.stringify([
        mixed('a.example', '/old', { rewrite: { port: 443, host: 'a.example', path: '/' } }),
      ]),
    },
    ['HTTP:80 a.example /old -> 301 HTTPS:443 a.example /', 'HTTPS:443 a.example /'],
  ],
  [
    'a rewrite to a rule that is redirected too',
    { rules: [A], tls: TLS_A },
    {
      ...both,
      [`${TKE}.http-rules`]: JSON.stringify([
        mixed('a.example', '/old', { rewrite: { port: 80, host: 'a.example', path: '/new' } }),
        mixed('a.example', '/new', { rewrite: { port: 443, host: 'a.example', path: '/' } }),
      ]),
    },
    'refused',
    [/^IngressInvalid: rewrite of .*"\/old": it leads to .*"\/new", which is redirected too/],
  ],
  [
    'a rewrite to no rule',
    { rules: [A], tls: TLS_A },
    {
      ...both,
      [`${TKE}.http-rules`]: JSON.stringify([mixed('a.example', '/old', { rewrite: { port: 443, path: '/none' } })]),
    },
    'refused',
    [/the Ingress has no rule 443 "a\.example" "\/none"/],
  ],
  [
    'a rewrite without rewrite-support',
    { rules: [A], tls: TLS_A },
    {
      [`${TKE}.rule-mix`]: 'true',
      [`${TKE}.http-rules`]: JSON.stringify([mixed('a.example', '/old', { rewrite: { port: 443, path: '/' } })]),
    },
    ['HTTP:80 a.example /old', 'HTTPS:443 a.example /'],
    [/rewrite of a rule has no effect/],
  ],
  [
    'the annotation certificate',
    { rules: [A, B] },
    { [`${CLOUD}/certificate`]: '[{"hosts":["a.example"],"qcloud_cert_id":["abcd1234","abcd5678"]}]' },
    ['HTTP:80 b.example /', 'HTTPS:443 a.example /'],
  ],
  [
    'the annotation certificate with a host in capitals',
    { rules: [A] },
    { [`${CLOUD}/certificate`]: '[{"hosts":["A.Example"],"qcloud_cert_id":["abcd1234"]}]' },
    ['HTTPS:443 a.example /'],
  ],
  [
    'a host of a certificate that no rule has',
    { rules: [A, B], tls: [...TLS_A, { hosts: ['www.b.example', '*.c.example'], secretName: 'ids' }] },
    {},
    ['HTTP:80 b.example /', 'HTTPS:443 a.example /'],
    [/^CertificateRefused: hosts "www\.b\.example", "\*\.c\.example": no rule has such a host/],
  ],
  [
    'a host of the annotation certificate that no rule has',
    { rules: [A] },
    { [`${CLOUD}/certificate`]: '[{"hosts":["b.example"],"qcloud_cert_id":["abcd1234"]}]' },
    ['HTTP:80 a.example /'],
    [/^CertificateRefused: hosts "b\.example": no rule has such a host/],
  ],
  [
    'the annotation certificate beside spec.tls',
    { rules: [A], tls: TLS_A },
    { [`${CLOUD}/certificate`]: '[{"qcloud_cert_id":["abcd1234"]}]' },
    'refused',
    [/^AnnotationInvalid: spec\.tls and the annotation/],
  ],
];

for (const [title, spec, annotations, rules, texts = []] of ROWS) {
  test(title, (t) => {
    const planned = plan(spec, annotations);
    t.deepEqual(planned.desired === undefined ? 'refused' : render(planned.desired), rules, planned.texts.join('\n'));
    t.is(planned.texts.length, texts.length, planned.texts.join('\n'));
    texts.forEach((text, index) => void t.regex(planned.texts[index] ?? '', text));
  });
}

type BackendRow = readonly [service: string, port: object, targets: number | undefined, text?: RegExp];
const BACKENDS: readonly BackendRow[] = [
  ['web', { number: 80 }, 1],
  ['web', { name: 'http' }, 1],
  ['gone', { number: 80 }, 0, /^BackendMissing: Service "gone" does not exist/],
  ['early', { number: 80 }, undefined],
  ['web', { number: 81 }, undefined, /^BackendMissing: port 81 of Service "web" does not exist/],
  ['web', { name: 'none' }, undefined, /^BackendMissing: port "none" of Service "web" does not exist/],
  ['udp', { number: 80 }, undefined, /^BackendMissing: port 80 of Service "udp" is of UDP/],
  ['bare', { number: 80 }, undefined, /^BackendMissing: port 80 of Service "bare" has no node port/],
];

for (const [service, port, targets, text] of BACKENDS) {
  test(`backend ${service} ${JSON.stringify(port)}`, (t) => {
    const spec = { rules: [ruleOf('a.example', path('/', 'ImplementationSpecific', service, port))] };
    const planned = plan(spec);
    t.is(planned.desired?.[0]?.rules[0]?.targets?.length, targets);
    if (text === undefined) t.deepEqual(planned.texts, []);
    else t.regex(planned.texts.join('\n'), text);
  });
}

test('with direct access no node port is needed', (t) => {
  const spec = { rules: [ruleOf('a.example', path('/', 'ImplementationSpecific', 'bare'))] };
  const planned = plan(spec, { [`${CLOUD}/direct-access`]: 'true' });
  t.deepEqual(planned.texts, []);
  t.is(planned.desired?.[0]?.rules[0]?.targets?.length, 1);
});

test('weights are of single Pods, of the rule, and else the default', (t) => {
  const table = {
    defaultWeight: 5,
    groups: [
      {
        key: { proto: 'HTTP', host: 'a.example' },
        statefulSets: [
          {
            name: 'db',
            weights: [
              { weight: 0, podIndexes: [0] },
              { weight: 50, podIndexes: [1] },
            ],
          },
        ],
      },
    ],
  };
  const ips = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4'];
  const targets = ips.map((ip, index) => ({ ip, port: 80, weight: index === 3 ? ('asIs' as const) : 10 }));
  const planned = plan(
    { rules: [A, B] },
    { [`${CLOUD}/direct-access`]: 'true', [`${CLOUD}/lb-rs-weight`]: JSON.stringify(table) },
    {
      targetsOf: () => ({ targets }),
      podOf: (ip) => ({ '10.0.0.1': 'db-0', '10.0.0.2': 'db-1', '10.0.0.3': 'web-1' })[ip],
    },
  );
  const weights = planned.desired?.[0]?.rules.map((rule) => rule.targets?.map(({ weight }) => weight));
  t.deepEqual(weights, [
    [0, 50, 5, 'asIs'],
    [5, 5, 5, 'asIs'],
  ]);
});

for (const host of [' a.example', 'a. example', 'a.example\n', ''])
  test(`a host of the annotation certificate is refused: ${JSON.stringify(host)}`, (t) => {
    const annotations = { [`${CLOUD}/certificate`]: JSON.stringify([{ hosts: [host], qcloud_cert_id: ['abcd1234'] }]) };
    const { notices } = plan({ rules: [A] }, annotations);
    const [invalid] = notices.filter(({ blocks }) => blocks);
    t.regex(
      `${invalid?.reason}: ${invalid?.message}`,
      /^AnnotationInvalid: .*hosts that are not empty and have no blanks/,
    );
  });
