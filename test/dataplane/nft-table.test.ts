import test from 'ava';
import { withoutContained } from '../../dataplane/ip-prefix.ts';
import { nftTable } from '../../dataplane/nft-table.ts';
import { podCidrOf } from '../../dataplane/pod-cidr.ts';
import { blocks, bridge, eni, node } from './fixtures.ts';

const golden = test.macro((t, changes: Partial<typeof node>, enis: readonly number[], text: string) => {
  t.is(nftTable({ ...node, ...changes }, enis.map(eni)).text, text.replace(/^\n/, ''));
});

test(
  'nftTable: compact mode with two ENIs',
  golden,
  {},
  [6, 5],
  `
table inet tke_eni {
 chain via_4005 {
  meta mark set meta mark and 0xff00ffff or 0x50000
 }
 chain via_4006 {
  meta mark set meta mark and 0xff00ffff or 0x60000
 }
 chain eni_4005 {
  ip6 saddr != { ::, fe80::/10 } fib saddr . iif oif missing drop
  meta mark set meta mark and 0xff00ffff or 0x50000
  ct direction reply ct mark and 0x80 == 0x80 meta mark set meta mark or 0x80
  ct direction reply ct mark and 0xff0000 vmap { 0x50000 : jump via_4005, 0x60000 : jump via_4006 }
 }
 chain eni_4006 {
  ip6 saddr != { ::, fe80::/10 } fib saddr . iif oif missing drop
  meta mark set meta mark and 0xff00ffff or 0x60000
  ct direction reply ct mark and 0x80 == 0x80 meta mark set meta mark or 0x80
  ct direction reply ct mark and 0xff0000 vmap { 0x50000 : jump via_4005, 0x60000 : jump via_4006 }
 }
 chain from_4005 {
  ct direction original ct mark set ct mark and 0xff00ff7f or 0x50000
 }
 chain from_4006 {
  ct direction original ct mark set ct mark and 0xff00ff7f or 0x60000
 }
 chain arrival {
  type filter hook prerouting priority raw - 10; policy accept;
  iifname "eth5" goto via_4005
  iifname "eth6" goto via_4006
 }
 chain prerouting {
  type filter hook prerouting priority mangle; policy accept;
  iifgroup 4005 goto eni_4005
  iifgroup 4006 goto eni_4006
  iifname "eth5" goto from_4005
  iifname "eth6" goto from_4006
  iifname != "eth0" ip saddr { 10.0.0.0/8 } ct direction reply ct mark and 0x80 == 0x80 meta mark set meta mark or 0x80
  iifname != "eth0" ip6 saddr { fd00:10::/32 } ct direction reply ct mark and 0x80 == 0x80 meta mark set meta mark or 0x80
  ct direction original ct mark set ct mark and 0xff00ffff or 0x80
 }
 chain balanced {
  type filter hook output priority mangle + 1; policy accept;
  ct state != untracked meta mark and 0xff0000 != 0x0 meta mark set meta mark xor 0x80
 }
 chain balanced_route {
  type route hook output priority mangle + 2; policy accept;
  ct state != untracked meta mark and 0xff0000 != 0x0 meta mark set meta mark xor 0x80
 }
 chain returned {
  type filter hook forward priority filter; policy accept;
  iifname { "eth5", "eth6" } oifname { "eth0", "eth5", "eth6" } ct status and 0x20 == 0x0 drop
 }
}
`,
);

test(
  'nftTable: per-pod mode leaves ENI marks out and keeps the groups',
  golden,
  { ruleMode: 'per-pod' },
  [5],
  `
table inet tke_eni {
 chain via_4005 {
  meta mark set meta mark and 0xff00ffff or 0x50000
 }
 chain eni_4005 {
  ip6 saddr != { ::, fe80::/10 } fib saddr . iif oif missing drop
  ct direction reply ct mark and 0x80 == 0x80 meta mark set meta mark or 0x80
 }
 chain from_4005 {
  ct direction original ct mark set ct mark and 0xff00ff7f or 0x50000
 }
 chain prerouting {
  type filter hook prerouting priority mangle; policy accept;
  iifgroup 4005 goto eni_4005
  iifname "eth5" goto from_4005
  iifname != "eth0" ip saddr { 10.0.0.0/8 } ct direction reply ct mark and 0x80 == 0x80 meta mark set meta mark or 0x80
  iifname != "eth0" ip6 saddr { fd00:10::/32 } ct direction reply ct mark and 0x80 == 0x80 meta mark set meta mark or 0x80
  ct direction original ct mark set ct mark and 0xff00ffff or 0x80
 }
 chain balanced {
  type filter hook output priority mangle + 1; policy accept;
  ct state != untracked fib saddr type != local meta mark set meta mark xor 0x80
 }
 chain balanced_route {
  type route hook output priority mangle + 2; policy accept;
  ct state != untracked fib saddr type != local meta mark set meta mark xor 0x80
 }
 chain returned {
  type filter hook forward priority filter; policy accept;
  iifname { "eth5" } oifname { "eth0", "eth5" } ct status and 0x20 == 0x0 drop
 }
}
`,
);

