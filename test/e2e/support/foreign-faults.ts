import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FindingId } from '../../../inspection/catalogue/catalogue.ts';
import { bpfObject } from '../../support/bpf-object.ts';
import type { FaultScene } from './fault-scene.ts';

/** What of a dual-stack node the commands of a foreign fault name. */
export type ForeignScene = FaultScene & {
  /** IPv6 address of the Pod. */
  readonly ip6: string;
  /** Address of the node's primary interface. */
  readonly nodeIp: string;
  /** Gateways of the ENI. */
  readonly gateway: string;
  readonly gateway6: string;
};

/**
 * State of other programs that no plan is about: diff does not compare it, doctor and explain name it, repair leaves it
 * alone. For a node in compact mode with both families.
 */
export type ForeignFault = {
  readonly name: string;
  /** Commands that do the harm, and those that take it back. */
  readonly inject: (scene: ForeignScene) => string;
  readonly undo: (scene: ForeignScene) => string;
  /** Whose namespace the commands are for; default the node's. */
  readonly in?: 'node' | 'pod';
  /** Whom the Pod does not reach then; default a host beyond the VPC. */
  readonly cuts?: 'outside' | 'outside-ipv6' | 'node';
  /** Finding of doctor, and of explain where that says nothing else. */
  readonly finds: FindingId;
  readonly explains?: FindingId;
  /** Exit code of explain; default 1. 0 where the change may be meant. */
  readonly exitCode?: 0;
  /** True when it is in the plan after all: `tke-eni repair` repairs it. */
  readonly isPlanned?: boolean;
};

const DROP_ALL = 1;
const TC_DROP = 2;

/** File with a program that drops all; the fault's `undo` takes it away. */
function objectIn({ trial }: FaultScene, section: 'xdp' | 'tc'): string {
  const path = join(trial.dir.path, `${section}.o`);
  writeFileSync(path, bpfObject(section, section === 'xdp' ? DROP_ALL : TC_DROP));
  return path;
}

const XDP = (scene: ForeignScene, link: string, mode: string): string =>
  `ip link set dev ${link} ${mode} obj ${objectIn(scene, 'xdp')} sec xdp`;

const PASSTHRU = (link: string): string => `ip link add other-above link ${link} type macvlan mode passthru`;

