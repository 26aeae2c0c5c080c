import { readFileSync } from 'node:fs';
import test from 'ava';
import { buildFirewallChains } from '../../../inspection/firewall/build-firewall-chains.ts';
import type { Packet } from '../../../inspection/firewall/evaluate-chain.ts';
import { evaluateFirewallChain } from '../../../inspection/firewall/evaluate-firewall-chain.ts';
import { findPacketRules } from '../../../inspection/firewall/find-packet-rules.ts';
import { known } from '../../../inspection/node/known.ts';
import { listOf, recordOf } from '../../../runtime/json.ts';

// What every node has: rules that refuse Services without endpoints decide nothing about ordinary packets of Pods.

const IPTABLES = `*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:KUBE-EXTERNAL-SERVICES - [0:0]
:KUBE-FIREWALL - [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
:KUBE-SERVICES - [0:0]
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A INPUT -m comment --comment "kubernetes health check service ports" -j KUBE-NODEPORTS
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-A INPUT -j KUBE-FIREWALL
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-A KUBE-EXTERNAL-SERVICES -p tcp -m comment --comment "default/web has no local endpoints" -m addrtype --dst-type LOCAL -m tcp --dport 30080 -j DROP
-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
-A KUBE-FIREWALL -m comment --comment "kubernetes firewall for dropping marked packets" -m mark --mark 0x8000/0x8000 -j DROP
-A KUBE-FORWARD -m conntrack --ctstate INVALID -m nfacct --nfacct-name  ct_state_invalid_dropped_pkts -j DROP
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A KUBE-NODEPORTS -p tcp -m comment --comment "default/web health check node port" -m tcp --dport 32000 -j ACCEPT
-A KUBE-PROXY-FIREWALL -d 10.0.200.9/32 -p tcp -m comment --comment "default/web:http traffic not accepted by LoadBalancer" -m tcp --dport 80 -j DROP
-A KUBE-SERVICES -d 10.96.0.11/32 -p tcp -m comment --comment "default/empty has no endpoints" -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable
COMMIT`.split('\n');

/** kube-proxy in mode IPVS, with a load balancer that has source ranges: sets of its own have the addresses of Services. */
const IPVS = `*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-IPVS-FILTER - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
:KUBE-SOURCE-RANGES-FIREWALL - [0:0]
-A INPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER
-A INPUT -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL
-A FORWARD -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A KUBE-IPVS-FILTER -m set --match-set KUBE-LOAD-BALANCER dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-CLUSTER-IP dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m conntrack --ctstate NEW -m set --match-set KUBE-IPVS-IPS dst -j REJECT --reject-with icmp-port-unreachable
-A KUBE-PROXY-FIREWALL -m set --match-set KUBE-LOAD-BALANCER-SOURCE-CIDR dst,dst,src -j RETURN
-A KUBE-PROXY-FIREWALL -m set --match-set KUBE-LOAD-BALANCER-FW dst,dst -j KUBE-SOURCE-RANGES-FIREWALL
-A KUBE-SOURCE-RANGES-FIREWALL -j DROP
COMMIT`.split('\n');

const POD = '10.0.5.10';
const PACKETS: Readonly<Record<string, Packet>> = {
  'from a Pod': { family: 4, src: POD, iifs: ['eni1'], oifs: ['eth0', 'eth1'] },
  'to a Pod': { family: 4, dst: POD, iifs: ['eth1'], oifs: ['eni1'] },
  'from a Pod to a host': { family: 4, src: POD, dst: '10.9.9.9', iifs: ['eni1'], oifs: ['eth1'] },
  'from a Pod, IPv6': { family: 6, src: 'fd00::5', iifs: ['eni1'], oifs: ['eth1'] },
};

function captured(): readonly Readonly<Record<string, unknown>>[] {
  const text = readFileSync(new URL('../../capture/kube-proxy-1.36-nftables.json', import.meta.url), 'utf8');
  return listOf(recordOf(JSON.parse(text))['nftables']).map(recordOf);
}

for (const [mode, objects, lines] of [
  ['nftables', captured(), []],
  ['iptables', [], IPTABLES],
  ['ipvs', [], IPVS],
] as const) {
  const iptables = known({ legacy: known(lines), nft: known([]) });
  const chains = buildFirewallChains({ objects, iptables, queueListeners: known([]) });
  test(`kube-proxy in mode ${mode} checks no packet of an established connection by itself`, (t) => {
    t.deepEqual(findPacketRules({ objects, iptables }), []);
  });
  for (const [what, packet] of Object.entries(PACKETS)) {
    test(`kube-proxy in mode ${mode} drops nothing ${what}, and leaves nothing open`, (t) => {
      t.true(chains.length >= 2);
      for (const isEstablished of [false, true]) {
        for (const chain of chains) {
          const verdict = evaluateFirewallChain(chain, { ...packet, isEstablished });
          t.deepEqual(verdict, { outcome: 'passes', notEvaluated: [] }, `${chain.name}, ${isEstablished}`);
        }
      }
    });
  }
}
