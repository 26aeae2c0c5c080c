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
  t.is(evaluateChain(stepsOf, '0'), 'through');
  t.is(asked.size, 16);
  t.deepEqual(new Set(asked.values()), new Set([1]));
});

test('evaluateChain: finds the drop behind a chain that was passed before', (t) => {
  const chains: Record<string, readonly RuleStep[]> = { base: [jump('a'), jump('b')], a: [], b: [jump('a'), drop] };
  t.is(
    evaluateChain((chain) => chains[chain] ?? [], 'base'),
    'dropped',
  );
});

test('evaluateChain: decides nothing where chains lead in a circle, or deeper than the kernel goes', (t) => {
  t.is(
    evaluateChain(() => [jump('base'), drop], 'base'),
    'maybe',
  );
  t.is(
    evaluateChain((chain) => [jump(`${chain}x`)], 'base'),
    'maybe',
  );
});
