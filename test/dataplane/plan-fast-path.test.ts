import test from 'ava';
import type { NodeNetwork, PodNetwork } from '../../dataplane/network.ts';
import { planFastPath } from '../../dataplane/plan-fast-path.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { planPod } from '../../dataplane/plan-pod.ts';
import { sysctlName } from '../../sysctl/sysctl-key.ts';
import { blocks, bridge, bridgePod, eni, node, pod } from './fixtures.ts';

const fast: NodeNetwork = { ...node, fastPath: 'bpf' };

const filtersOf = (pods: readonly PodNetwork[], of: NodeNetwork = fast, enis = [eni(5)]) =>
  planFastPath(of, enis, pods).filters?.map(({ ifname, direction, program }) => `${ifname} ${direction} ${program}`);

const ENI = ['eth5 ingress fast', 'eth5 egress learn'];

test('planFastPath: both programs on an ENI and on the links of its Pods, in both rule modes', (t) => {
  const wanted = [...ENI, 'eni5x10 ingress fast', 'eni5x10 egress learn'];
  t.deepEqual(filtersOf([pod(5, 10)]), wanted);
  t.deepEqual(filtersOf([pod(5, 10)], { ...fast, ruleMode: 'per-pod', egress: 'node' }), wanted);
});

for (const [what, one] of [
  ['on the bridge', bridgePod(3)],
  ['GlobalRoute and routed', bridgePod(3, 'routed')],
  ['wired by another plugin', { ...pod(5, 10), kind: 'ipam' }],
  ['with an exclusive ENI', { ...pod(5, 10), kind: 'direct-eni' }],
  ['without its link', { ...pod(5, 10), hostVeth: { name: 'eni5x10', mac: '02:00:00:00:00:01' } }],
  ['whose ADD may go on', { ...pod(5, 10), isNew: true }],
] as const satisfies readonly (readonly [string, PodNetwork])[])
  test(`planFastPath: the link of a Pod ${what} has none`, (t) => {
    t.deepEqual(filtersOf([one]), ENI);
  });

test('planFastPath: an ENI whose Pods another program wires has none', (t) => {
  t.deepEqual(filtersOf([], fast, [{ ...eni(5), podIps: ['10.0.5.9'] }]), []);
});

test('planFastPath: the setting of connection tracking in both kinds; off, nothing', (t) => {
  const settings = (fastPath?: 'bpf' | 'flowtable') =>
    planFastPath({ ...node, ...(fastPath && { fastPath }) }, [eni(5)], []).sysctls.map(
      ({ key, value }) => `${sysctlName(key)}=${value}`,
    );
  t.deepEqual(settings('bpf'), ['net.netfilter.nf_conntrack_tcp_be_liberal=1']);
  t.deepEqual(settings('flowtable'), settings('bpf'));
  t.deepEqual(settings(), []);
  t.is(planFastPath({ ...node, fastPath: 'flowtable' }, [eni(5)], []).filters, undefined);
});

const devicesOf = (pods: readonly PodNetwork[], enis = [eni(5)]) =>
  planFastPath({ ...node, fastPath: 'flowtable' }, enis, pods).flowtable?.devices.map(({ ifname }) => ifname);

test('planFastPath: a flowtable has the primary interface, ENIs and the links of their Pods that exist and are not new', (t) => {
  const { primary } = node;
  t.deepEqual(devicesOf([pod(5, 10), pod(5, 11)]), [primary.ifname, 'eth5', 'eni5x10', 'eni5x11']);
  const without: readonly PodNetwork[] = [
    bridgePod(3),
    { ...pod(5, 10), kind: 'ipam' },
    { ...pod(5, 10), kind: 'direct-eni' },
    { ...pod(5, 10), hostVeth: { name: 'eni5x10', mac: '02:00:00:00:00:01' } },
    { ...pod(5, 10), isNew: true },
  ];
  t.deepEqual(devicesOf(without), [primary.ifname, 'eth5']);
  t.deepEqual(devicesOf([], [{ ...eni(5), podIps: ['10.0.5.9'] }]), [primary.ifname]);
});

test('planFastPath: a flowtable learns packets from the Pods of shared ENIs, whichever Pods there are', (t) => {
  const plan = (pods: readonly PodNetwork[]) =>
    planFastPath({ ...node, fastPath: 'flowtable' }, [eni(5), eni(6), { ...eni(7), podIps: [] }], pods).flowtable?.text;
  t.regex(plan([]) ?? '', new RegExp(`iifgroup \\{ ${eni(5).table}, ${eni(6).table} \\} .* flow add @ft`));
  t.is(plan([pod(5, 10)]), plan([]));
});

test('planNode: has the chain that lets flows be learned with bpf only, and the same of all else', (t) => {
  const world = [[eni(5)], [pod(5, 10), bridgePod(3)]] as const;
  const gr = { podCidrs: [blocks.present], bridge };
  const [off, on, table] = ([undefined, 'bpf', 'flowtable'] as const).map((fastPath) =>
    planNode({ ...node, ...gr, ...(fastPath && { fastPath }) }, ...world),
  );
  const chain =
    / chain learn \{\n {2}type filter hook forward priority filter \+ 10; policy accept;\n {2}oifgroup \{ 4005 \} .*\n {2}oifname \{ "eth5" \} .*\n.*\n \}\n chain sent \{\n.*\n.*\n.*\n \}\n chain closing \{\n.*\n.*\n.*\n.*\n \}\n chain leaving \{\n.*\n.*\n.*\n \}\n/;
  t.regex(on?.nft?.text ?? '', chain);
  t.is(on?.nft?.text.replace(chain, ''), off?.nft?.text);
  t.is(table?.nft?.text, off?.nft?.text);
  const { filters: _filters, nft: _nft, sysctls, ...rest } = on ?? planNode(node, [], []);
  t.like(off, rest);
  t.deepEqual(sysctls.slice(0, -1), off?.sysctls);
});

test('planNode: refuses a fast path without nftables, and one whose mark is of the ENIs’ mask', (t) => {
  const refused = (more: Partial<NodeNetwork>) =>
    t.throws(() => planNode({ ...fast, ...more }, [], []), { name: 'PlanError' })?.message;
  t.regex(refused({ ruleMode: 'per-pod', nftables: false }) ?? '', /the fast path needs nftables/);
  t.regex(refused({ eniMarkMask: 0xff00 << 0 }) ?? '', /bit 0x100 is the fast path's/);
});

test('planPod: plans no filters: an ADD and a CHECK are without them', (t) => {
  t.false('filters' in planPod(fast, pod(5, 10)).host);
});
