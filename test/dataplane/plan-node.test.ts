import test from 'ava';
import type { HostState } from '../../dataplane/desired.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { planSharedEniPod } from '../../dataplane/plan-pod.ts';
import { podCidrOf } from '../../dataplane/pod-cidr.ts';
import { eni, node, pod, renderFromBare } from './fixtures.ts';

// Each golden is the whole plan as lines that a person could type on the node.
const golden = test.macro((t, plan: HostState, lines: string) => {
  t.deepEqual(renderFromBare(plan), lines.trim().split(/\n\s*/));
});

const ipv4 = { ...node, families: [4] as const };
const eni4 = { ...eni(5), addresses: eni(5).addresses.slice(0, 1) };
const pod4 = { ...pod(5, 10), ips: ['10.0.5.10'] };

test(
  'planNode: compact mode, IPv4: one route for a Pod and no rule',
  golden,
  planNode(ipv4, [eni4], [pod4]),
  `
  sysctl -w net.ipv4.ip_forward=1
  sysctl -w net.ipv4.conf.eth0.rp_filter=2
  sysctl -w net.ipv4.conf.eth5.rp_filter=2
  sysctl -w net.ipv4.conf.eth5.src_valid_mark=1
  sysctl -w net.ipv4.conf.eth5.forwarding=1
  sysctl -w net.ipv6.conf.eth5.accept_ra=0
  sysctl -w net.ipv4.conf.eni5x10.rp_filter=1
  sysctl -w net.ipv4.conf.eni5x10.forwarding=1
  sysctl -w net.ipv6.conf.eni5x10.accept_ra=0
  ip link set dev eth5 up
  ip link set dev eni5x10 alias tke-eni/sandbox-5-10/eth0 up
  ip address add 10.0.5.5/32 dev eth5
  ip route replace 10.0.5.1/32 dev eth5 table 4005 proto 84 scope link
  ip route replace 10.0.5.10/32 dev eni5x10 table 3999 proto 84 scope link
  ip route replace default via 10.0.5.1 dev eth5 table 4005 proto 84
  ip route replace unreachable default table 4005 proto 84 metric 2147483647
  ip -4 rule add pref 512 lookup 3999 proto 84
  ip -4 rule add pref 1280 fwmark 0x80/0x80 lookup main proto 84
  ip -4 rule add pref 1536 fwmark 0x50000/0xff0000 lookup 4005 proto 84
  ip -4 rule add pref 1537 from 10.0.5.5/32 lookup 4005 proto 84
  ip -4 rule add pref 1280 lookup 4001 proto 84
  ip link set dev eni5x10 group 4005`,
);

test(
  'planNode: per-pod mode, dual stack, GR: two rules for each address of a Pod',
  golden,
  planNode({ ...node, ruleMode: 'per-pod', podCidrs: [podCidrOf('172.31.0.0/24')] }, [eni(5)], [pod(5, 10)]),
  `
  ip -4 rule add pref 1024 to 172.31.0.0/24 lookup main proto 84
  sysctl -w net.ipv4.ip_forward=1
  sysctl -w net.ipv4.conf.eth0.rp_filter=2
  sysctl -w net.ipv6.conf.eth0.accept_ra=2
  sysctl -w net.ipv6.conf.all.forwarding=1
  sysctl -w net.ipv4.conf.eth5.rp_filter=2
  sysctl -w net.ipv4.conf.eth5.forwarding=1
  sysctl -w net.ipv6.conf.eth5.accept_ra=0
  sysctl -w net.ipv6.conf.eth5.disable_ipv6=0
  sysctl -w net.ipv4.conf.eni5x10.rp_filter=1
  sysctl -w net.ipv4.conf.eni5x10.forwarding=1
  sysctl -w net.ipv6.conf.eni5x10.accept_ra=0
  sysctl -w net.ipv6.conf.eni5x10.disable_ipv6=0
  sysctl -w net.ipv6.conf.eni5x10.accept_dad=0
  sysctl -w net.ipv6.conf.eni5x10.forwarding=1
  ip link set dev eth5 up
  ip link set dev eni5x10 alias tke-eni/sandbox-5-10/eth0 up
  ip address add 10.0.5.5/32 dev eth5
  ip -6 address add fd00:10:0:5::5/128 dev eth5 nodad noprefixroute
  ip -6 route replace fd00:10:0:5::1/128 dev eth5 table 4005 proto 84
  ip -6 route replace fd00:10:0:5::10/128 dev eni5x10 proto 84
  ip -6 route replace unreachable fd00:10:0:5::10/128 proto 84 metric 2147483645
  ip route replace 10.0.5.1/32 dev eth5 table 4005 proto 84 scope link
  ip route replace 10.0.5.10/32 dev eni5x10 proto 84 scope link
  ip route replace unreachable 10.0.5.10/32 proto 84 metric 2147483645
  ip route replace default via 10.0.5.1 dev eth5 table 4005 proto 84
  ip -6 route replace default via fd00:10:0:5::1 dev eth5 table 4005 proto 84
  ip route replace unreachable default table 4005 proto 84 metric 2147483647
  ip -6 route replace unreachable default table 4005 proto 84 metric 2147483647
  ip -4 rule add pref 1280 fwmark 0x80/0x80 lookup main proto 84
  ip -6 rule add pref 1280 fwmark 0x80/0x80 lookup main proto 84
  ip -4 rule add pref 1537 from 10.0.5.5/32 lookup 4005 proto 84
  ip -6 rule add pref 1537 from fd00:10:0:5::5/128 lookup 4005 proto 84
  ip -4 rule add pref 512 to 10.0.5.10/32 lookup main proto 84
  ip -4 rule add pref 1536 from 10.0.5.10/32 lookup 4005 proto 84
  ip -6 rule add pref 512 to fd00:10:0:5::10/128 lookup main proto 84
  ip -6 rule add pref 1536 from fd00:10:0:5::10/128 lookup 4005 proto 84
  ip -4 rule add pref 1280 lookup 4001 proto 84
  ip -6 rule add pref 1280 lookup 4001 proto 84
  ip link set dev eni5x10 group 4005`,
);

