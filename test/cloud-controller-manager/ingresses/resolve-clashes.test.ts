import test from 'ava';
import type { DesiredRuleListener } from '../../../cloud-controller-manager/balancers/desired-rules.ts';
import { type RuleClaim, resolveClashes } from '../../../cloud-controller-manager/ingresses/resolve-clashes.ts';
import { configureRules } from '../../../cloud-controller-manager/service-configs/l7-settings.ts';
import { path, plan, render } from './plan-facts.ts';

const MOST = 50;
const AUTO = { 'ingress.cloud.tencent.com/auto-rewrite': 'true' };

function listeners(host: string, paths: readonly string[], secretName?: string): readonly DesiredRuleListener[] {
  const rules = [{ host, http: { paths: paths.map((one) => path(one)) } }];
  const tls = secretName === undefined ? {} : { tls: [{ secretName }] };
  return plan({ rules, ...tls }, secretName === undefined ? {} : AUTO).desired ?? [];
}

function claim(uid: string, createdAt: string, its: readonly DesiredRuleListener[], isGrouped = true): RuleClaim {
  return { ingress: { key: `d/${uid}`, uid, createdAt: `2026-01-0${createdAt}T00:00:00Z` }, isGrouped, listeners: its };
}

function granted(
  claims: readonly RuleClaim[],
  uid: string,
  most = MOST,
): readonly [readonly string[], readonly string[]] {
  const its = resolveClashes(claims, most).get(uid);
  return [render(its?.listeners ?? []), (its?.notices ?? []).map(({ reason, message }) => `${reason}: ${message}`)];
}

test('of one host and path the older Ingress has it, and else the smaller uid', (t) => {
  const claims = [claim('b', '2', listeners('a.example', ['/', '/b'])), claim('c', '1', listeners('a.example', ['/']))];
  t.deepEqual(granted(claims, 'c'), [['HTTP:80 a.example /'], []]);
  const [rules, texts] = granted(claims, 'b');
  t.deepEqual(rules, ['HTTP:80 a.example /b']);
  t.regex(texts.join(), /^RuleClash: HTTP:80 "a\.example" "\/" is of the Ingress d\/c; that is not served/);
  const same = [claim('b', '1', listeners('a.example', ['/'])), claim('a', '1', listeners('a.example', ['/']))];
  t.deepEqual(granted(same, 'a')[0], ['HTTP:80 a.example /']);
  t.deepEqual(granted(same, 'b')[0], []);
});

test('without enable-group a load balancer is of one Ingress', (t) => {
  const claims = [
    claim('a', '1', listeners('a.example', ['/']), false),
    claim('b', '2', listeners('b.example', ['/'])),
  ];
  t.deepEqual(granted(claims, 'a'), [['HTTP:80 a.example /'], []]);
  const [rules, texts] = granted(claims, 'b');
  t.deepEqual(rules, []);
  t.regex(texts.join(), /^RuleClash: the load balancer is of the Ingress d\/a; set .*enable-group/);
});

test('an Ingress that asks clients for certificates is not served where the certificate of the host asks for none', (t) => {
  const other = listeners('a.example', ['/b'], 'ids').map((one) => ({
    ...one,
    rules: one.rules.map((rule) =>
      one.protocol === 'HTTPS'
        ? { ...rule, certificate: { kind: 'existing' as const, ids: ['zzzz9999'], caId: 'cccc9999' } }
        : rule,
    ),
  }));
  const claims = [claim('a', '1', listeners('a.example', ['/'], 'ids')), claim('b', '2', other)];
  const [rules, notices] = granted(claims, 'b');
  t.deepEqual(rules, []);
  t.regex(notices.join(), /has the certificate of the Ingress d\/a, by which clients need none/);
});

test('a host has one certificate, that of the older Ingress', (t) => {
  const other = listeners('a.example', ['/b'], 'ids').map((one) => ({
    ...one,
    rules: one.rules.map((rule) => ({
      ...rule,
      ...(one.protocol === 'HTTPS' ? { certificate: { kind: 'existing' as const, ids: ['zzzz9999'] } } : {}),
    })),
  }));
  const claims = [claim('a', '1', listeners('a.example', ['/'], 'ids')), claim('b', '2', other)];
  t.regex(
    granted(claims, 'b')[1].join(),
    /^RuleClash: the certificate of HTTPS:443 "a\.example" is of the Ingress d\/a/,
  );
  const rules = resolveClashes(claims, MOST)
    .get('b')
    ?.listeners.find(({ protocol }) => protocol === 'HTTPS')?.rules;
  t.deepEqual(
    rules?.map(({ certificate }) => certificate),
    [{ kind: 'existing', ids: ['abcd1234'] }],
  );
});

