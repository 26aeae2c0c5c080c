import { readFileSync } from 'node:fs';
import test from 'ava';
import { classifyError } from '../../cloud/classify-error.ts';
import { ERROR_TABLE, type ErrorRule, findErrorRule } from '../../cloud/error-table.ts';

const kind = test.macro((t, code: string, action: string, retry: string, scope: string | undefined) => {
  t.like(findErrorRule(code, action, ''), scope === undefined ? { retry } : { retry, scope });
});

test('findErrorRule: gateway throttling', kind, 'RequestLimitExceeded', 'DescribeSubnets', 'throttled', undefined);
test('findErrorRule: a line for all below it', kind, 'RequestLimitExceeded.SomeNewLimit', 'X', 'throttled', undefined);
test('findErrorRule: exact before pattern', kind, 'LimitExceeded.ActionLimited', 'X', 'throttled', undefined);
test(
  'findErrorRule: one code, an instance full',
  kind,
  'LimitExceeded',
  'AttachNetworkInterface',
  'quota',
  'instance-enis',
);
test('findErrorRule: one code, an ENI full', kind, 'LimitExceeded', 'AssignPrivateIpAddresses', 'quota', 'eni-ips');
test('findErrorRule: one code, something else full', kind, 'LimitExceeded', 'X', 'quota', 'account');
test('findErrorRule: a gateway answered', kind, 'HTTP_502', 'X', 'resolve', undefined);
test('findErrorRule: what nobody knows is not repeated', kind, 'Brand.NewCode', 'X', 'never', undefined);

test('findErrorRule: a text goes before every code', (t) => {
  const retryOf = (code: string, text: string) => findErrorRule(code, 'DescribeListeners', text).retry;
  t.is(retryOf('InvalidParameter', 'some ListenerId ["lbl-1"] not found'), 'gone');
  t.is(retryOf('InvalidParameter', 'Ports is no list'), 'never');
  t.is(retryOf('InternalError', 'LoadBalancer not exist: lb-1'), 'gone');
  t.is(retryOf('InternalError', ''), 'resolve');
});

test('ERROR_TABLE: a refusal of the account as a whole is told from one of a single API', (t) => {
  const wide = (code: string) => classifyError({ code, action: 'DescribeSubnets', text: '' }).isAccountWide;
  t.false(wide('RequestLimitExceeded'));
  t.true(wide('RequestLimitExceeded.UinLimitExceeded'));
  t.true(wide('RequestLimitExceeded.IPLimitExceeded'));
  t.false(wide('ResourceInsufficient.Subnet'));
  t.true(ERROR_TABLE.every((rule) => rule.isAccountWide !== true || rule.retry === 'throttled'));
});

test('ERROR_TABLE: names a scope if and only if it is a quota, and no line twice', (t) => {
  const keys = ERROR_TABLE.map((rule) => `${rule.code} ${rule.text ?? ''} ${(rule.actions ?? []).join()}`);
  t.is(new Set(keys).size, keys.length);
  for (const rule of ERROR_TABLE) t.is(rule.scope !== undefined, rule.retry === 'quota', rule.code);
});

/** What stands behind the colon: what is exhausted, or who is throttled when it is more than one API. */
const scopeOf = (rule: ErrorRule): string => rule.scope ?? (rule.isAccountWide === true ? 'product' : '');

/** A rule for a text has it behind the code. */
const codeOf = (rule: ErrorRule): string => (rule.text === undefined ? rule.code : `${rule.code}: ${rule.text}`);

test('ERROR_TABLE: every line is in docs/cloud-calls.md, and nothing else is', (t) => {
  const docs = readFileSync('docs/cloud-calls.md', 'utf8');
  const lines = [...docs.matchAll(/^\| `([^`]+)` \| ([^|]*) \| ([a-z]+)(?:: ([a-z-]+))? \| (\d+) \| (.*) \|$/gm)];
  const documented = lines.map(([, code, actions, retry, scope, afterMs, means]) =>
    [code, actions?.trim(), retry, scope ?? '', afterMs, means].join('|'),
  );
  const inSource = ERROR_TABLE.map((rule) =>
    [codeOf(rule), (rule.actions ?? []).join(', '), rule.retry, scopeOf(rule), rule.afterMs, rule.means].join('|'),
  );
  t.deepEqual(documented, inSource);
});

test("classifyError: the message has the provider's own words, code and RequestId", (t) => {
  const error = classifyError({
    code: 'ResourceInsufficient.Subnet',
    action: 'CreateNetworkInterface',
    text: 'no IPs',
    requestId: 'r-1',
  });
  t.is(error.message, 'CreateNetworkInterface: Code=ResourceInsufficient.Subnet, Message=no IPs, RequestId=r-1');
  t.like(error, { retry: 'quota', scope: 'subnet', text: 'no IPs' });
});
