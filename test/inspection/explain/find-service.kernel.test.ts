import { execFileSync } from 'node:child_process';
import test from 'ava';
import { findService, type Service } from '../../../inspection/explain/find-service.ts';
import { readNodeFacts } from '../../../inspection/node/read-node-facts.ts';
import { TestNetns } from '../../kernel/netlink/support/test-netns.ts';

// Rules as kube-proxy writes them, in its three modes, read back from the kernel.

const IPTABLES = `*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-DNS - [0:0]
:KUBE-SEP-A - [0:0]
:KUBE-SEP-B - [0:0]
:KUBE-MARK-MASQ - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.0.10/32 -p udp -m comment --comment "kube-system/kube-dns:dns cluster IP" -m udp --dport 53 -j KUBE-SVC-DNS
-A KUBE-SVC-DNS ! -s 10.244.0.0/16 -d 10.96.0.10/32 -p udp -m udp --dport 53 -j KUBE-MARK-MASQ
-A KUBE-SVC-DNS -m statistic --mode random --probability 0.5 -j KUBE-SEP-A
-A KUBE-SVC-DNS -j KUBE-SEP-B
-A KUBE-SEP-A -s 10.0.2.4/32 -j KUBE-MARK-MASQ
-A KUBE-SEP-A -p udp -m udp -j DNAT --to-destination 10.0.2.4:53
-A KUBE-SEP-B -s 10.0.2.5/32 -j KUBE-MARK-MASQ
-A KUBE-SEP-B -p udp -m udp -j DNAT --to-destination 10.0.2.5:53
COMMIT
*filter
:KUBE-SERVICES - [0:0]
-A KUBE-SERVICES -d 10.96.0.11/32 -p tcp -m comment --comment "default/empty has no endpoints" -j REJECT
-A KUBE-SERVICES -d 10.96.0.12/32 -p tcp -m comment --comment "default/elsewhere has no local endpoints" -m tcp --dport 80 -j DROP
COMMIT
`;

const NFTABLES = `table ip kube-proxy {
  chain mark-for-masquerade {
    mark set mark or 0x4000
  }
  chain endpoint-A {
    ip saddr 10.0.2.6 jump mark-for-masquerade
    meta l4proto tcp dnat to 10.0.2.6:8000
  }
  chain endpoint-B {
    ip saddr 10.0.2.7 jump mark-for-masquerade
    meta l4proto tcp dnat to 10.0.2.7:8000
  }
  chain service-X {
    ip daddr 10.96.0.20 tcp dport 80 ip saddr != 10.244.0.0/16 jump mark-for-masquerade
    numgen random mod 2 vmap { 0 : goto endpoint-A, 1 : goto endpoint-B }
  }
  map service-ips {
    type ipv4_addr . inet_proto . inet_service : verdict
    elements = { 10.96.0.20 . tcp . 80 : goto service-X }
  }
  chain reject-chain {
    reject
  }
  map no-endpoint-services {
    type ipv4_addr . inet_proto . inet_service : verdict
    elements = { 10.96.0.21 . tcp . 80 comment "default/empty" : goto reject-chain, 10.96.0.22 . tcp . 80 comment "default/elsewhere" : drop }
  }
  chain services {
    ip daddr . meta l4proto . th dport vmap @service-ips
  }
  chain nat-prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    jump services
  }
  chain filter-forward {
    type filter hook forward priority filter; policy accept;
    ip daddr 10.9.9.9 drop
  }
}
table ip metadata {
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    ip daddr 169.254.169.254 tcp dport 80 dnat to 10.0.1.9:8080
  }
}
`;

type Case = { readonly name: string; readonly ip: string; readonly expects: Partial<Service> | undefined };

const CASES: readonly Case[] = [
  {
    name: 'iptables by its nft variant',
    ip: '10.96.0.10',
    expects: { isKubeProxy: true, backends: ['10.0.2.4', '10.0.2.5'], refusal: undefined },
  },
  {
    name: 'nftables',
    ip: '10.96.0.20',
    expects: { isKubeProxy: true, backends: ['10.0.2.6', '10.0.2.7'], refusal: undefined },
  },
  { name: 'IPVS', ip: '10.96.0.30', expects: { isKubeProxy: true, backends: [], refusal: undefined } },
  {
    name: 'a Service without backends, iptables',
    ip: '10.96.0.11',
    expects: { isKubeProxy: true, backends: [], refusal: 'rejected' },
  },
  {
    name: 'a Service without backends, nftables',
    ip: '10.96.0.21',
    expects: { isKubeProxy: true, backends: [], refusal: 'rejected' },
  },
  {
    name: 'a Service without backends on the node, iptables',
    ip: '10.96.0.12',
    expects: { isKubeProxy: true, backends: [], refusal: 'dropped' },
  },
  {
    name: 'a Service without backends on the node, nftables',
    ip: '10.96.0.22',
    expects: { isKubeProxy: true, backends: [], refusal: 'dropped' },
  },
  {
    name: 'a redirection that is not kube-proxy’s',
    ip: '169.254.169.254',
    expects: { isKubeProxy: false, backends: ['10.0.1.9'], refusal: undefined },
  },
  { name: 'a rule that only drops', ip: '10.9.9.9', expects: undefined },
  { name: 'a backend', ip: '10.0.2.4', expects: undefined },
  { name: 'a host outside', ip: '1.1.1.1', expects: undefined },
];

test('findService: finds who rewrites an address, and to what', async (t) => {
  using netns = new TestNetns();
  const ip = (...args: readonly string[]) => execFileSync('ip', ['-n', netns.name, ...args]);
  execFileSync('ip', ['netns', 'exec', netns.name, 'iptables-nft-restore'], { input: IPTABLES });
  execFileSync('ip', ['netns', 'exec', netns.name, 'nft', '-f', '-'], { input: NFTABLES });
  ip('link', 'add', 'kube-ipvs0', 'type', 'veth', 'peer', 'name', 'ipvs1');
  ip('address', 'add', '10.96.0.30/32', 'dev', 'kube-ipvs0');
  const global = { netns: netns.name, stateDir: '/nonexistent', hostRoot: '/' };
  const facts = await readNodeFacts({ global }, { insides: 'none', sysctls: false });
  t.is(facts.host.nft.kind, 'known');
  for (const { name, ip: address, expects } of CASES) {
    const found = findService(facts, address);
    t.deepEqual(
      found && { isKubeProxy: found.isKubeProxy, backends: found.backends, refusal: found.refusal },
      expects,
      name,
    );
  }
});
