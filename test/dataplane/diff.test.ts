import assert from 'node:assert/strict';
import test from 'ava';
import fc from 'fast-check';
import { isBlocking } from '../../dataplane/conflict.ts';
import { filterKey, type HostState, routeKey, ruleKey } from '../../dataplane/desired.ts';
import { diffHost } from '../../dataplane/diff.ts';
import type { EniNetwork, NodeNetwork, PodNetwork } from '../../dataplane/network.ts';
import { nftReplaceCommands } from '../../dataplane/nft-replace.ts';
import type { ObservedHost, ObservedRoute, ObservedRule } from '../../dataplane/observed.ts';
import { inverseOf, renderOperation } from '../../dataplane/operation.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import { asPlanned } from '../inspection/judge/sight-fixture.ts';
import { assertLaw } from '../support/law.ts';
import { bareKernel, blocks, bridge, bridgePod, eni, node, pod } from './fixtures.ts';
import { applyToModel } from './kernel-model.ts';

type World = { readonly node: NodeNetwork; readonly enis: readonly EniNetwork[]; readonly pods: readonly PodNetwork[] };

const worlds: fc.Arbitrary<World> = fc
  .record({
    ruleMode: fc.constantFrom('compact' as const, 'per-pod' as const),
    egress: fc.constantFrom('eni' as const, 'node' as const),
    rpFilterMode: fc.constantFrom('loose' as const, 'product' as const),
    nodePort: fc.boolean(),
    families: fc.constantFrom([4, 6] as const, [4] as const),
    // Others wire the Pods of the block; ours do, in either way; Pods of a former block are left, or not.
    gr: fc.constantFrom('none' as const, 'others' as const, 'bridge' as const, 'routed' as const),
    hasFormer: fc.boolean(),
    grPodNumbers: fc.uniqueArray(fc.integer({ min: 1, max: 20 }), { maxLength: 3 }),
    masquerade: fc.boolean(),
    fast: fc.constantFrom('off' as const, 'bpf' as const, 'flowtable' as const),
    eniNumbers: fc.uniqueArray(fc.integer({ min: 3, max: 9 }), { maxLength: 4 }),
    podNumbers: fc.uniqueArray(fc.integer({ min: 10, max: 40 }), { maxLength: 8 }),
  })
  .map(({ eniNumbers, podNumbers, gr, hasFormer, grPodNumbers, masquerade, fast, ...choices }) => {
    const isOurs = gr === 'bridge' || gr === 'routed';
    const podCidrs = gr === 'none' ? [] : [blocks.present, ...(hasFormer ? [blocks.former] : [])];
    const bridged = { ...bridge, ...(masquerade ? { masquerade: { exempt: ['10.0.0.0/8'] } } : {}) };
    return {
      node: {
        ...{ ...node, ...choices, podCidrs, ...(fast === 'off' ? {} : { fastPath: fast }) },
        ...(isOurs ? { bridge: { ...bridged, wiring: gr } } : {}),
      },
      enis: eniNumbers.map(eni),
      pods: [
        ...(eniNumbers.length === 0
          ? []
          : podNumbers.map((last, at) => pod(eniNumbers[at % eniNumbers.length] ?? 3, last))),
        ...(isOurs ? grPodNumbers.map((last) => bridgePod(last, last % 2 === 0 ? 'bridge' : 'routed')) : []),
        ...(isOurs && hasFormer ? [bridgePod(30, 'bridge', blocks.former)] : []),
      ],
    };
  });

const plan = (world: World): HostState => planNode(world.node, world.enis, world.pods);

const foreignRules: fc.Arbitrary<readonly ObservedRule[]> = fc.array(
  fc.record(
    {
      family: fc.constantFrom(4 as const, 6 as const),
      priority: fc.constantFrom(0, 100, 512, 1536, 32766),
      table: fc.constantFrom(254, 255, 3999, 4005, 52),
      src: fc.constantFrom('10.0.5.10/32', '192.0.2.0/24'),
      protocol: fc.constantFrom(0, 3, 186),
      shown: fc.constant('foreign'),
      more: fc.constantFrom({ tos: 16 }, { ipProto: 6 }, { flags: 2 }),
    },
    { requiredKeys: ['family', 'priority', 'table', 'src', 'protocol', 'shown'] },
  ),
  { maxLength: 5 },
);