test('a listener has one default domain, that of the older Ingress', (t) => {
  const chosen = configureRules(listeners('a.example', ['/']), {
    l7Listeners: [{ protocol: 'HTTP', port: 80, defaultServer: 'a.example' }],
  }).listeners;
  const claims = [claim('a', '1', chosen), claim('b', '2', listeners('', ['/']))];
  const defaults = (all: readonly RuleClaim[]) =>
    [...resolveClashes(all, MOST).values()].flatMap((one) =>
      one.listeners.flatMap(({ rules }) =>
        rules.flatMap(({ isDefault, domain }) => (isDefault === true ? [domain] : [])),
      ),
    );
  t.deepEqual(defaults(claims), ['a.example']);
  t.regex(
    granted(claims, 'b')[1].join(),
    /^RuleClash: the default domain of HTTP:80 is "a\.example" of the Ingress d\/a/,
  );
  t.deepEqual(granted(claims, 'b')[0], ['HTTP:80  /']);
  t.deepEqual(defaults([claim('a', '2', chosen), claim('b', '1', listeners('', ['/']))]), ['']);
});

test('a port has one protocol', (t) => {
  const onHttps: readonly DesiredRuleListener[] = [
    { protocol: 'HTTPS', port: 80, rules: listeners('b.example', ['/'])[0]?.rules ?? [] },
  ];
  const claims = [claim('a', '1', listeners('a.example', ['/'])), claim('b', '2', onHttps)];
  t.deepEqual(granted(claims, 'b')[0], []);
  t.regex(granted(claims, 'b')[1].join(), /port 80 is HTTP of the Ingress d\/a/);
});

test('a redirect goes with the rule that it leads to', (t) => {
  const claims = [
    claim(
      'a',
      '1',
      listeners('a.example', ['/'], 'ids').filter(({ protocol }) => protocol === 'HTTPS'),
    ),
    claim('b', '2', listeners('a.example', ['/', '/b'], 'ids')),
  ];
  t.deepEqual(granted(claims, 'b')[0], [
    'HTTP:80 a.example /b -> 301 HTTPS:443 a.example /b',
    'HTTPS:443 a.example /b',
  ]);
});

test('a listener has so many rules, of the older Ingress first', (t) => {
  const many = Array.from({ length: 3 }, (_, index) => `/${index}`);
  const claims = [claim('a', '1', listeners('a.example', many)), claim('b', '2', listeners('b.example', many))];
  t.is(granted(claims, 'a', 4)[0].length, 3);
  const [rules, texts] = granted(claims, 'b', 4);
  t.deepEqual(rules, ['HTTP:80 b.example /0']);
  t.regex(texts.join(), /^RulesOverQuota: HTTP:80 may have 4 rules; 2 of this Ingress are not served/);
});

test('one that is too many keeps what it had, takes no room, and its paths are of nobody else', (t) => {
  const targets = Array.from({ length: 100 }, (_, at) => ({ ip: `10.0.0.${at}`, port: 80, weight: 10 }));
  const on = (ports: number, first: number, paths: readonly string[]): readonly DesiredRuleListener[] =>
    Array.from({ length: ports }, (_, at) =>
      listeners('a.example', paths).map((one) => ({
        ...{ ...one, port: first + at },
        rules: one.rules.map((rule) => ({ ...rule, targets })),
      })),
    ).flat();
  const paths = Array.from({ length: MOST }, (_, at) => `/${at}`);
  const old = claim('a', '1', on(48, 1_000, paths));
  const young = claim('c', '3', on(1, 2_000, ['/0', '/c']));
  const large = claim('b', '2', on(4, 2_000, paths));
  const known = [old, { ...large, former: on(1, 2_000, ['/0']) }, young];
  const [rules, [text]] = granted(known, 'b');
  t.deepEqual(rules, ['HTTP:2000 a.example /0']);
  t.regex(text ?? '', /^IngressRefused: the load balancer would have 260000 targets .* stays as it is$/);
  const unknown = [old, large, young];
  t.is(granted(unknown, 'b')[0].length, 4 * MOST, 'what it may have is of nobody else');
  for (const claims of [known, unknown]) {
    t.is(granted(claims, 'a')[0].length, 48 * MOST);
    t.deepEqual(granted(claims, 'c')[0], ['HTTP:2000 a.example /c']);
  }
});
