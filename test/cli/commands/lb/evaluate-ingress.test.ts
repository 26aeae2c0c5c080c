import test from 'ava';
import { admitsSomebody, evaluateIngress, PROBE_RANGE } from '../../../../cli/commands/lb/evaluate-ingress.ts';
import type { IngressRule } from '../../../../cloud/cloud.ts';

const accept = (cidr: string | undefined, more: Partial<IngressRule> = {}): IngressRule => ({
  ...{ isAccepted: true, protocol: 'ALL', ...more },
  ...(cidr === undefined ? {} : { cidr }),
});
const drop = (cidr: string, more: Partial<IngressRule> = {}) => ({ ...accept(cidr, more), isAccepted: false });
const { protocol: _, ...template } = accept('0.0.0.0/0');
const probe = { cidr: PROBE_RANGE, protocol: 'TCP', port: 8_080 } as const;
const ports = (...all: readonly (readonly [number, number])[]) => ({ protocol: 'TCP', ports: all });

const CASES: readonly (readonly [string, readonly IngressRule[], string])[] = [
  ['no rule', [], 'dropped'],
  ['everyone', [accept('0.0.0.0/0')], 'admitted'],
  ['the range', [accept(PROBE_RANGE, ports([8_080, 8_080]))], 'admitted'],
  ['another port', [accept(PROBE_RANGE, ports([80, 80], [443, 443]))], 'dropped'],
  ['a range of ports', [accept(PROBE_RANGE, ports([80, 80], [8_000, 9_000]))], 'admitted'],
  ['another protocol', [accept('0.0.0.0/0', { protocol: 'UDP' })], 'dropped'],
  ['a part of the range', [accept('100.64.0.0/16')], 'dropped'],
  ['a part, and the rest behind it', [accept('100.64.0.0/16'), accept(PROBE_RANGE)], 'admitted'],
  ['a part is dropped', [drop('100.100.0.0/16'), accept('0.0.0.0/0')], 'dropped 0'],
  [
    'dropped before',
    [accept('10.0.0.0/8'), drop('0.0.0.0/0', ports([8_080, 8_080])), accept('0.0.0.0/0')],
    'dropped 1',
  ],
  ['dropped behind', [accept('0.0.0.0/0'), drop('0.0.0.0/0')], 'admitted'],
  ['another group or a template of addresses', [accept(undefined)], 'unknown'],
  ['a template of ports', [template], 'unknown'],
  ['a template, and everyone', [template, accept('0.0.0.0/0')], 'unknown'],
  ['a network that is none', [accept('10.0.0.7/8')], 'unknown'],
];

for (const [title, rules, expected] of CASES)
  test(`evaluateIngress: ${title}: ${expected}`, (t) => {
    const answer = evaluateIngress([{ groupId: 'sg-a', rules }], probe);
    t.is([answer.kind, 'at' in answer ? answer.at : undefined].filter((one) => one !== undefined).join(' '), expected);
  });

test('evaluateIngress: groups in their order; none admits everything', (t) => {
  const [closed, open] = [
    { groupId: 'sg-a', rules: [] },
    { groupId: 'sg-b', rules: [accept('0.0.0.0/0')] },
  ];
  t.deepEqual(evaluateIngress([], probe), { kind: 'admitted' });
  t.deepEqual(evaluateIngress([closed, open], probe), { kind: 'admitted' });
  t.deepEqual(evaluateIngress([closed], probe), { kind: 'dropped', groupId: 'sg-a' });
  const dropping = { groupId: 'sg-c', rules: [drop('0.0.0.0/0')] };
  t.deepEqual(evaluateIngress([dropping, open], probe), { kind: 'dropped', groupId: 'sg-c', at: 0 });
});

test('admitsSomebody: anybody but probes', (t) => {
  const of = (...rules: readonly IngressRule[]) => admitsSomebody([{ groupId: 'sg-a', rules }], probe);
  t.true(admitsSomebody([], probe));
  t.false(of());
  t.false(of(accept(PROBE_RANGE), accept('100.64.9.0/24')));
  t.true(of(accept(PROBE_RANGE), accept('10.0.0.0/8')));
  t.true(of(accept(undefined)));
  t.false(of(accept('10.0.0.0/8', ports([80, 80]))));
  t.false(of(drop('0.0.0.0/0'), accept('0.0.0.0/0')));
});