const foreignRoutes: fc.Arbitrary<readonly ObservedRoute[]> = fc.array(
  fc.record(
    {
      table: fc.constantFrom(254, 3999, 4005, 52),
      dst: fc.constantFrom('0.0.0.0/0', '10.0.5.10/32', '198.51.100.0/24'),
      oif: fc.constantFrom(2, 5),
      oifname: fc.constant('eth0'),
      protocol: fc.constantFrom(2, 3, 186),
      shown: fc.constant('foreign'),
      more: fc.constantFrom({ tos: 16 }, { nhId: 7 }, { metrics: { mtu: 1400 } }),
    },
    { requiredKeys: ['table', 'dst', 'oif', 'oifname', 'protocol', 'shown'] },
  ),
  { maxLength: 5 },
);

// One kernel in which the links of two worlds exist, brought from bare to `from`.
function kernelOf(from: HostState, to: HostState): ObservedHost {
  const both = bareKernel({ ...from, links: [...from.links, ...to.links], sysctls: [...from.sysctls, ...to.sysctls] });
  const links = [...new Map(both.links.map((link) => [link.ifindex, link])).values()];
  return applyDiff(from, { ...both, links });
}

function applyDiff(desired: HostState, kernel: ObservedHost): ObservedHost {
  const textOf = (commands: string) =>
    desired.nft !== undefined && commands === nftReplaceCommands(desired.nft) ? desired.nft.text : `other: ${commands}`;
  return diffHost(desired, kernel).operations.reduce(
    (state, operation) => applyToModel(state, operation, textOf),
    kernel,
  );
}

test('diffHost: nothing is left to do when its operations have been applied', async (t) => {
  await assertLaw(t, (t) =>
    fc.property(worlds, worlds, (before, after) => {
      const to = plan(after);
      const kernel = applyDiff(to, kernelOf(plan(before), to));
      t.deepEqual(diffHost(to, kernel), { operations: [], conflicts: [] });
      // And nothing else of ours is there.
      t.deepEqual(kernel.rules.map(ruleKey).sort(), to.rules.map(ruleKey).sort());
      t.deepEqual(kernel.routes.map(routeKey).sort(), to.routes.map(routeKey).sort());
      t.deepEqual(kernel.filters?.ours.map(filterKey).sort(), (to.filters ?? []).map(filterKey).sort());
    }),
  );
});

test('diffHost: never touches what is foreign, whatever it is and wherever it stands', async (t) => {
  await assertLaw(t, (t) =>
    fc.property(worlds, worlds, foreignRules, foreignRoutes, (before, after, rules, routes) => {
      const to = plan(after);
      const kernel = kernelOf(plan(before), to);
      const isFree = (route: ObservedRoute) => !kernel.routes.some((ours) => routeKey(ours) === routeKey(route));
      const uniqueRoutes = [...new Map(routes.filter(isFree).map((route) => [routeKey(route), route])).values()];
      const uniqueRules = [...new Map(rules.map((rule) => [ruleKey(rule), rule])).values()].filter(
        (rule) => !kernel.rules.some((ours) => ruleKey(ours) === ruleKey(rule)),
      );
      const crowded = {
        ...kernel,
        rules: [...kernel.rules, ...uniqueRules],
        routes: [...kernel.routes, ...uniqueRoutes],
      };
      const after_ = applyDiff(to, crowded);
      for (const rule of uniqueRules) t.true(after_.rules.includes(rule));
      for (const route of uniqueRoutes) t.true(after_.routes.includes(route));
      // Doing it twice does nothing the second time, conflicts or not.
      t.deepEqual(diffHost(to, after_).operations, []);
    }),
  );
});

test('inverseOf: undoes each operation, newest first', async (t) => {
  await assertLaw(t, (t) =>
    fc.property(worlds, worlds, (before, after) => {
      const from = plan(before);
      const to = plan(after);
      const kernel = kernelOf(from, to);
      const textOf = (commands: string) =>
        [from, to].map((state) => state.nft).find((nft) => nft !== undefined && commands === nftReplaceCommands(nft))
          ?.text ?? '';
      const { operations } = diffHost(to, kernel);
      const there = operations.reduce((state, operation) => applyToModel(state, operation, textOf), kernel);
      const back = operations
        .toReversed()
        .map(inverseOf)
        .reduce((state, operation) => applyToModel(state, operation, textOf), there);
      t.deepEqual(diffHost(from, back).operations, []);
      t.deepEqual(back.sysctls, kernel.sysctls);
      t.deepEqual(back.links, kernel.links);
    }),
  );
});

