import test from 'ava';
import { diffHost } from '../../dataplane/diff.ts';
import { planMigration } from '../../dataplane/migration.ts';
import type { RuleMode } from '../../dataplane/network.ts';
import { nftReplaceCommands } from '../../dataplane/nft-replace.ts';
import { renderOperation } from '../../dataplane/operation.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { bareKernel, blocks, bridge, bridgePod, eni, node, pod } from './fixtures.ts';
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
  [
    'ip route del 10.0.5.10/32 dev eni5x10 proto 84 scope link',
    'ip route del unreachable 10.0.5.10/32 proto 84 metric 2147483645',
  ],
]);

test(
  'planMigration: compact to per-pod stops marking only when the per-pod rules are there',
  stages,
  'compact',
  'per-pod',
  [
    [
      'ip route replace 10.0.5.10/32 dev eni5x10 proto 84 scope link',
      'ip route replace unreachable 10.0.5.10/32 proto 84 metric 2147483645',
    ],
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

test('planMigration: hairpin is on every port before a bridge of another program leaves promiscuous mode', (t) => {
  const network = { ...node, podCidrs: [blocks.present], bridge };
  const after = planNode(network, [eni(5)], [bridgePod(10), bridgePod(11)]);
  const bare = bareKernel(after);
  const made = after.links.find(({ kind }) => kind === 'bridge');
  if (made === undefined) return t.fail();
  const theirs = { ...made, isUp: true, mtu: 1500, group: 0, isPromisc: true };
  const steps = planMigration(after, { ...bare, links: [...bare.links, theirs] });
  const what = steps.map((step) => step.what);
  const hairpin = what.indexOf('hairpin on every port, before the bridge leaves promiscuous mode');
  t.deepEqual(steps[hairpin]?.operations.length, 2);
  t.is(what[hairpin + 1], 'the bridge leaves promiscuous mode');
});

test('planMigration: rules of blocks come in a stage of their own before all others', (t) => {
  const network = { ...node, ruleMode: 'per-pod' as const, families: [4] as const, podCidrs: [blocks.present], bridge };
  const after = planNode(network, [eni(5)], [pod(5, 10), bridgePod(10)]);
  const [first, ...rest] = planMigration(after, bareKernel(after));
  t.is(first?.what, 'rules of the blocks of GlobalRoute Pods, before any rule of an ENI');
  t.deepEqual(first?.operations.map(renderOperation), [
    'ip -4 rule add pref 1024 to 172.31.0.64/26 lookup main proto 84',
  ]);
  const all = [...(first?.operations ?? []), ...rest.flatMap(({ operations }) => operations)];
  const sorted = (operations: typeof all) => operations.map(renderOperation).sort();
  t.deepEqual(sorted(all), sorted([...diffHost(after, bareKernel(after)).operations]));
});
