import test from 'ava';
import type { HostState } from '../../dataplane/desired.ts';
import type { BridgeNetwork, BridgePodNetwork, NodeNetwork } from '../../dataplane/network.ts';
import { planBridgePod } from '../../dataplane/plan-bridge-pod.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { podCidrOf } from '../../dataplane/pod-cidr.ts';
import { blocks, bridge, bridgePod, eni, node, pod, renderFromBare } from './fixtures.ts';

const ipv4: NodeNetwork = { ...node, families: [4], podCidrs: [blocks.present], bridge };
const eni4 = { ...eni(5), addresses: eni(5).addresses.slice(0, 1) };

const golden = test.macro((t, plan: HostState, lines: string) => {
  t.deepEqual(renderFromBare(plan), lines.trim().split(/\n\s*/));
});

test(
  'planNode: a bridge is made with its address, and a Pod is a port with hairpin',
  golden,
  planNode(ipv4, [], [bridgePod(10)]),
  `
  ip -4 rule add pref 1024 to 172.31.0.64/26 lookup main proto 84
  ip link add cbr0 index 1000001024 address 0a:58:00:00:00:01 type bridge
  sysctl -w net.ipv4.ip_forward=1
  sysctl -w net.ipv4.conf.eth0.rp_filter=2
  sysctl -w net.bridge.bridge-nf-call-iptables=1
  sysctl -w net.ipv4.conf.cbr0.rp_filter=1
  sysctl -w net.ipv4.conf.cbr0.forwarding=1
  sysctl -w net.ipv4.conf.cbr0.proxy_arp=1
  sysctl -w net.ipv6.conf.cbr0.accept_ra=0
  ip link set dev cbr0 mtu 1500 alias tke-eni-bridge up
  ip link set dev grx10 alias tke-eni/sandbox-gr-172.31.0.64/26-10/eth0 master if1000001024 up
  ip link set dev grx10 type bridge_slave hairpin on
  ip address add 172.31.0.65/26 dev cbr0
  ip route replace 172.31.0.64/26 dev cbr0 proto 84 scope link src 172.31.0.65 metric 2147483646
  ip route replace unreachable 172.31.0.64/26 proto 84 metric 2147483647
  ip -4 rule add pref 512 lookup 3999 proto 84
  ip -4 rule add pref 1280 fwmark 0x80/0x80 lookup main proto 84
  ip -4 rule add pref 1280 lookup 4001 proto 84`,
);

test(
  'planNode: a routed Pod has a route and neither bridge nor rule, in compact mode',
  golden,
  planNode({ ...ipv4, bridge: { ...bridge, wiring: 'routed' } }, [], [bridgePod(10, 'routed')]),
  `
  ip -4 rule add pref 1024 to 172.31.0.64/26 lookup main proto 84
  sysctl -w net.ipv4.ip_forward=1
  sysctl -w net.ipv4.conf.eth0.rp_filter=2
  sysctl -w net.ipv4.conf.grx10.rp_filter=1
  sysctl -w net.ipv4.conf.grx10.forwarding=1
  sysctl -w net.ipv6.conf.grx10.accept_ra=0
  ip link set dev grx10 alias tke-eni/sandbox-gr-172.31.0.64/26-10/eth0 up
  ip route replace 172.31.0.75/32 dev grx10 table 3999 proto 84 scope link
  ip route replace unreachable 172.31.0.64/26 proto 84 metric 2147483647
  ip -4 rule add pref 512 lookup 3999 proto 84
  ip -4 rule add pref 1280 fwmark 0x80/0x80 lookup main proto 84
  ip -4 rule add pref 1280 lookup 4001 proto 84`,
);

test('planNode: a routed Pod has its route in main in per-pod mode, and no rule of its own', (t) => {
  const routed = { ...ipv4, ruleMode: 'per-pod' as const, bridge: { ...bridge, wiring: 'routed' as const } };
  const lines = renderFromBare(planNode(routed, [], [bridgePod(10, 'routed')]));
  t.deepEqual(
    lines.filter((line) => line.includes('172.31.0.75')),
    ['ip route replace 172.31.0.75/32 dev grx10 proto 84 scope link'],
  );
});