test('diffHost: adds what packets need before it deletes what they used', async (t) => {
  await assertLaw(t, (t) =>
    fc.property(worlds, worlds, (before, after) => {
      const to = plan(after);
      const kinds = diffHost(to, kernelOf(plan(before), to)).operations.map(({ kind }) => kind);
      const firstDelete = kinds.findIndex((kind) => kind.startsWith('delete-'));
      if (firstDelete >= 0) t.true(kinds.slice(firstDelete).every((kind) => kind.startsWith('delete-')));
      t.true(
        kinds.lastIndexOf('delete-rule') <
          (kinds.includes('delete-route') ? kinds.indexOf('delete-route') : kinds.length),
      );
    }),
  );
});

test('diffHost: no rule of an ENI is added before rule 1024 of each block', async (t) => {
  await assertLaw(t, (t) =>
    fc.property(worlds, worlds, (before, after) => {
      const to = plan(after);
      let kernel = kernelOf(plan(before), to);
      const blocksOf = (rules: readonly { readonly priority: number; readonly dst?: string }[]) =>
        rules.filter(({ priority }) => priority === 1024).map(({ dst }) => dst);
      const isOfEni = ({ table }: { readonly table: number }) => table > 4000;
      for (const operation of diffHost(to, kernel).operations) {
        kernel = applyToModel(kernel, operation, () => '');
        if (operation.kind !== 'add-rule' || !isOfEni(operation.rule)) continue;
        const missing = blocksOf(to.rules).filter((dst) => !blocksOf(kernel.rules).includes(dst));
        t.deepEqual(missing, [], renderOperation(operation));
      }
    }),
  );
});

test('diffHost: leaves routes alone whose link is gone, and says so', (t) => {
  const desired = plan({ node, enis: [eni(5)], pods: [pod(5, 10)] });
  const kernel = bareKernel(desired);
  const { operations, conflicts } = diffHost(desired, {
    ...kernel,
    links: kernel.links.filter((link) => link.ifindex === 5),
  });
  t.deepEqual(
    operations.map(renderOperation).filter((line) => line.includes('dev eni5x10')),
    [],
  );
  t.deepEqual(
    conflicts.map(({ kind }) => kind),
    ['link'],
  );
});

test('diffHost: reports an ENI whose name nftables cannot hold, and repairs the rest', (t) => {
  const desired = plan({ node, enis: [eni(5), { ...eni(6), ifname: '\udcff\udcfe' }], pods: [] });
  const { operations, conflicts } = diffHost(desired, bareKernel(desired));
  t.deepEqual(
    conflicts.map(({ kind }) => kind),
    ['name'],
  );
  t.true(operations.map(renderOperation).some((line) => line.includes('\udcff\udcfe')));
});

test('diffHost: deletes nothing while an object cannot be read, for the plan may lack what its link needs', (t) => {
  const all = plan({ node, enis: [eni(5), eni(6)], pods: [] });
  const without = plan({ node, enis: [eni(5)], pods: [] });
  const observed = { ...asPlanned(all), nft: { text: 'of both', restore: 'of both' } };
  const kinds = diffHost(without, observed).operations.map(({ kind }) => kind);
  t.true(kinds.includes('delete-rule') && kinds.includes('delete-route') && kinds.includes('load-nft'));
  t.deepEqual(diffHost(without, { ...observed, unreadable: ['RTM_GETLINK: broken'] }).operations, []);
});

test('diffHost: reports what could not be read, and repairs what could', (t) => {
  const desired = plan({ node, enis: [eni(5)], pods: [] });
  const whole = diffHost(desired, bareKernel(desired));
  const { operations, conflicts } = diffHost(desired, { ...bareKernel(desired), unreadable: ['RTM_GETLINK: broken'] });
  t.deepEqual(operations, whole.operations);
  t.deepEqual(
    conflicts.map(({ kind }) => kind),
    ['unreadable'],
  );
});

