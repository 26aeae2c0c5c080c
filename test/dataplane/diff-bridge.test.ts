import test from 'ava';
import type { HostState } from '../../dataplane/desired.ts';
import { diffHost } from '../../dataplane/diff.ts';
import type { ObservedHost } from '../../dataplane/observed.ts';
import { renderOperation } from '../../dataplane/operation.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { bareKernel, blocks, bridge, bridgePod, eni, node, pod } from './fixtures.ts';
import { applyToModel } from './kernel-model.ts';

const network = { ...node, podCidrs: [blocks.present], bridge };
const desired = planNode(network, [eni(5)], [pod(5, 10), bridgePod(10), bridgePod(11)]);

const reached = (state: HostState): ObservedHost =>
  diffHost(state, bareKernel(state)).operations.reduce(
    (kernel, operation) => applyToModel(kernel, operation, () => state.nft?.text ?? ''),
    bareKernel(state),
  );

const harm = test.macro((t, damage: (kernel: ObservedHost) => ObservedHost, expected: readonly string[]) => {
  const damaged = damage(reached(desired));
  t.deepEqual(diffHost(desired, damaged).operations.map(renderOperation), expected);
});

test('diffHost: the settings of a bridge that this pass makes are no conflict', (t) => {
  const bare = bareKernel(desired);
  const { operations, conflicts } = diffHost(desired, { ...bare, sysctls: withoutBridge(bare.sysctls) });
  t.true(operations.some((operation) => operation.kind === 'make-bridge'));
  t.deepEqual(
    conflicts.filter(({ kind }) => kind === 'sysctl'),
    [],
  );
});

function withoutBridge(sysctls: ObservedHost['sysctls']): ObservedHost['sysctls'] {
  return new Map([...sysctls].filter(([name]) => !name.includes('cbr0')));
}

const link = (kernel: ObservedHost, ifname: string, change: object): ObservedHost => ({
  ...kernel,
  links: kernel.links.map((one) => (one.ifname === ifname ? { ...one, ...change } : one)),
});

test('diffHost: a node with GlobalRoute Pods as planned needs nothing', harm, (kernel) => kernel, []);
test(
  'diffHost: the bridge is made again with all that was on it, its ports first',
  harm,
  (kernel) => ({
    ...kernel,
    links: kernel.links
      .filter(({ ifname }) => ifname !== 'cbr0')
      .map(({ master, oddPort: _off, ...one }) =>
        master === bridge.ifindex ? one : { ...one, ...(master && { master }) },
      ),
    addresses: kernel.addresses.filter(({ ifname }) => ifname !== 'cbr0'),
    routes: kernel.routes.filter(({ oifname }) => oifname !== 'cbr0'),
    sysctls: new Map([...kernel.sysctls].filter(([name]) => !name.includes('cbr0'))),
  }),
  [
    'ip link add cbr0 index 1000001024 address 0a:58:00:00:00:01 type bridge',
    'sysctl -w net.ipv4.conf.cbr0.rp_filter=1',
    'sysctl -w net.ipv4.conf.cbr0.forwarding=1',
    'sysctl -w net.ipv4.conf.cbr0.proxy_arp=1',
    'sysctl -w net.ipv6.conf.cbr0.accept_ra=0',
    'ip link set dev cbr0 mtu 1500 alias tke-eni-bridge up',
    'ip link set dev grx10 master if1000001024',
    'ip link set dev grx11 master if1000001024',
    'ip link set dev grx10 type bridge_slave hairpin on',
    'ip link set dev grx11 type bridge_slave hairpin on',
    'ip address add 172.31.0.65/26 dev cbr0',
    'ip route replace 172.31.0.64/26 dev cbr0 proto 84 scope link src 172.31.0.65 metric 2147483646',
  ],
);
test('diffHost: the bridge is set up again', harm, (kernel) => link(kernel, 'cbr0', { isUp: false }), [
  'ip link set dev cbr0 up',
]);
test('diffHost: the bridge leaves the group of an ENI', harm, (kernel) => link(kernel, 'cbr0', { group: 4005 }), [
  'ip link set dev cbr0 group 0',
]);
test(
  'diffHost: hairpin is on for all ports before the bridge leaves promiscuous mode',
  harm,
  (kernel) => link(link(kernel, 'cbr0', { isPromisc: true }), 'grx10', { oddPort: { hairpin: false } }),
  ['ip link set dev grx10 type bridge_slave hairpin on', 'ip link set dev cbr0 promisc off'],
);
test(
  'diffHost: a port that is in another bridge comes back, with hairpin, which a new port lacks',
  harm,
  (kernel) => link(kernel, 'grx10', { master: 99, oddPort: {} }),
  ['ip link set dev grx10 master if1000001024', 'ip link set dev grx10 type bridge_slave hairpin on'],
);
test(
  'diffHost: rule 1024 is repaired before anything else',
  harm,
  (kernel) => ({
    ...link(kernel, 'cbr0', { isUp: false }),
    rules: kernel.rules.filter(({ priority }) => priority !== 1024 && priority !== 1537),
    sysctls: new Map([...kernel.sysctls, ['net.ipv4.ip_forward', '0']]),
  }),
  [
    'ip -4 rule add pref 1024 to 172.31.0.64/26 lookup main proto 84',
    'sysctl -w net.ipv4.ip_forward=1',
    'ip link set dev cbr0 up',
    'ip -4 rule add pref 1537 from 10.0.5.5/32 lookup 4005 proto 84',
    'ip -6 rule add pref 1537 from fd00:10:0:5::5/128 lookup 4005 proto 84',
  ],
);
test(
  'diffHost: bridge-nf-call-iptables is set again',
  harm,
  (kernel) => ({ ...kernel, sysctls: new Map([...kernel.sysctls, ['net.bridge.bridge-nf-call-iptables', '0']]) }),
  ['sysctl -w net.bridge.bridge-nf-call-iptables=1'],
);
test(
  'diffHost: the gateway of a block that is no longer here goes, at the end',
  harm,
  (kernel) => ({
    ...link(kernel, 'cbr0', { isUp: false }),
    addresses: [...kernel.addresses, { ifindex: bridge.ifindex, ifname: 'cbr0', prefix: '172.31.7.1/26' }],
  }),
  ['ip link set dev cbr0 up', 'ip address del 172.31.7.1/26 dev cbr0'],
);