test(
  'planBridgePod: in a Pod on the bridge the gateway is the bridge, and no neighbour is fixed',
  golden,
  planBridgePod(ipv4, bridgePod(10), 2).pod,
  `
  sysctl -w net.ipv6.conf.eth0.accept_dad=0
  ip link set dev lo up
  ip link set dev eth0 up
  ip address add 172.31.0.75/26 dev eth0
  ip route replace default via 172.31.0.65 dev eth0 proto 84`,
);

test(
  'planBridgePod: in a routed Pod all is as in a Pod of a shared ENI',
  golden,
  planBridgePod(ipv4, bridgePod(10, 'routed'), 2).pod,
  `
  ip link set dev lo up
  ip link set dev eth0 up
  ip address add 172.31.0.75/32 dev eth0
  ip route replace 169.254.1.1/32 dev eth0 proto 84 scope link
  ip route replace default via 169.254.1.1 dev eth0 proto 84
  ip neigh replace 169.254.1.1 lladdr 02:00:00:00:00:03 dev eth0 nud permanent`,
);

test('planBridgePod: IPv6 is off in a Pod that wants none', (t) => {
  const lines = renderFromBare(planBridgePod(ipv4, { ...bridgePod(10), disableIpv6: true }, 2).pod);
  t.is(lines[0], 'sysctl -w net.ipv6.conf.eth0.disable_ipv6=1');
});

for (const ruleMode of ['compact', 'per-pod'] as const) {
  test(`planNode: rule 1024 of every block comes before every rule of an ENI and before all else, in ${ruleMode} mode`, (t) => {
    const former = bridgePod(12, 'bridge', blocks.former);
    const network = { ...ipv4, ruleMode, podCidrs: [blocks.present, blocks.former] };
    const lines = renderFromBare(
      planNode(network, [eni4], [{ ...pod(5, 10), ips: ['10.0.5.10'] }, bridgePod(10), former]),
    );
    t.deepEqual(lines.slice(0, 2), [
      'ip -4 rule add pref 1024 to 172.31.0.64/26 lookup main proto 84',
      'ip -4 rule add pref 1024 to 172.31.7.0/26 lookup main proto 84',
    ]);
    t.true(lines.some((line) => line.includes('lookup 4005')));
  });

  test(`planNode: no rule and no link group leads a GlobalRoute Pod to an ENI, in ${ruleMode} mode`, (t) => {
    const network = { ...ipv4, ruleMode };
    const gr = [bridgePod(10), bridgePod(11, 'routed')];
    const { links, rules } = planNode(network, [eni4], [{ ...pod(5, 10), ips: ['10.0.5.10'] }, ...gr]);
    const ofGr = new Set([bridge.ifindex, ...gr.map(({ hostVeth }) => hostVeth.ifindex)]);
    t.deepEqual(
      links.filter(({ ifindex }) => ofGr.has(ifindex)).map(({ group }) => group),
      [0, 0, 0],
    );
    const ips = new Set(gr.flatMap((one) => one.ips.map((ip) => `${ip}/32`)));
    t.deepEqual(
      rules.filter(({ src, dst }) => ips.has(src ?? '') || ips.has(dst ?? '')),
      [],
    );
  });
}

const bridgeOf = (network: NodeNetwork, pods: readonly BridgePodNetwork[] = []) => {
  const { links, addresses } = planNode(network, [], pods);
  return {
    isPlanned: links.some(({ kind }) => kind === 'bridge'),
    addresses: addresses.filter(({ ifname }) => ifname === 'cbr0').map(({ prefix }) => prefix),
  };
};
const withBridge = (more: Partial<BridgeNetwork>): NodeNetwork => ({ ...ipv4, bridge: { ...bridge, ...more } });

