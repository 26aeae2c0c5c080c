import test from 'ava';
import type { NftFacts } from './kernel-facts.ts';
import { findNftViolations } from './nft-violations.ts';

const SCOPE = { isCompact: false, isNodePort: false, mask: 0x00ff0000, enis: [{ table: 4003, mark: 0x10000 }] };
const SOURCE_CHECK = '[{"match":{"left":{"fib":{"result":"oif"}}}},{"drop":null}]';

/** A table as the agent writes it in per-pod mode, with more rules in some chains. */
function tableWith(
  more: Readonly<Record<string, string>>,
  others: Readonly<Record<string, readonly string[]>> = {},
): NftFacts {
  const rules = { eni_4003: [SOURCE_CHECK], prerouting: ['[{"vmap":{}}]'], ...others };
  return {
    groups: [[4003, 'eni_4003']],
    chains: Object.keys(rules),
    rules: new Map(
      Object.entries(rules).map(([chain, own]) => [chain, [...own, ...(chain in more ? [more[chain] ?? ''] : [])]]),
    ),
    markStatements: new Map(),
  };
}

test('findNftViolations: finds nothing in a table as the agent writes it', (t) => {
  t.deepEqual(findNftViolations(SCOPE, tableWith({})), []);
});

test('findNftViolations: of the chain `closing` only what has no hop left is dropped', (t) => {
  const dropped = (hops: number) =>
    `[{"match":{"left":{"payload":{"field":"flags"}},"right":"fin"}},{"match":{"op":"==","left":{"payload":{"protocol":"ip","field":"ttl"}},"right":${hops}}},{"drop":null}]`;
  t.deepEqual(findNftViolations(SCOPE, tableWith({}, { closing: [dropped(0)] })), []);
  t.is(findNftViolations(SCOPE, tableWith({}, { closing: [dropped(1)] })).length, 1);
});

for (const verdict of ['drop', 'accept', 'reject', 'queue']) {
  for (const chain of ['prerouting', 'eni_4003']) {
    test(`findNftViolations: names a foreign ${verdict} in our chain ${chain}`, (t) => {
      const found = findNftViolations(SCOPE, tableWith({ [chain]: `[{"${verdict}":null}]` }));
      t.is(found.length, 1);
      t.true(found[0]?.startsWith(`nft: chain ${chain} has a verdict that we do not write`));
    });
  }
}
