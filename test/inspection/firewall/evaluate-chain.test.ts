import test from 'ava';
import { evaluateChain, type RuleStep } from '../../../inspection/firewall/evaluate-chain.ts';

const jump = (chain: string): RuleStep => ({ match: 'yes', verdict: { kind: 'jump', chain } });
const drop: RuleStep = { match: 'yes', verdict: { kind: 'drop' } };

test('evaluateChain: asks for each chain once, however often others jump to it', (t) => {
  // Sixteen chains of ten jumps each: ten to the sixteenth ways.
  const asked = new Map<string, number>();
  const stepsOf = (chain: string): readonly RuleStep[] => {
    asked.set(chain, (asked.get(chain) ?? 0) + 1);
    const at = Number(chain);
    return at === 15 ? [] : Array.from({ length: 10 }, () => jump(String(at + 1)));
  };
  t.is(evaluateChain(stepsOf, '0', false).outcome, 'passes');
  t.is(asked.size, 16);
  t.deepEqual(new Set(asked.values()), new Set([1]));
});

test('evaluateChain: finds the drop behind a chain that was passed before', (t) => {
  const chains: Record<string, readonly RuleStep[]> = { base: [jump('a'), jump('b')], a: [], b: [jump('a'), drop] };
  t.is(evaluateChain((chain) => chains[chain] ?? [], 'base', false).outcome, 'dropped');
});

test('evaluateChain: decides nothing where chains lead in a circle, or deeper than the kernel goes', (t) => {
  t.is(evaluateChain(() => [jump('base'), drop], 'base', true).outcome, 'maybe');
  t.is(evaluateChain((chain) => [jump(`${chain}x`)], 'base', true).outcome, 'maybe');
});

const length = { notEvaluated: ['length'] };
const mark = { notEvaluated: ['mark'] };
const step = (match: RuleStep['match'], kind: 'accept' | 'drop' | 'return'): RuleStep => ({ match, verdict: { kind } });
const call = (match: RuleStep['match'], kind: 'jump' | 'goto', chain: string): RuleStep => ({
  match,
  verdict: { kind, chain },
});

/** Rules of a base chain and of a chain `a`, its policy, and what becomes of a packet. */
const VERDICTS: readonly (readonly [
  what: string,
  chains: Readonly<Record<string, readonly RuleStep[]>>,
  policy: 'accept' | 'drop',
  outcome: string,
])[] = [
  ['a condition before a drop', { base: [step(length, 'drop')] }, 'accept', 'maybe: length'],
  [
    'a condition before a drop, after which all is dropped',
    { base: [step(length, 'drop'), drop] },
    'accept',
    'dropped: ',
  ],
  ['a condition before an accept', { base: [step(length, 'accept')] }, 'accept', 'passes: '],
  [
    'a condition before an accept that a drop follows',
    { base: [step(length, 'accept'), drop] },
    'accept',
    'maybe: length',
  ],
  ['a condition before an accept, and a policy of drop', { base: [step(length, 'accept')] }, 'drop', 'maybe: length'],
  [
    'a condition before a drop, and an accept',
    { base: [step(length, 'drop'), step('yes', 'accept')] },
    'drop',
    'maybe: length',
  ],
  ['two conditions', { base: [step(length, 'accept'), step(mark, 'drop')] }, 'accept', 'maybe: length, mark'],
  [
    'an address before a condition',
    { base: [step('maybe', 'accept'), step(length, 'drop')] },
    'accept',
    'maybe: length',
  ],
  ['a drop for an address alone', { base: [step('maybe', 'drop')] }, 'accept', 'passes: '],
  [
    'a drop for an address alone, by condition',
    { base: [call('maybe', 'jump', 'a')], a: [step(length, 'drop')] },
    'accept',
    'passes: ',
  ],
  ['a condition before a jump to a drop', { base: [call(length, 'jump', 'a')], a: [drop] }, 'accept', 'maybe: length'],
  [
    'a condition before a return that a drop follows',
    { base: [jump('a')], a: [step(length, 'return'), drop] },
    'accept',
    'maybe: length',
  ],
  [
    'a condition before a return that nothing follows',
    { base: [jump('a'), drop], a: [step(length, 'return')] },
    'accept',
    'dropped: ',
  ],
  [
    'a condition before a goto that skips a drop',
    { base: [call(length, 'goto', 'a'), drop], a: [] },
    'accept',
    'maybe: length',
  ],
  ['a condition behind an accept', { base: [step('yes', 'accept'), step(length, 'drop')] }, 'accept', 'passes: '],
  [
    'a condition in a chain that accepts anyway',
    { base: [jump('a'), drop], a: [step(length, 'accept'), step('yes', 'accept')] },
    'accept',
    'passes: ',
  ],
  ['an address that is accepted before a policy of drop', { base: [step('maybe', 'accept')] }, 'drop', 'maybe: '],
];

for (const [what, chains, policy, expected] of VERDICTS) {
  test(`evaluateChain: ${what}: ${expected}`, (t) => {
    const { outcome, notEvaluated } = evaluateChain((chain) => chains[chain] ?? [], 'base', policy === 'drop');
    t.is(`${outcome}: ${notEvaluated.join(', ')}`, expected);
  });
}
