import test from 'ava';
import type { ProxyRule } from '../../../sim/vpc/api/model/clb/proxy-table.ts';
import { matchDomain, matchRule } from '../../../sim/vpc/clb/proxy/match-rule.ts';
import { NO_CHECK } from './proxy-scene.ts';

const VIP = '10.0.8.8';
const rule = (domain: string, url: string, isDefault = false): ProxyRule => {
  return {
    ruleId: `${domain}${url}`,
    domain,
    url,
    healthCheck: NO_CHECK,
    targets: [],
    ...(isDefault && { isDefault }),
  };
};
const RULES = [
  rule('a.example.com', '/'),
  rule('a.example.com', '/api'),
  rule('a.example.com', '/api/v1'),
  rule('a.example.com', '=/api/v1'),
  rule('a.example.com', '~\\.png$'),
  rule('a.example.com', '~*\\.JPG$'),
  rule('*.example.com', '/'),
  rule('*.b.example.com', '/'),
  rule('www.example.*', '/only'),
  rule('', '/'),
];

const ROWS: readonly (readonly [what: string, host: string, path: string, rule: string | undefined])[] = [
  ['an exact domain wins', 'a.example.com', '/', 'a.example.com/'],
  ['letters of either case', 'A.Example.COM', '/', 'a.example.com/'],
  ['the longest prefix', 'a.example.com', '/api/v1/x', 'a.example.com/api/v1'],
  ['a shorter prefix', 'a.example.com', '/api/v2', 'a.example.com/api'],
  ['an exact path before its prefix', 'a.example.com', '/api/v1', 'a.example.com=/api/v1'],
  ['an expression before a prefix', 'a.example.com', '/api/x.png', 'a.example.com~\\.png$'],
  ['an expression distinguishes case', 'a.example.com', '/api/x.PNG', 'a.example.com/api'],
  ['or not', 'a.example.com', '/x.jpg', 'a.example.com~*\\.JPG$'],
  ['a wildcard', 'c.example.com', '/', '*.example.com/'],
  ['the longest wildcard', 'x.b.example.com', '/', '*.b.example.com/'],
  ['not the wildcard itself', 'example.com', '/', undefined],
  ['a wildcard at the end, and no rule of its domain', 'www.example.org', '/', undefined],
  ['a wildcard at the end', 'www.example.org', '/only', 'www.example.*/only'],
  ['the VIP', VIP, '/x', '/'],
  ['an unknown host', 'other.org', '/', undefined],
];

test('matchRule: domain first, then the path among the rules of that domain', (t) => {
  for (const [what, host, path, wanted] of ROWS) t.is(matchRule(RULES, VIP, host, path)?.ruleId, wanted, what);
  t.is(matchRule([], VIP, VIP, '/'), undefined);
});

test('matchRule: the domain of the default rule serves hosts that no rule names', (t) => {
  const rules = [rule('a.example.com', '/'), rule('b.example.com', '/', true), rule('b.example.com', '/x')];
  t.is(matchRule(rules, VIP, 'other.org', '/x/y')?.ruleId, 'b.example.com/x');
  t.is(matchRule(rules, VIP, 'a.example.com', '/x')?.ruleId, 'a.example.com/');
});

test('matchDomain: a server name has the certificate of its own name, else of the longest wildcard', (t) => {
  const names = new Set(['a.example.com', '*.example.com']);
  t.deepEqual(
    ['a.example.com', 'b.example.com', 'example.com', ''].map((host) => matchDomain(names, host)),
    ['a.example.com', '*.example.com', undefined, undefined],
  );
});