test('planNode: refuses packets to each address of the node where no route of a Pod leads, in both rule modes', (t) => {
  const assignedIps = ['10.0.5.10', '10.0.5.11', 'FD00:10:0:5::10'];
  for (const ruleMode of ['compact', 'per-pod'] as const) {
    const without = renderFromBare(planNode({ ...node, ruleMode }, [eni(5)], [pod(5, 10)]));
    const lines = renderFromBare(planNode({ ...node, ruleMode, assignedIps }, [eni(5)], [pod(5, 10)]));
    t.deepEqual(
      lines.filter((line) => !without.includes(line)),
      [
        'ip -6 route replace unreachable fd00:10:0:5::10/128 table 4001 proto 84 metric 2147483647',
        'ip route replace unreachable 10.0.5.10/32 table 4001 proto 84 metric 2147483647',
        'ip route replace unreachable 10.0.5.11/32 table 4001 proto 84 metric 2147483647',
      ],
    );
    const rules = lines.filter((line) => line.includes(' rule add '));
    t.true(
      rules.indexOf('ip -4 rule add pref 1280 lookup 4001 proto 84') > rules.findIndex((line) => / 512 /.test(line)),
    );
  }
  const ipv6Less = planNode({ ...ipv4, assignedIps }, [eni4], []);
  t.deepEqual(
    ipv6Less.routes.filter(({ table }) => table === 4001).map(({ dst }) => dst),
    ['10.0.5.10/32', '10.0.5.11/32'],
  );
  t.throws(() => planNode({ ...node, assignedIps: ['10.0.5'] }, [], []), { message: /"10.0.5" is no IP address/ });
});

test('planNode: addresses of Pods that another program wires have the two per-pod rules, without a Pod', (t) => {
  const podIps = ['10.0.5.10', 'fd00:10:0:5::10'];
  const plain = renderFromBare(planNode({ ...node, ruleMode: 'per-pod' }, [eni(5)], []));
  const lines = renderFromBare(planNode({ ...node, ruleMode: 'per-pod' }, [{ ...eni(5), podIps }], []));
  t.deepEqual(
    lines.filter((line) => !plain.includes(line)),
    [
      'ip -6 route replace unreachable fd00:10:0:5::10/128 proto 84 metric 2147483645',
      'ip route replace unreachable 10.0.5.10/32 proto 84 metric 2147483645',
      'ip -4 rule add pref 512 to 10.0.5.10/32 lookup main proto 84',
      'ip -4 rule add pref 1536 from 10.0.5.10/32 lookup 4005 proto 84',
      'ip -6 rule add pref 512 to fd00:10:0:5::10/128 lookup main proto 84',
      'ip -6 rule add pref 1536 from fd00:10:0:5::10/128 lookup 4005 proto 84',
    ],
  );
  t.throws(() => planNode(node, [{ ...eni(5), podIps: ['no address'] }], []), {
    message: /"no address" is no IP address/,
  });
});

test(
  'planSharedEniPod: the Pod side, dual stack',
  golden,
  planSharedEniPod(node, pod(5, 10), 2).pod,
  `
  sysctl -w net.ipv6.conf.eth0.disable_ipv6=0
  sysctl -w net.ipv6.conf.eth0.accept_ra=0
  sysctl -w net.ipv6.conf.eth0.accept_dad=0
  ip link set dev lo up
  ip link set dev eth0 up
  ip address add 10.0.5.10/32 dev eth0
  ip -6 address add fd00:10:0:5::10/128 dev eth0 nodad noprefixroute
  ip route replace 169.254.1.1/32 dev eth0 proto 84 scope link
  ip route replace default via 169.254.1.1 dev eth0 proto 84
  ip -6 route replace default via fe80::1 dev eth0 proto 84
  ip neigh replace 169.254.1.1 lladdr 02:00:00:00:00:01 dev eth0 nud permanent
  ip -6 neigh replace fe80::1 lladdr 02:00:00:00:00:01 dev eth0 nud permanent`,
);

