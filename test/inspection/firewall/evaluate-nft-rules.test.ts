import test from 'ava';
import type { MatchResult, Packet } from '../../../inspection/firewall/evaluate-chain.ts';
import { evaluateNftRules } from '../../../inspection/firewall/evaluate-nft-rules.ts';

const V4: Packet = { family: 4, src: '10.0.0.5', dst: '10.1.0.5', iifs: ['eni1'], oifs: ['eth0'] };
const V6: Packet = { ...V4, family: 6, src: 'fd00::5', dst: 'fd01::5' };
const STATE = {
  mark: 0x50080,
  ctMark: 0x80,
  direction: 'reply',
  iifgroup: 4005,
  isSourceRouted: true,
  isLocal: false,
} as const;
const WITH_STATE: Packet = { ...V4, state: STATE };

const { src: _, ...TO_SOMEBODY } = V4;

const open = (...notEvaluated: readonly string[]): MatchResult => ({ notEvaluated });
const match = (left: object, right: unknown, op = '==') => ({ match: { op, left, right } });
const SADDR = { payload: { protocol: 'ip', field: 'saddr' } };
const masked = (mask: number) => ({ '&': [{ meta: { key: 'mark' } }, mask] });

/** Conditions, and whether the packet matches. */
const CONDITIONS: readonly (readonly [what: string, condition: object, packet: Packet, answer: MatchResult])[] = [
  ['its source', match(SADDR, '10.0.0.5'), V4, 'yes'],
  ['another source', match(SADDR, '10.0.0.6', '!='), V4, 'yes'],
  ['a source of the other family', match(SADDR, '10.0.0.5'), V6, 'no'],
  [
    'not a source of the other family, for which nft asks for the family first',
    match(SADDR, '10.0.0.5', '!='),
    V6,
    'no',
  ],
  ['a mark that is not known', match(masked(0x80), 0x80), V4, open('meta mark & 0x80')],
  ['an address that is not known', match(SADDR, '10.0.0.5'), TO_SOMEBODY, 'maybe'],
  ['bits of its mark', match(masked(0x80), 0x80), WITH_STATE, 'yes'],
  ['other bits of its mark', match(masked(0xff0000), 0x60000), WITH_STATE, 'no'],
  ['the mark of its connection', match({ ct: { key: 'mark' } }, 0x80), WITH_STATE, 'yes'],
  ['the direction', match({ ct: { key: 'direction' } }, 'original'), WITH_STATE, 'no'],
  ['the group of its link', match({ meta: { key: 'iifgroup' } }, 4005), WITH_STATE, 'yes'],
  ['the group of a link that is not known', match({ meta: { key: 'iifgroup' } }, 4005), V4, open('meta iifgroup')],
  ['the way back', match({ fib: { result: 'oif', flags: ['saddr', 'iif'] } }, false), WITH_STATE, 'no'],
  [
    'the kind of its destination',
    match({ fib: { result: 'type', flags: ['daddr'] } }, 'local', '!='),
    WITH_STATE,
    'yes',
  ],
  ['what nobody here knows', match({ rt: { key: 'mtu' } }, 9), WITH_STATE, open('rt mtu')],
];

for (const [what, condition, packet, answer] of CONDITIONS) {
  test(`evaluateNftRules: ${what}: ${typeof answer === 'string' ? answer : 'not evaluated'}`, (t) => {
    const steps = evaluateNftRules([[condition, { drop: null }]], packet, []);
    t.deepEqual(steps, answer === 'no' ? [] : [{ match: answer, verdict: { kind: 'drop' } }]);
  });
}

test('evaluateNftRules: a mark that is made of that of the connection is known where that is', (t) => {
  const value = { '|': [{ '&': [{ meta: { key: 'mark' } }, 0xff0000] }, { ct: { key: 'mark' } }] };
  const rules = [[{ mangle: { key: { meta: { key: 'mark' } }, value } }]];
  const after = (packet: Packet) => {
    const [step] = evaluateNftRules(rules, packet, []);
    return step?.verdict.kind === 'mark' ? step.verdict.after(0x5ffff) : 'no mark';
  };
  t.is(after(WITH_STATE), 0x50080);
  t.is(after(V4), undefined);
});
