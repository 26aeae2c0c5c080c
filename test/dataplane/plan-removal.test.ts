import test from 'ava';
import fc from 'fast-check';
import { type RouteState, ruleKey } from '../../dataplane/desired.ts';
import type { BridgePodNetwork, EniPodNetwork, NodeNetwork } from '../../dataplane/network.ts';
import { renderOperation } from '../../dataplane/operation.ts';
import { planPod } from '../../dataplane/plan-pod.ts';
import { planRemoval, removalsOf } from '../../dataplane/plan-removal.ts';
import { podCidrOf } from '../../dataplane/pod-cidr.ts';
import { assertLaw } from '../support/law.ts';
import { bridge, bridgePod, node, pod } from './fixtures.ts';

const NIC = {
  mac: '02:00:00:00:00:09',
  hostName: 'eth9',
  mtu: 1500,
  addresses: [{ ip: '10.0.5.10', gateway: '10.0.5.1', prefixLength: 24 }],
};

const nodes: fc.Arbitrary<NodeNetwork> = fc
  .record({
    egress: fc.constantFrom('eni' as const, 'node' as const),
    nodePort: fc.boolean(),
    gr: fc.constantFrom(
      { podCidrs: [] },
      { podCidrs: [podCidrOf('172.31.0.0/24')] },
      { podCidrs: [podCidrOf('172.31.0.0/24')], bridge },
    ),
    primary: fc.constantFrom([], ['10.0.0.2'], ['10.0.0.2', 'fd00:10::2'], ['10.0.0.3']),
  })
  .map(({ primary, gr, ...more }) => ({ ...node, ...more, ...gr, primary: { ...node.primary, addresses: primary } }));

const pods: fc.Arbitrary<EniPodNetwork> = fc
  .record({
    kind: fc.constantFrom('route-eni' as const, 'ipam' as const, 'direct-eni' as const),
    families: fc.constantFrom([0], [1], [0, 1]),
    last: fc.integer({ min: 10, max: 40 }),
  })
  .map(({ kind, families, last }) => {
    const made = pod(5, last);
    const { ifindex: _unknown, ...hostVeth } = made.hostVeth;
    const ips = families.flatMap((at) => made.ips[at] ?? []);
    const foreign = kind === 'ipam' && last % 2 === 0 ? { hasForeignRules: true as const } : {};
    return { ...made, kind, hostVeth, ips, ...foreign, ...(kind === 'direct-eni' ? { nic: NIC } : {}) };
  });

const grPods: fc.Arbitrary<BridgePodNetwork> = fc
  .record({ wiring: fc.constantFrom('bridge' as const, 'routed' as const), last: fc.integer({ min: 1, max: 40 }) })
  .map(({ wiring, last }) => {
    const made = bridgePod(last, wiring);
    const { ifindex: _unknown, ...hostVeth } = made.hostVeth;
    return { ...made, hostVeth };
  });

const links = fc.uniqueArray(fc.integer({ min: 100, max: 110 }), { maxLength: 2 });

/** The fields by which the kernel finds a route to delete. */
const keyOf = ({ table, dst, oif, gateway, scope, type, metric }: RouteState) =>
  `${type ?? ''} ${table} ${dst} ${oif} ${gateway ?? ''} ${scope ?? ''} ${metric ?? ''}`;

test('planRemoval: has every rule and route of the plan, in both rule modes, and nothing else', async (t) => {
  await assertLaw(t, (t) =>
    // The node's addresses may have changed since ADD.
    fc.property(nodes, nodes, fc.oneof(pods, grPods), links, (atAdd, atDel, pod, ifindexes) => {
      const removal = planRemoval(atDel, pod, ifindexes);
      const plans = (['compact', 'per-pod'] as const).flatMap((ruleMode) =>
        [undefined, ...ifindexes].map((ifindex) => {
          const hostVeth = { ...pod.hostVeth, ...(ifindex === undefined ? {} : { ifindex }) };
          return planPod({ ...atAdd, ruleMode }, { ...pod, hostVeth }).host;
        }),
      );
      const sorted = (keys: readonly string[]) => [...new Set(keys)].sort();
      t.deepEqual(removal.rules.map(ruleKey).sort(), sorted(plans.flatMap(({ rules }) => rules.map(ruleKey))));
      t.deepEqual(removal.routes.map(keyOf).sort(), sorted(plans.flatMap(({ routes }) => routes.map(keyOf))));
      t.true(removal.routes.every(({ prefsrc }) => prefsrc === undefined));
    }),
  );
});

test('planRemoval: deletes the routes of a dual-stack Pod from both tables, on its link alone', (t) => {
  const { routes } = planRemoval(node, pod(5, 10), [5010]);
  t.deepEqual(
    routes.map(({ table, dst, oif }) => `${dst} ${oif} ${table}`),
    [
      '10.0.5.10/32 5010 3999',
      'fd00:10:0:5::10/128 5010 3999',
      '10.0.5.10/32 0 254',
      'fd00:10:0:5::10/128 0 254',
      '10.0.5.10/32 5010 254',
      'fd00:10:0:5::10/128 5010 254',
    ],
  );
});

test('removalsOf: ends what leads to the Pod first, and last what leads its own packets to the ENI', (t) => {
  const per = { ...node, ruleMode: 'per-pod' as const };
  t.deepEqual(removalsOf(planPod(per, { ...pod(5, 10), ips: ['10.0.5.10'] }).host).map(renderOperation), [
    'ip -4 rule del pref 512 to 10.0.5.10/32 lookup main proto 84',
    'ip route del 10.0.5.10/32 dev eni5x10 proto 84 scope link',
    'ip route del unreachable 10.0.5.10/32 proto 84 metric 2147483645',
    'ip -4 rule del pref 1536 from 10.0.5.10/32 lookup 4005 proto 84',
  ]);
});

test('planRemoval: of a Pod on the bridge nothing is left but its link', (t) => {
  t.deepEqual(planRemoval({ ...node, bridge }, bridgePod(10), [70_010]), { rules: [], routes: [] });
});

test('planRemoval: deletes the routes of a routed Pod from both tables, and not rule 1024 of its block', (t) => {
  const { rules, routes } = planRemoval({ ...node, bridge }, bridgePod(10, 'routed'), [70_010]);
  t.deepEqual(rules, []);
  t.deepEqual(
    routes.map(({ table, dst, oif }) => `${dst} ${oif} ${table}`),
    ['172.31.0.75/32 70010 3999', '172.31.0.75/32 70010 254'],
  );
});