/** Faults of XDP, links above, traffic control and IPsec. */
const TRAFFIC_FAULTS: readonly ForeignFault[] = [
  {
    name: 'XDP program on the ENI',
    inject: (scene) => XDP(scene, scene.eni.ifname, 'xdpgeneric'),
    undo: ({ eni }) => `ip link set dev ${eni.ifname} xdpgeneric off`,
    finds: 'link-xdp',
  },
  {
    name: "XDP program on the Pod's host interface",
    inject: (scene) => XDP(scene, scene.hostVeth, 'xdp'),
    undo: ({ hostVeth }) => `ip link set dev ${hostVeth} xdp off`,
    finds: 'link-xdp',
  },
  {
    name: 'XDP program in the Pod',
    inject: (scene) => XDP(scene, 'eth0', 'xdpgeneric'),
    undo: () => 'ip link set dev eth0 xdpgeneric off',
    in: 'pod',
    finds: 'link-xdp',
  },
  {
    name: 'MACVLAN in mode passthru on the ENI',
    inject: ({ eni }) => PASSTHRU(eni.ifname),
    undo: () => 'ip link del other-above',
    finds: 'link-passthru',
  },
  {
    name: "MACVLAN in mode passthru on the Pod's host interface",
    inject: ({ hostVeth }) => PASSTHRU(hostVeth),
    undo: () => 'ip link del other-above',
    finds: 'link-passthru',
  },
  {
    name: 'MACVLAN in mode passthru on the ENI, in the Pod',
    inject: ({ eni, pod }) => `${PASSTHRU(eni.ifname)}; ip link set other-above netns ${pod.netns.path}`,
    undo: ({ pod }) => `nsenter --net=${pod.netns.path} ip link del other-above`,
    finds: 'link-passthru',
  },
  {
    name: 'traffic filter that drops: eBPF at the egress of the ENI',
    inject: (scene) =>
      `tc qdisc add dev ${scene.eni.ifname} clsact; tc filter add dev ${scene.eni.ifname} egress bpf da obj ${objectIn(scene, 'tc')} sec tc`,
    undo: ({ eni }) => `tc qdisc del dev ${eni.ifname} clsact`,
    finds: 'link-tc',
  },
  {
    name: "traffic filter that redirects at the ingress of the Pod's host interface",
    inject: ({ hostVeth }) =>
      `ip link add other-sink up type bridge; tc qdisc add dev ${hostVeth} clsact; tc filter add dev ${hostVeth} ingress protocol all u32 match u32 0 0 action mirred egress redirect dev other-sink`,
    undo: ({ hostVeth }) => `tc qdisc del dev ${hostVeth} clsact; ip link del other-sink`,
    finds: 'link-tc',
  },
  {
    name: 'discipline blackhole on the ENI',
    inject: ({ eni }) => `tc qdisc add dev ${eni.ifname} root blackhole`,
    undo: ({ eni }) => `tc qdisc del dev ${eni.ifname} root`,
    finds: 'link-qdisc',
  },
  {
    name: "discipline without room on the Pod's host interface",
    inject: ({ hostVeth }) => `tc qdisc add dev ${hostVeth} root pfifo limit 0`,
    undo: ({ hostVeth }) => `tc qdisc del dev ${hostVeth} root`,
    finds: 'link-qdisc',
  },
  {
    name: 'discipline with a tiny rate on the ENI',
    inject: ({ eni }) => `tc qdisc add dev ${eni.ifname} root tbf rate 8bit burst 1 latency 1ms`,
    undo: ({ eni }) => `tc qdisc del dev ${eni.ifname} root`,
    finds: 'link-qdisc',
  },
  {
    name: 'discipline without room in the Pod',
    inject: () => 'tc qdisc add dev eth0 root pfifo limit 0',
    undo: () => 'tc qdisc del dev eth0 root',
    in: 'pod',
    finds: 'link-qdisc',
  },
  {
    name: 'IPsec policy that blocks what the node sends on',
    inject: ({ trial }) => `ip xfrm policy add dst ${trial.vpc.outside.ip}/32 dir out action block`,
    undo: () => 'ip xfrm policy flush',
    finds: 'xfrm-policy',
  },
  {
    name: 'IPsec policy that blocks what the node forwards',
    inject: ({ pod }) => `ip xfrm policy add src ${pod.ip}/32 dir fwd action block`,
    undo: () => 'ip xfrm policy flush',
    finds: 'xfrm-policy',
  },
  {
    name: 'IPsec policy that blocks what the node takes',
    inject: ({ pod }) => `ip xfrm policy add src ${pod.ip}/32 dir in action block`,
    undo: () => 'ip xfrm policy flush',
    cuts: 'node',
    finds: 'xfrm-policy',
  },
  {
    name: 'IPsec policy that blocks in the Pod',
    inject: ({ trial }) => `ip xfrm policy add dst ${trial.vpc.outside.ip}/32 dir out action block`,
    undo: () => 'ip xfrm policy flush',
    in: 'pod',
    finds: 'xfrm-policy',
  },
];

/** A chain of another program with one rule, or with a policy alone. */
const chain = (family: string, hook: string, rule: string): string =>
  `nft 'table ${family} other { chain c { type filter hook ${hook} priority 0; ${rule}; }; }'`;

