import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FindingId } from '../../../cli/catalogue.ts';
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
  /** Finding of doctor and explain. */
  readonly finds: FindingId;
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

/** Faults of XDP, traffic control and IPsec. */
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

/** All of them. */
export const FOREIGN_FAULTS: readonly ForeignFault[] = [...FIREWALL_FAULTS, ...TRAFFIC_FAULTS];

/** One of each kind: what `make test` tries. */
const SHORT: readonly string[] = [
  'nftables: netdev ingress of the ENI',

  'XDP program on the ENI',
  "traffic filter that redirects at the ingress of the Pod's host interface",
  'IPsec policy that blocks what the node forwards',
];

/** Tells whether `make test` tries a fault end to end. */
export const isShortForeignFault = ({ name }: ForeignFault): boolean => SHORT.includes(name);