test(
  'planSharedEniPod: a Pod under another main plugin has two rules and no link, in compact mode too',
  golden,
  planSharedEniPod(node, { ...pod4, kind: 'ipam' }).host,
  `
  ip -4 rule add pref 512 to 10.0.5.10/32 lookup main proto 84
  ip -4 rule add pref 1536 from 10.0.5.10/32 lookup 4005 proto 84`,
);

test('planNode: rp_filter of the product is 0 on all, the primary and ENIs, and still strict on Pods', (t) => {
  const lines = renderFromBare(planNode({ ...ipv4, rpFilterMode: 'product' }, [eni4], [pod4]));
  t.deepEqual(
    lines.filter((line) => line.includes('rp_filter')),
    [
      'sysctl -w net.ipv4.conf.all.rp_filter=0',
      'sysctl -w net.ipv4.conf.eth0.rp_filter=0',
      'sysctl -w net.ipv4.conf.eth5.rp_filter=0',
      'sysctl -w net.ipv4.conf.eni5x10.rp_filter=1',
    ],
  );
});

test('planNode: a gateway that is link-local needs no route of its own', (t) => {
  const only6 = { ...eni(5), addresses: [{ ip: 'fd00:10:0:5::5', gateway: 'FE80::FEEE:ff:fe00:1' }] };
  t.deepEqual(
    renderFromBare(planNode(node, [only6], [])).filter((line) => line.includes('table 4005')),
    [
      'ip -6 route replace default via fe80::feee:ff:fe00:1 dev eth5 table 4005 proto 84',
      'ip route replace unreachable default table 4005 proto 84 metric 2147483647',
      'ip -6 route replace unreachable default table 4005 proto 84 metric 2147483647',
    ],
  );
});

test('planNode: the number of rules in compact mode does not depend on the number of Pods', (t) => {
  const rules = (pods: number) =>
    planNode(
      node,
      [eni(5), eni(6)],
      Array.from({ length: pods }, (_, at) => pod(5, 10 + at)),
    ).rules.length;
  t.is(rules(0), rules(200));
});

test('planNode: names every fault of its input at once', (t) => {
  const broken = {
    ...node,
    eniMarkMask: 0xc080,
    podCidrs: [podCidrOf('172.31.0.0/33')],
    primary: { ...node.primary, ifname: 'eth*' },
  };
  const error = t.throws(() =>
    planNode(broken, [eni(5), { ...eni(6), slot: 5, table: 4005 }], [{ ...pod(7, 10), ips: ['10.0.7'] }]),
  );
  t.is(
    error?.message,
    `cannot plan the node's network: ${[
      'ENI mark mask 0xc080: expected at least 8 bits in a row, such as 0xff0000',
      "ENI mark mask 0xc080: bits 0xc000 are kube-proxy's; choose others",
      'ENI mark mask 0xc080: bit 0x80 is our NodePort mark; choose others',
      'primary interface: interface name "eth*" cannot be written in nftables; rename it',
      '"172.31.0.0/33" is no CIDR',
      'table 4005 is used by eni-5 and eni-6',
      'slot 5 is used by eni-5 and eni-6',
      'attachment sandbox-7-10/eth0: no ENI has table 4007',
      'attachment sandbox-7-10/eth0: "10.0.7" is no IP address',
    ].join('; ')}`,
  );
});

test('planNode: networks that other links connect the node to are in a table of their own, in both rule modes', (t) => {
  const connected = [
    { cidr: '172.17.0.0/16', ifindex: 7, ifname: 'docker0', prefsrc: '172.17.0.1' },
    { cidr: 'fd50::/64', ifindex: 8, ifname: 'data0' },
  ];
  const linesOf = (ruleMode: 'compact' | 'per-pod', families: readonly (4 | 6)[]) =>
    renderFromBare(planNode({ ...node, ruleMode, families, connected }, [], [])).filter((line) => /3997/.test(line));
  const ipv4 = [
    'ip route replace 172.17.0.0/16 dev docker0 table 3997 proto 84 scope link src 172.17.0.1',
    'ip -4 rule add pref 1280 lookup 3997 proto 84',
  ];
  for (const ruleMode of ['compact', 'per-pod'] as const) {
    t.deepEqual(linesOf(ruleMode, [4]), ipv4);
    t.deepEqual(
      linesOf(ruleMode, [4, 6]).toSorted(),
      [
        ...ipv4,
        'ip -6 route replace fd50::/64 dev data0 table 3997 proto 84',
        'ip -6 rule add pref 1280 lookup 3997 proto 84',
      ].toSorted(),
    );
  }
  t.deepEqual(
    renderFromBare(planNode(node, [], [])).filter((line) => /3997/.test(line)),
    [],
    'no rule without any',
  );
});