/** Faults of firewalls beside the hook `forward`. */
const FIREWALL_FAULTS: readonly ForeignFault[] = [
  {
    name: 'nftables: prerouting drops',
    inject: ({ pod }) => chain('inet', 'prerouting', `ip saddr ${pod.ip} drop`),
    undo: () => 'nft delete table inet other',
    finds: 'forward-policy-drop',
  },
  {
    name: 'nftables: postrouting drops',
    inject: ({ pod, eni }) => chain('ip', 'postrouting', `oifname ${eni.ifname} ip saddr ${pod.ip} drop`),
    undo: () => 'nft delete table ip other',
    finds: 'forward-policy-drop',
  },
  {
    name: 'nftables: postrouting drops IPv6',
    inject: ({ ip6 }) => chain('ip6', 'postrouting', `ip6 saddr ${ip6} drop`),
    undo: () => 'nft delete table ip6 other',
    cuts: 'outside-ipv6',
    finds: 'forward-policy-drop',
  },
  {
    name: 'nftables: the policy of input is drop',
    inject: () => chain('inet', 'input', 'policy drop'),
    undo: () => 'nft delete table inet other',
    cuts: 'node',
    finds: 'forward-policy-drop',
  },
  {
    name: 'nftables: output drops what is for the Pod',
    inject: ({ pod }) => chain('inet', 'output', `ip daddr ${pod.ip} drop`),
    undo: () => 'nft delete table inet other',
    cuts: 'node',
    finds: 'forward-policy-drop',
  },
  {
    name: "nftables: netdev ingress of the Pod's host interface",
    inject: ({ hostVeth }) => chain('netdev', `ingress device ${hostVeth}`, 'policy drop'),
    undo: () => 'nft delete table netdev other',
    finds: 'forward-policy-drop',
  },
  {
    name: 'nftables: netdev ingress of the ENI',
    inject: ({ eni, pod }) => chain('netdev', `ingress device ${eni.ifname}`, `ip daddr ${pod.ip} drop`),
    undo: () => 'nft delete table netdev other',
    finds: 'forward-policy-drop',
  },
  {
    name: 'nftables: netdev egress of the ENI',
    inject: ({ eni, pod }) => chain('netdev', `egress device ${eni.ifname}`, `ip saddr ${pod.ip} drop`),
    undo: () => 'nft delete table netdev other',
    finds: 'forward-policy-drop',
  },
  {
    name: 'nftables: inet ingress of the ENI',
    inject: ({ eni, pod }) => chain('inet', `ingress device ${eni.ifname}`, `ip daddr ${pod.ip} drop`),
    undo: () => 'nft delete table inet other',
    finds: 'forward-policy-drop',
  },
  {
    name: 'nftables: netdev ingress sends what the Pod sends to lo',
    inject: ({ hostVeth }) => chain('netdev', `ingress device ${hostVeth}`, 'fwd to "lo"'),
    undo: () => 'nft delete table netdev other',
    finds: 'forward-policy-drop',
  },
  {
    name: 'nftables: forward drops by a length that is not evaluated',
    inject: () => chain('inet', 'forward', 'meta length > 20 drop'),
    undo: () => 'nft delete table inet other',
    finds: 'firewall-not-evaluated',
  },
  {
    name: 'iptables-legacy: FORWARD accepts a TTL that is not evaluated, and drops the rest',
    inject: () => 'iptables-legacy -A FORWARD -m ttl --ttl-gt 250 -j ACCEPT; iptables-legacy -A FORWARD -j DROP',
    undo: () => 'iptables-legacy -F',
    finds: 'firewall-not-evaluated',
  },
  {
    name: 'nftables: prerouting clears the mark',
    inject: () => chain('inet', 'prerouting', 'meta mark set 0'),
    undo: () => 'nft delete table inet other',
    finds: 'mark-collision',
  },
  {
    name: 'nftables: prerouting sets TTL 1',
    inject: ({ pod }) => chain('inet', 'prerouting', `ip saddr ${pod.ip} ip ttl set 1`),
    undo: () => 'nft delete table inet other',
    finds: 'packet-rewritten',
  },
  {
    name: 'nftables: prerouting sets another destination',
    inject: ({ pod }) => chain('ip', 'prerouting', `ip saddr ${pod.ip} ip daddr set 192.0.2.99`),
    undo: () => 'nft delete table ip other',
    finds: 'packet-rewritten',
    exitCode: 0,
  },
  {
    name: 'nftables: the way back is looked for without the mark',
    inject: () => chain('inet', 'prerouting', 'meta nfproto ipv4 fib saddr . iif oif missing drop'),
    undo: () => 'nft delete table inet other',
    finds: 'rpfilter-without-mark',
  },
  {
    name: 'iptables-legacy: rpfilter without its mark',
    inject: () => 'iptables-legacy -t raw -A PREROUTING -m rpfilter --invert -j DROP',
    undo: () => 'iptables-legacy -t raw -F',
    finds: 'rpfilter-without-mark',
  },
  {
    name: 'iptables-legacy: a queue that no program reads',
    inject: ({ pod }) => `iptables-legacy -t mangle -A PREROUTING -s ${pod.ip} -j NFQUEUE --queue-num 3`,
    undo: () => 'iptables-legacy -t mangle -F',
    finds: 'forward-policy-drop',
  },
  {
    name: 'iptables-legacy: PREROUTING sets TTL 1',
    inject: ({ pod }) => `iptables-legacy -t mangle -A PREROUTING -s ${pod.ip} -j TTL --ttl-set 1`,
    undo: () => 'iptables-legacy -t mangle -F',
    finds: 'packet-rewritten',
  },
  {
    name: 'iptables-legacy: raw PREROUTING drops',
    inject: ({ pod }) => `iptables-legacy -t raw -A PREROUTING -s ${pod.ip} -j DROP`,
    undo: () => 'iptables-legacy -t raw -F',
    finds: 'forward-policy-drop',
  },
  {
    name: 'iptables-legacy: FORWARD drops',
    inject: ({ pod }) => `iptables-legacy -A FORWARD -s ${pod.ip} -j DROP`,
    undo: () => 'iptables-legacy -F',
    finds: 'forward-policy-drop',
  },
  {
    name: 'iptables-nft: raw PREROUTING drops',
    inject: ({ pod }) => `iptables-nft -t raw -A PREROUTING -s ${pod.ip} -j DROP`,
    undo: () => 'nft delete table ip raw',
    finds: 'forward-policy-drop',
  },
];