test('planBridge: the bridge is there before the first Pod, where new Pods are on it', (t) => {
  t.deepEqual(bridgeOf(ipv4), { isPlanned: true, addresses: ['172.31.0.65/26'] });
});

test('planBridge: no bridge is made where new Pods are routed and no Pod is on one', (t) => {
  t.deepEqual(bridgeOf(withBridge({ wiring: 'routed' }), [bridgePod(10, 'routed')]), {
    isPlanned: false,
    addresses: [],
  });
});

test('planBridge: Pods that are on the bridge keep it when new ones are routed', (t) => {
  t.deepEqual(bridgeOf(withBridge({ wiring: 'routed' }), [bridgePod(10), bridgePod(11, 'routed')]), {
    isPlanned: true,
    addresses: ['172.31.0.65/26'],
  });
});

test('planBridge: a bridge that is there stays, without an address when no Pod needs one', (t) => {
  t.deepEqual(bridgeOf(withBridge({ wiring: 'routed', isPresent: true })), { isPlanned: true, addresses: [] });
});

test('planBridge: the gateway of a former block stays while Pods live in it', (t) => {
  const network = { ...ipv4, podCidrs: [blocks.present, blocks.former] };
  t.deepEqual(bridgeOf(network, [bridgePod(12, 'bridge', blocks.former)]).addresses, [
    '172.31.0.65/26',
    '172.31.7.1/26',
  ]);
  t.deepEqual(bridgeOf(ipv4).addresses, ['172.31.0.65/26']);
});

test('planBridge: a bridge that another program made keeps its MAC, and gets no mark of ours', (t) => {
  const { links } = planNode(withBridge({ ifindex: 7, isPresent: true }), [], [bridgePod(10)]);
  t.deepEqual(
    links.map(({ ifindex, mac, ifalias, master }) => ({ ifindex, mac, ifalias, master })),
    [
      { ifindex: 7, mac: undefined, ifalias: undefined, master: 0 },
      { ifindex: 70_010, mac: '02:00:00:00:00:03', ifalias: bridgePod(10).alias, master: 7 },
    ],
  );
});

test('planNode: where others wire the Pods of the block, rule 1024 is all', (t) => {
  const { bridge: _others, ...network } = ipv4;
  const { links, routes, rules } = planNode(network, [], []);
  t.deepEqual([links, routes], [[], []]);
  t.is(rules.filter(({ priority }) => priority === 1024).length, 1);
});

test('planNode: names what it cannot plan of GlobalRoute Pods', (t) => {
  const network = {
    ...withBridge({ masquerade: { exempt: ['10.0.0.0/40'] } }),
    nftables: false,
    ruleMode: 'per-pod' as const,
  };
  t.deepEqual(
    t
      .throws(() => planNode(network, [], []), { code: 'INVALID_NETWORK' })
      ?.message.split(/: |; /)
      .slice(1),
    ['"10.0.0.0/40" is no CIDR', 'masquerade of GlobalRoute Pods needs nftables', 'install nft, or turn it off'],
  );
});

test('planNode: an IPv6 block has rule 1024, and no part in the bridge', (t) => {
  const network = {
    ...withBridge({ masquerade: { exempt: [] } }),
    podCidrs: [blocks.present, podCidrOf('fd00:9::/64')],
  };
  const { addresses, routes, rules, nft } = planNode(network, [], []);
  t.deepEqual(
    rules.filter(({ priority }) => priority === 1024).map(({ family, dst }) => [family, dst]),
    [
      [4, '172.31.0.64/26'],
      [6, 'fd00:9::/64'],
    ],
  );
  t.deepEqual(
    [...addresses.map(({ prefix }) => prefix), ...routes.map(({ dst }) => dst)],
    ['172.31.0.65/26', '172.31.0.64/26', '172.31.0.64/26'],
  );
  t.notRegex(nft?.text ?? '', /fd00:9.*masquerade/);
});