const conflict = test.macro((t, foreign: Partial<ObservedRule>, kind: string, message: string) => {
  const desired = plan({ node, enis: [eni(5)], pods: [] });
  const rule: ObservedRule = {
    family: 4,
    priority: 100,
    table: 254,
    protocol: 3,
    shown: 'SHOWN',
    ...foreign,
  };
  const { conflicts } = diffHost(desired, { ...bareKernel(desired), rules: [rule] });
  t.deepEqual(
    conflicts.map((found) => [found.kind, found.message]),
    [[kind, message]],
  );
});

test(
  'diffHost: reports a rule equal to ours but foreign',
  conflict,
  { priority: 512, table: 3999 },
  'rule',
  'IPv4 rule "SHOWN" at priority 512 equals one of ours but has protocol 3; delete it, ours is added then',
);
test(
  'diffHost: reports a rule that looks up our table',
  conflict,
  { src: '192.0.2.0/24', table: 4005 },
  'table',
  'IPv4 rule "SHOWN" at priority 100 is not ours but looks up our table 4005; move its owner to another table',
);
test(
  'diffHost: reports a rule that uses bits of our marks',
  conflict,
  { fwmark: 0x10000, fwmask: 0xf0000 },
  'mark',
  'IPv4 rule "SHOWN" at priority 100 uses bits of our mark mask 0xff0000; choose another --eni-mark-mask or move its owner',
);
test(
  'diffHost: reports a rule at our priority',
  conflict,
  { priority: 1536, src: '192.0.2.0/24' },
  'priority',
  'IPv4 rule "SHOWN" at priority 1536 is not ours but stands at our priority; move its owner to another priority',
);

test('isBlocking: what is in the place of one Pod is no matter of the node', (t) => {
  const perPod = { ...node, ruleMode: 'per-pod' as const };
  const places: readonly (readonly [NodeNetwork, Partial<ObservedRule & ObservedRoute>, boolean])[] = [
    [node, { table: 3999, dst: '10.0.5.10/32', oif: 2 }, false],
    [node, { table: 3999, dst: '10.0.5.77/32', oif: 2 }, false],
    [node, { table: 3999, dst: '10.0.5.0/24', oif: 2 }, true],
    [node, { table: 4005, dst: '0.0.0.0/0', oif: 2 }, true],
    [node, { table: 4005, dst: '10.0.5.1/32', oif: 2 }, true],
    [perPod, { table: 254, dst: '10.0.5.10/32', oif: 2 }, false],
    [perPod, { family: 4, priority: 1536, src: '10.0.5.10/32', table: 4005 }, false],
    [perPod, { family: 4, priority: 512, dst: '10.0.5.10/32', table: 254 }, false],
    [node, { family: 4, priority: 1537, src: '10.0.5.5/32', table: 4005 }, true],
    [node, { family: 4, priority: 100, src: '10.0.5.10/32', table: 4005 }, true],
    [node, { family: 4, priority: 512, table: 3999 }, true],
    [node, { family: 4, priority: 1536, src: '192.0.2.1/32', table: 99 }, false],
  ];
  for (const [of, thing, expected] of places) {
    const desired = plan({ node: of, enis: [eni(5)], pods: [pod(5, 10)] });
    const found = { protocol: 3, shown: 'SHOWN', ...thing };
    const crowded = 'priority' in thing ? { rules: [found as ObservedRule] } : { routes: [found as ObservedRoute] };
    const { conflicts } = diffHost(desired, { ...bareKernel(desired), ...crowded });
    t.deepEqual(conflicts.map(isBlocking), [expected], JSON.stringify(thing));
  }
});

const withoutNft = ({ operations, conflicts }: ReturnType<typeof diffHost>) => ({
  operations: operations.filter(({ kind }) => kind !== 'load-nft'),
  conflicts,
});

const TWINS: Readonly<Record<string, Partial<RouteMessage>>> = {
  metrics: { metrics: { initcwnd: 10 } },
  'a next hop object': { nhId: 7 },
  'an attribute that no codec knows': { unknown: [{ type: 99, payload: new Uint8Array(4) }] },
};