const WRONG_MAC = '02:de:ad:be:ef:09';

const fixedNeighbour = (ip: string, link: string, state = 'permanent'): string =>
  `ip neigh replace ${ip} lladdr ${WRONG_MAC} dev ${link} nud ${state}`;

/** Writes a setting; entries that the kernel has learned are forgotten, as they would answer for a while. */
const setting = (name: string, value: number, flushed?: string): string =>
  `echo ${value} >/proc/sys/net/${name}${flushed === undefined ? '' : `; ip neigh flush dev ${flushed}`}`;

/** Faults of neighbours, settings, rules and routes. */
const NETNS_FAULTS: readonly ForeignFault[] = [
  {
    name: "fixed neighbour: the ENI's gateway",
    inject: ({ gateway, eni }) => fixedNeighbour(gateway, eni.ifname),
    undo: ({ gateway, eni }) => `ip neigh del ${gateway} dev ${eni.ifname}`,
    finds: 'neigh-wrong-mac',
  },
  {
    name: "fixed neighbour: the ENI's gateway, without ARP",
    inject: ({ gateway, eni }) => fixedNeighbour(gateway, eni.ifname, 'noarp'),
    undo: ({ gateway, eni }) => `ip neigh del ${gateway} dev ${eni.ifname}`,
    finds: 'neigh-wrong-mac',
  },
  {
    name: "fixed neighbour: the ENI's IPv6 gateway",
    inject: ({ gateway6, eni }) => fixedNeighbour(gateway6, eni.ifname),
    undo: ({ gateway6, eni }) => `ip neigh del ${gateway6} dev ${eni.ifname}`,
    cuts: 'outside-ipv6',
    finds: 'neigh-wrong-mac',
  },
  {
    name: 'fixed neighbour: the Pod',
    inject: ({ pod, hostVeth }) => fixedNeighbour(pod.ip, hostVeth),
    undo: ({ pod, hostVeth }) => `ip neigh del ${pod.ip} dev ${hostVeth}`,
    finds: 'neigh-wrong-mac',
  },
  {
    name: 'fixed neighbour: the Pod, IPv6',
    inject: ({ ip6, hostVeth }) => fixedNeighbour(ip6, hostVeth),
    undo: ({ ip6, hostVeth }) => `ip neigh del ${ip6} dev ${hostVeth}`,
    cuts: 'outside-ipv6',
    finds: 'neigh-wrong-mac',
  },
  {
    name: 'mcast_solicit 0 on the ENI',
    inject: ({ eni: { ifname } }) => setting(`ipv4/neigh/${ifname}/mcast_solicit`, 0, ifname),
    undo: ({ eni: { ifname } }) => setting(`ipv4/neigh/${ifname}/mcast_solicit`, 3, ifname),
    finds: 'setting-stops-packets',
  },
  {
    name: "mcast_solicit 0 on the Pod's host interface",
    inject: ({ hostVeth }) => setting(`ipv4/neigh/${hostVeth}/mcast_solicit`, 0, hostVeth),
    undo: ({ hostVeth }) => setting(`ipv4/neigh/${hostVeth}/mcast_solicit`, 3, hostVeth),
    finds: 'setting-stops-packets',
  },
  {
    name: "IPv6 mcast_solicit 0 on the Pod's host interface",
    inject: ({ hostVeth }) => setting(`ipv6/neigh/${hostVeth}/mcast_solicit`, 0, hostVeth),
    undo: ({ hostVeth }) => setting(`ipv6/neigh/${hostVeth}/mcast_solicit`, 3, hostVeth),
    cuts: 'outside-ipv6',
    finds: 'setting-stops-packets',
  },
  {
    name: 'arp_ignore 8 in the Pod',
    inject: ({ trial, hostVeth }) =>
      `${setting('ipv4/conf/eth0/arp_ignore', 8)}; nsenter --net=${trial.node.netns.path} ip neigh flush dev ${hostVeth}`,
    undo: () => setting('ipv4/conf/eth0/arp_ignore', 0),
    in: 'pod',
    finds: 'setting-stops-packets',
  },
  {
    name: 'arp_ignore 2 for all of the Pod',
    inject: ({ trial, hostVeth }) =>
      `${setting('ipv4/conf/all/arp_ignore', 2)}; nsenter --net=${trial.node.netns.path} ip neigh flush dev ${hostVeth}`,
    undo: () => setting('ipv4/conf/all/arp_ignore', 0),
    in: 'pod',
    finds: 'setting-stops-packets',
  },
  {
    name: 'ip_default_ttl 1 in the Pod',
    inject: () => setting('ipv4/ip_default_ttl', 1),
    undo: () => setting('ipv4/ip_default_ttl', 64),
    in: 'pod',
    finds: 'setting-stops-packets',
  },
  {
    name: 'hop_limit 1 in the Pod',
    inject: () => setting('ipv6/conf/eth0/hop_limit', 1),
    undo: () => setting('ipv6/conf/eth0/hop_limit', 64),
    in: 'pod',
    cuts: 'outside-ipv6',
    finds: 'setting-stops-packets',
  },
  {
    name: 'no rule leads to table local',
    inject: () => 'ip rule del pref 0',
    undo: () => 'ip rule add pref 0 from all lookup local',
    cuts: 'node',
    finds: 'rule-missing',
    explains: 'route-missing',
  },
  {
    name: 'blackhole route to the Pod in table local',
    inject: ({ pod }) => `ip route add blackhole ${pod.ip}/32 table local`,
    undo: ({ pod }) => `ip route del blackhole ${pod.ip}/32 table local`,
    finds: 'blackhole-route',
  },
  {
    name: 'unreachable route in the place of the route to the Pod',
    inject: ({ pod }) => `ip route replace unreachable ${pod.ip}/32 table 3999`,
    undo: ({ pod, hostVeth }) => `ip route replace ${pod.ip}/32 dev ${hostVeth} table 3999 proto 84 scope link`,
    finds: 'blackhole-route',
  },
  {
    name: "prohibit route in the ENI's table",
    inject: ({ trial, table }) => `ip route add prohibit ${trial.vpc.outside.ip}/32 table ${table}`,
    undo: ({ trial, table }) => `ip route del prohibit ${trial.vpc.outside.ip}/32 table ${table}`,
    finds: 'blackhole-route',
  },
  {
    name: 'rule that is unreachable, above ours',
    inject: ({ pod }) => `ip rule add pref 1 from ${pod.ip} unreachable`,
    undo: () => 'ip rule del pref 1',
    finds: 'foreign-rule-above-ours',
  },
  {
    name: 'rule that is a blackhole, above ours',
    inject: ({ pod }) => `ip rule add pref 100 to ${pod.ip} blackhole`,
    undo: () => 'ip rule del pref 100',
    finds: 'foreign-rule-above-ours',
  },
  {
    name: 'rule that is unreachable for ICMP, above ours',
    inject: () => 'ip rule add pref 100 ipproto icmp unreachable',
    undo: () => 'ip rule del pref 100',
    finds: 'foreign-rule-above-ours',
  },
  {
    name: 'rules that are unreachable for ICMP, TCP and UDP, above ours',
    inject: () => ['icmp', 'tcp', 'udp'].map((each) => `ip rule add pref 100 ipproto ${each} unreachable`).join('; '),
    undo: () => 'ip rule del pref 100; ip rule del pref 100; ip rule del pref 100',
    finds: 'foreign-rule-above-ours',
  },
  {
    name: 'rule that skips ours',
    inject: () => 'ip rule add pref 100 from all goto 32766',
    undo: () => 'ip rule del pref 100',
    finds: 'foreign-rule-above-ours',
    explains: 'route-missing',
  },
];