test(
  'nftTable: a node without ENIs has the NodePort lines alone',
  golden,
  { egress: 'node' },
  [],
  `
table inet tke_eni {
 chain prerouting {
  type filter hook prerouting priority mangle; policy accept;
  iifname != "eth0" ip saddr { 10.0.0.0/8 } ct direction reply ct mark and 0x80 == 0x80 meta mark set meta mark or 0x80
  iifname != "eth0" ip6 saddr { fd00:10::/32 } ct direction reply ct mark and 0x80 == 0x80 meta mark set meta mark or 0x80
  ct direction original ct mark set ct mark and 0xff00ffff or 0x80
 }
}
`,
);

test('nftTable: egress by the node decides by the destination after DNAT and spares Pods with an EIP', (t) => {
  const changes = {
    egress: 'node',
    podCidrs: [podCidrOf('172.31.0.0/24')],
    egressExempt: ['10.0.5.9', 'FD00:10::9'],
    nodePort: false,
  } as const;
  const { text } = nftTable({ ...node, ...changes }, [eni(5)]);
  t.is(
    text.slice(text.indexOf(' chain egress')),
    ` chain egress {
  ip saddr { 10.0.5.9 } return
  ip6 saddr { fd00:10::9 } return
  ip daddr { 10.0.0.0/8, 169.254.0.0/16, 172.31.0.0/24, 224.0.0.0/4 } return
  ip6 daddr { fd00:10::/32, fe80::/10, ff00::/8 } return
  meta mark set meta mark or 0x80
 }
 chain routed {
  type filter hook prerouting priority dstnat + 10; policy accept;
  iifgroup { 4005 } ct direction original fib daddr type != local jump egress
 }
 chain postrouting {
  type nat hook postrouting priority srcnat; policy accept;
  oifname "eth0" ct direction original meta mark and 0x80 == 0x80 masquerade
 }
}
`,
  );
});

test('withoutContained: drops what lies inside another, in both families', (t) => {
  t.deepEqual(withoutContained(['10.1.0.0/16', '10.0.0.0/8', '11.0.0.0/8', 'fd00::/16', 'FD00:1::/32', '10.0.0.0/8']), [
    '10.0.0.0/8',
    '11.0.0.0/8',
    'fd00::/16',
  ]);
});

test('nftTable: leaves out an ENI whose name nft cannot hold, and names it; then only the primary interface is no ENI for sure', (t) => {
  for (const ifname of ['\udcff\udcfe', 'p\u001b[2J', 'eth*', 'q"x', 'é']) {
    const table = nftTable(node, [eni(5), { ...eni(6), ifname }]);
    t.deepEqual(table.unnamed, [ifname]);
    t.true(table.text.includes('\n  iifname "eth5" goto from_4005\n'));
    t.true(table.text.includes('\n  iifname "eth5" goto via_4005\n'));
    t.true(
      table.text.includes('\n  iifname "eth0" ct direction original ct mark set ct mark and 0xff00ffff or 0x80\n'),
    );
    t.true(table.text.includes('\n  iifgroup 4006 goto eni_4006\n'), 'its Pods are served');
  }
  t.is(nftTable(node, [eni(5)]).unnamed, undefined);
  const odd = [{ ...eni(6), ifname: 'eth*' }];
  t.deepEqual(nftTable({ ...node, nodePort: false }, odd).unnamed, ['eth*'], 'what comes in by it has no mark');
  t.is(nftTable({ ...node, nodePort: false, ruleMode: 'per-pod' }, odd).unnamed, undefined, 'no line needs it');
});

test('nftTable: what comes from a network of the node alone to a Pod with an exclusive ENI comes back by the node', (t) => {
  const { text } = nftTable({ ...node, hasDirect: true, podCidrs: [blocks.present] }, []);
  t.true(
    text.includes(
      '  meta nfproto ipv4 oifgroup 3998 ct direction original ip saddr != { 10.0.0.0/8, 169.254.0.0/16, 172.31.0.64/26, 224.0.0.0/4 } ct mark and 0x80 == 0x80 snat ip to 10.0.0.2\n',
    ),
  );
  t.true(text.includes('  ip saddr { 172.31.0.64/26 } return\n'), 'GlobalRoute Pods keep their addresses');
});

test(
  'nftTable: GlobalRoute Pods are masqueraded where the VPC has no route back, without any ENI',
  golden,
  {
    nodePort: false,
    podCidrs: [blocks.present, blocks.former],
    bridge: { ...bridge, masquerade: { exempt: ['10.0.0.0/8', '172.31.0.0/16', '10.9.0.0/16'] } },
  },
  [],
  `
table inet tke_eni {
 chain prerouting {
  type filter hook prerouting priority mangle; policy accept;
 }
 chain postrouting {
  type nat hook postrouting priority srcnat; policy accept;
  oifname "eth0" ip saddr { 172.31.0.64/26, 172.31.7.0/26 } ip daddr != { 10.0.0.0/8, 172.31.0.0/16 } masquerade
 }
}
`,
);

test('nftTable: nothing is masqueraded for GlobalRoute Pods when another program does it', (t) => {
  const { text } = nftTable({ ...node, podCidrs: [blocks.present], bridge }, [eni(5)]);
  t.notRegex(text, /masquerade/);
});