for (const [what, more] of Object.entries(TWINS))
  test(`diffHost: a route of ours with ${what} is replaced, one of others is a conflict`, (t) => {
    const desired = plan({ node, enis: [eni(5)], pods: [pod(5, 10)] });
    const healthy = asPlanned(desired);
    for (const [at, route] of healthy.routes.entries()) {
      const found = { ...route, shown: 'SHOWN', more };
      const ours = withoutNft(diffHost(desired, { ...healthy, routes: healthy.routes.with(at, found) }));
      t.deepEqual(
        ours.operations.map((one) => one.kind === 'replace-route' && [routeKey(one.route), one.before?.more]),
        [[routeKey(route), more]],
      );
      t.deepEqual(ours.conflicts, []);
      const theirs = withoutNft(
        diffHost(desired, { ...healthy, routes: healthy.routes.with(at, { ...found, protocol: 3 }) }),
      );
      t.deepEqual([theirs.operations, theirs.conflicts.map(({ kind }) => kind)], [[], ['route']]);
      // One for a type of service is at another place, and needs no replacement.
      const beside = withoutNft(
        diffHost(desired, { ...healthy, routes: [...healthy.routes, { ...found, more: { tos: 16 } }] }),
      );
      t.deepEqual(
        beside.operations.map(({ kind }) => kind),
        ['delete-route'],
      );
    }
  });

test('diffHost: rules that a request to delete another would match are added once more before it', (t) => {
  const desired = plan({ node, enis: [eni(5)], pods: [] });
  const healthy = asPlanned(desired);
  const broad = { family: 4 as const, priority: 1536, table: 4005, protocol: 84, shown: '' };
  const [deletion, ...rest] = withoutNft(
    diffHost(desired, { ...healthy, rules: [...healthy.rules, broad] }),
  ).operations;
  t.deepEqual(rest, []);
  t.is(deletion?.kind, 'delete-rule');
  const keeps = deletion?.kind === 'delete-rule' ? deletion.keeps?.map(({ fwmark }) => fwmark) : undefined;
  t.deepEqual(keeps, [0x50000]);
  // Before it in the kernel's order, it is the first match itself.
  const [first] = withoutNft(diffHost(desired, { ...healthy, rules: [broad, ...healthy.rules] })).operations;
  t.deepEqual(first, { kind: 'delete-rule', rule: { family: 4, priority: 1536, table: 4005 } });
});

test('diffHost: says nothing of rules that do not concern us', (t) => {
  const desired = plan({ node, enis: [eni(5)], pods: [] });
  const foreign = [
    { priority: 0, table: 255 },
    { priority: 32766, table: 254 },
    { priority: 9, table: 2004, fwmark: 0x200, fwmask: 0xf00 },
  ].map((rule): ObservedRule => ({ family: 4, protocol: 2, shown: '', ...rule }));
  t.deepEqual(diffHost(desired, { ...bareKernel(desired), rules: foreign }).conflicts, []);
});

for (const [what, other, expected] of [
  ['leads the same way, as that of cilium-agent', {}, []],
  ['leads elsewhere', { oif: 7 }, ['route']],
  ['has more to it', { more: { metrics: { mtu: 1400 } } }, ['route']],
] as const)
  test(`diffHost: a foreign route in main in place of a Pod's that ${what}`, (t) => {
    const desired = plan({ node: { ...node, ruleMode: 'per-pod' }, enis: [eni(5)], pods: [pod(5, 10)] });
    const ours = desired.routes.find(({ table }) => table === 254);
    assert(ours !== undefined);
    const routes = [{ ...ours, protocol: 2, shown: 'SHOWN', ...other }];
    const { operations, conflicts } = diffHost(desired, { ...bareKernel(desired), routes });
    t.deepEqual(
      conflicts.map(({ kind }) => kind),
      [...expected],
    );
    // It is left alone in any case.
    t.false(operations.some((one) => one.kind === 'replace-route' && routeKey(one.route) === routeKey(ours)));
  });

test('diffHost: reports addresses that break anti-spoofing or lead the node out of an ENI', (t) => {
  const desired = plan({ node, enis: [eni(5)], pods: [pod(5, 10)] });
  const addresses = [
    { ifindex: 5010, ifname: 'eni5x10', prefix: '169.254.1.1/32' },
    { ifindex: 5, ifname: 'eth5', prefix: '10.0.5.5/24' },
  ];
  t.deepEqual(
    diffHost(desired, { ...bareKernel(desired), addresses }).conflicts.map(({ message }) => message),
    [
      'eni5x10 has the IPv4 address 169.254.1.1/32: its Pod could forge sources; delete the address and stop what adds it',
      "eth5 has 10.0.5.5/24, whose connected route leads the node's traffic out of the ENI; configure NetworkManager, cloud-init or the DHCP client to leave eth5 alone",
    ],
  );
});