const ip6Off = (link: string): string => setting(`ipv6/conf/${link}/disable_ipv6`, 1);

/** As networkd with LinkLocalAddressing=no; the neighbours that are known age out within minutes. */
const noLinkLocal = (link: string): string =>
  `ip link set dev ${link} addrgenmode none; ip -6 address flush dev ${link} scope link; ip -6 neigh flush dev ${link}`;

/** IPv6 state of the plan. */
export const IPV6_FAULTS: readonly ForeignFault[] = [
  {
    name: 'disable_ipv6 1 on the ENI',
    inject: ({ eni }) => ip6Off(eni.ifname),
    undo: () => 'true',
    cuts: 'outside-ipv6',
    finds: 'eni-without-address',
    isPlanned: true,
  },
  {
    name: "disable_ipv6 1 on the Pod's host interface",
    inject: ({ hostVeth }) => ip6Off(hostVeth),
    undo: () => 'true',
    cuts: 'outside-ipv6',
    finds: 'route-missing',
    isPlanned: true,
  },
  {
    name: 'no link-local address on the ENI',
    inject: ({ eni }) => noLinkLocal(eni.ifname),
    undo: () => 'true',
    cuts: 'outside-ipv6',
    finds: 'link-local-missing',
    isPlanned: true,
  },
  {
    name: "no link-local address on the Pod's host interface",
    inject: ({ hostVeth }) => noLinkLocal(hostVeth),
    undo: () => 'true',
    cuts: 'outside-ipv6',
    finds: 'link-local-missing',
    isPlanned: true,
  },
  {
    name: 'disable_ipv6 1 in the Pod',
    inject: () => ip6Off('eth0'),
    undo: () => 'true',
    in: 'pod',
    cuts: 'outside-ipv6',
    finds: 'pod-address-missing',
    isPlanned: true,
  },
  {
    name: 'IPv6 forwarding 0',
    inject: () => setting('ipv6/conf/all/forwarding', 0),
    undo: () => 'true',
    cuts: 'outside-ipv6',
    finds: 'ip-forward-off',
    isPlanned: true,
  },
];

