import test from 'ava';
import { diffHost } from '../../dataplane/diff.ts';
import { planMigration } from '../../dataplane/migration.ts';
import type { RuleMode } from '../../dataplane/network.ts';
import { nftReplaceCommands } from '../../dataplane/nft-table.ts';
import { renderOperation } from '../../dataplane/operation.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { bareKernel, eni, node, pod } from './fixtures.ts';
import { applyToModel } from './kernel-model.ts';

const planOf = (ruleMode: RuleMode) =>
  planNode(
    { ...node, ruleMode, families: [4] },
    [{ ...eni(5), addresses: eni(5).addresses.slice(0, 1) }],
    [{ ...pod(5, 10), ips: ['10.0.5.10'] }],
  );

const stages = test.macro((t, from: RuleMode, to: RuleMode, expected: readonly (readonly string[])[]) => {
  const before = planOf(from);
  const after = planOf(to);
  const kernel = diffHost(before, bareKernel(before)).operations.reduce(
    (state, operation) => applyToModel(state, operation, () => before.nft?.text ?? ''),
    bareKernel(before),
  );
  t.deepEqual(
    planMigration(after, kernel).map(({ operations }) =>
      operations.map((operation) => (operation.kind === 'load-nft' ? 'nft' : renderOperation(operation))),
    ),
    expected,
  );
  t.not(nftReplaceCommands(after.nft ?? { text: '' }), nftReplaceCommands(before.nft ?? { text: '' }));
});

test('planMigration: per-pod to compact marks packets only when their new way is there', stages, 'per-pod', 'compact', [
  ['ip route replace 10.0.5.10/32 dev eni5x10 table 3999 proto 84 scope link'],
  [
    'ip -4 rule add pref 512 lookup 3999 proto 84',
    'ip -4 rule add pref 1536 fwmark 0x50000/0xff0000 lookup 4005 proto 84',
  ],
  ['nft'],
  [
    'ip -4 rule del pref 512 to 10.0.5.10/32 lookup main proto 84',
    'ip -4 rule del pref 1536 from 10.0.5.10/32 lookup 4005 proto 84',
  ],
  ['ip route del 10.0.5.10/32 dev eni5x10 proto 84 scope link'],
]);

test(
  'planMigration: compact to per-pod stops marking only when the per-pod rules are there',
  stages,
  'compact',
  'per-pod',
  [
    ['ip route replace 10.0.5.10/32 dev eni5x10 proto 84 scope link'],
    [
      'ip -4 rule add pref 512 to 10.0.5.10/32 lookup main proto 84',
      'ip -4 rule add pref 1536 from 10.0.5.10/32 lookup 4005 proto 84',
    ],
    ['nft'],
    [
      'ip -4 rule del pref 512 lookup 3999 proto 84',
      'ip -4 rule del pref 1536 fwmark 0x50000/0xff0000 lookup 4005 proto 84',
    ],
    ['ip route del 10.0.5.10/32 dev eni5x10 table 3999 proto 84 scope link'],
  ],
);