test(
  'diffHost: the gateway of a block stays while the bridge has a port of another program, whose Pod may need it',
  harm,
  (kernel) => ({
    ...kernel,
    addresses: [...kernel.addresses, { ifindex: bridge.ifindex, ifname: 'cbr0', prefix: '172.31.7.1/26' }],
    links: [
      ...kernel.links,
      { ifindex: 99, ifname: 'veth99', kind: 'veth', isUp: true, mtu: 1500, group: 0, master: bridge.ifindex },
    ],
  }),
  [],
);

test('diffHost: the rule of another program for a block is no conflict, and ours is added beside it', (t) => {
  const kernel = reached(desired);
  const theirs = kernel.rules.map((rule) => (rule.priority === 1024 ? { ...rule, protocol: 0 } : rule));
  const { operations, conflicts } = diffHost(desired, { ...kernel, rules: theirs });
  t.deepEqual(operations.map(renderOperation), ['ip -4 rule add pref 1024 to 172.31.0.64/26 lookup main proto 84']);
  t.deepEqual(conflicts, []);
});

test('diffHost: an address of the bridge that is no gateway is reported and left', (t) => {
  const kernel = reached(desired);
  const addresses = [...kernel.addresses, { ifindex: bridge.ifindex, ifname: 'cbr0', prefix: '192.168.9.9/24' }];
  const { operations, conflicts } = diffHost(desired, { ...kernel, addresses });
  t.deepEqual(operations, []);
  t.deepEqual(
    conflicts.map(({ message }) => message),
    [
      'cbr0 has 192.168.9.9/24, which is in no block of this node: packets to that network stay on the bridge; delete the address and stop what adds it',
    ],
  );
});

test('diffHost: a link of another kind in the place of the bridge is reported and left, and its ports stay out', (t) => {
  const bare = bareKernel(desired);
  const other = { ifindex: 9, ifname: 'cbr0', kind: 'dummy', isUp: true, mtu: 1500, group: 0 };
  const { operations, conflicts } = diffHost(desired, { ...bare, links: [...bare.links, other] });
  t.deepEqual(
    operations
      .map(renderOperation)
      .filter((line) => line.includes('cbr0') || line.includes('master') || line.includes('hairpin')),
    [],
  );
  t.true(
    conflicts.some(
      ({ kind, message }) => kind === 'link' && message.startsWith('a link of kind dummy has the name cbr0'),
    ),
  );
});

test('diffHost: a kernel without br_netfilter is no conflict', (t) => {
  const kernel = reached(desired);
  const sysctls = new Map([...kernel.sysctls].filter(([name]) => !name.startsWith('net.bridge.')));
  t.deepEqual(diffHost(desired, { ...kernel, sysctls }), { operations: [], conflicts: [] });
});