/** State that looks as if it stopped packets, and does not: nothing may call it an error. */
export const HARMLESS: readonly Omit<ForeignFault, 'finds'>[] = [
  {
    name: 'arp_ignore 8 on the ENI',
    inject: ({ eni: { ifname } }) => setting(`ipv4/conf/${ifname}/arp_ignore`, 8, ifname),
    undo: ({ eni: { ifname } }) => setting(`ipv4/conf/${ifname}/arp_ignore`, 0),
  },
  {
    name: 'arp_filter 1 on the ENI',
    inject: ({ eni: { ifname } }) => setting(`ipv4/conf/${ifname}/arp_filter`, 1, ifname),
    undo: ({ eni: { ifname } }) => setting(`ipv4/conf/${ifname}/arp_filter`, 0),
  },
  {
    name: 'arp_filter 1 in the Pod',
    inject: ({ trial, hostVeth }) =>
      `${setting('ipv4/conf/eth0/arp_filter', 1)}; nsenter --net=${trial.node.netns.path} ip neigh flush dev ${hostVeth}`,
    undo: () => setting('ipv4/conf/eth0/arp_filter', 0),
    in: 'pod',
  },
  {
    name: 'arp_ignore 1 in the Pod',
    inject: ({ trial, hostVeth }) =>
      `${setting('ipv4/conf/eth0/arp_ignore', 1)}; nsenter --net=${trial.node.netns.path} ip neigh flush dev ${hostVeth}`,
    undo: () => setting('ipv4/conf/eth0/arp_ignore', 0),
    in: 'pod',
  },
  {
    name: 'rp_filter of all 1',
    inject: () => setting('ipv4/conf/all/rp_filter', 1),
    undo: () => setting('ipv4/conf/all/rp_filter', 0),
  },
  {
    name: 'rp_filter 1 in the Pod',
    inject: () => setting('ipv4/conf/eth0/rp_filter', 1),
    undo: () => setting('ipv4/conf/eth0/rp_filter', 0),
    in: 'pod',
  },
  {
    name: 'IPv6 forwarding 0 on the ENI alone',
    inject: ({ eni }) => setting(`ipv6/conf/${eni.ifname}/forwarding`, 0),
    undo: ({ eni }) => setting(`ipv6/conf/${eni.ifname}/forwarding`, 1),
    cuts: 'outside-ipv6',
  },
  {
    name: 'multicast off on the ENI',
    inject: ({ eni: { ifname } }) => `ip link set ${ifname} multicast off; ip neigh flush dev ${ifname}`,
    undo: ({ eni: { ifname } }) => `ip link set ${ifname} multicast on`,
    cuts: 'outside-ipv6',
  },
  {
    name: 'MACVLAN in mode bridge on the ENI',
    inject: ({ eni }) => `ip link add other-above link ${eni.ifname} type macvlan mode bridge`,
    undo: () => 'ip link del other-above',
  },
  {
    name: 'clsact on the ENI, without a filter',
    inject: ({ eni }) => `tc qdisc add dev ${eni.ifname} clsact`,
    undo: ({ eni }) => `tc qdisc del dev ${eni.ifname} clsact`,
  },
  {
    name: "shaper of the CNI plugin bandwidth on the Pod's host interface",
    inject: ({ hostVeth }) => `tc qdisc add dev ${hostVeth} root tbf rate 10mbit burst 64kb latency 25ms`,
    undo: ({ hostVeth }) => `tc qdisc del dev ${hostVeth} root`,
  },
  {
    name: 'firewall that lets the node take answers and one port',
    inject: () => chain('inet', 'input', 'policy drop; ct state established accept; tcp dport 22 accept'),
    undo: () => 'nft delete table inet other',
  },
];

/** All that is in no plan. */
export const FOREIGN_FAULTS: readonly ForeignFault[] = [...FIREWALL_FAULTS, ...TRAFFIC_FAULTS, ...NETNS_FAULTS];

/** One of each kind: what `make test` tries. */
const SHORT: readonly string[] = [
  'nftables: netdev ingress of the ENI',
  "fixed neighbour: the ENI's gateway",
  "mcast_solicit 0 on the Pod's host interface",
  'XDP program on the ENI',
  "traffic filter that redirects at the ingress of the Pod's host interface",
  'IPsec policy that blocks what the node forwards',
];

/** Reports whether `make test` tries a fault end to end. */
export const isShortForeignFault = ({ name }: ForeignFault): boolean => SHORT.includes(name);
