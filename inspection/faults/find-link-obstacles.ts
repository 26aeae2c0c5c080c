import { isKataTap } from '../../dataplane/decide-inside.ts';
import { flowFilterOf } from '../../dataplane/fast-path/flow-filter.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { type QdiscMessage, qdiscLimits } from '../../netlink/qdisc-message.ts';
import { filterEffect, type TrafficAction, type TrafficFilterMessage } from '../../netlink/traffic-filter-message.ts';
import { MACVLAN_MODE_PASSTHRU, XDP_ATTACHED_NONE } from '../../netlink/uapi/if-link.ts';
import {
  TC_ACT_SHOT,
  TC_ACT_STOLEN,
  TC_H_MIN_EGRESS,
  TC_H_MIN_INGRESS,
  TCA_EGRESS_REDIR,
  TCA_INGRESS_REDIR,
} from '../../netlink/uapi/pkt-sched.ts';
import { finding } from '../catalogue/catalogue.ts';
import type { ElementId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import type { NodePod } from '../node/join-pods.ts';
import { ifKnown } from '../node/known.ts';
import type { NetnsFacts } from '../node/node-facts.ts';

/** A link, and how messages and commands name it. */
export type NamedLink = {
  readonly link: LinkMessage;
  /** 'eth1', or 'eth0 in Pod default/web-0'. */
  readonly title: string;
  readonly subjects: readonly ElementId[];
  /** What stands before a command that is for its namespace: '' or 'nsenter --net=… '. */
  readonly prefix: string;
};

/**
 * Finds what other programs attached to a link that takes its packets: XDP programs, traffic filters, disciplines, links
 * above it. A program or filter whose verdict cannot be known counts as one that drops, but for our own and those of
 * network policy engines.
 * @param pods Pods that may have a link above one of the host
 */
export function findLinkObstacles(
  netns: Pick<NetnsFacts, 'links' | 'traffic'>,
  named: NamedLink,
  pods: readonly NodePod[] = [],
): readonly Finding[] {
  const { ifindex } = named.link;
  const qdiscs = (ifKnown(netns.traffic.qdiscs) ?? []).filter((qdisc) => qdisc.ifindex === ifindex);
  const filters = (ifKnown(netns.traffic.filters) ?? []).filter((filter) => filter.ifindex === ifindex);
  return [
    ...xdpFault(named),
    ...passthruFault(netns.links, named),
    ...pods.flatMap((pod) => passthruFault(linksOnHost(pod), named, `nsenter --net=${netnsOf(pod)} `)),
    ...qdiscs.flatMap((qdisc) => qdiscFault(qdisc, named)),
    ...filters.flatMap((filter) => filterFault(filter, netns.links, named)),
  ];
}

function xdpFault({ link, title, subjects, prefix }: NamedLink): readonly Finding[] {
  const { attached = XDP_ATTACHED_NONE, programId } = link.xdp ?? {};
  if (attached === XDP_ATTACHED_NONE) return [];
  const program = programId === undefined ? 'XDP programs decide' : `the XDP program ${programId} decides`;
  return [
    finding('link-xdp', {
      what: `${program} about each packet that comes in by ${title}, before the node does anything with it`,
      fix: [
        ...(XDP_MODES[attached] ?? ALL_XDP_MODES).map((mode) => `${prefix}ip link set dev ${link.ifname} ${mode} off`),
        ...(programId === undefined ? [] : [`bpftool prog show id ${programId}`]),
      ],
      subjects,
    }),
  ];
}

const ALL_XDP_MODES = ['xdpdrv', 'xdpgeneric', 'xdpoffload'];

/** Words of `ip link set` by XDP_ATTACHED_*: `xdp off` of a link whose driver has XDP leaves a generic program there. */
const XDP_MODES: Readonly<Record<number, readonly string[]>> = {
  1: ['xdpdrv'],
  2: ['xdpgeneric'],
  3: ['xdpoffload'],
};

function passthruFault(
  links: readonly LinkMessage[],
  { link, title, subjects, prefix }: NamedLink,
  prefixAbove = prefix,
): readonly Finding[] {
  const above = links.find((each) => each.link === link.ifindex && each.macvlan?.mode === MACVLAN_MODE_PASSTHRU);
  if (above === undefined || above.ifindex === link.ifindex) return [];
  return [
    finding('link-passthru', {
      what: `${above.ifname} (${above.kind}, mode passthru) is above ${title} and takes all that comes in by it`,
      fix: [`${prefixAbove}ip link del ${above.ifname}`, 'stop the program that adds it'],
      subjects,
    }),
  ];
}

/** Returns links of a Pod whose lower device is in the host's namespace, as the other end of its own interface is. */
function linksOnHost({ pod, podLink }: NodePod): readonly LinkMessage[] {
  const links = ifKnown(pod.inside)?.links ?? [];
  return podLink?.linkNetnsid === undefined
    ? []
    : links.filter(({ linkNetnsid }) => linkNetnsid === podLink.linkNetnsid);
}

function netnsOf({ lease }: NodePod): string {
  return lease?.netns ?? '<netns>';
}

/** Longer than this one packet must not take: whatever sends gives up meanwhile. */
const MAX_SECONDS_A_PACKET = 1;

function qdiscFault(qdisc: QdiscMessage, { link, title, subjects, prefix }: NamedLink): readonly Finding[] {
  const drop = dropOf(qdisc, link.mtu);
  if (drop === undefined) return [];
  return [
    finding('link-qdisc', {
      what: `the discipline ${qdisc.kind} of ${title} ${drop.text}`,
      fix: [`${prefix}tc qdisc del dev ${link.ifname} root`, 'stop the program that adds it'],
      subjects,
      ...(drop.isAll ? {} : { severity: 'warning' as const }),
    }),
  ];
}

function dropOf(qdisc: QdiscMessage, mtu: number): { readonly text: string; readonly isAll: boolean } | undefined {
  if (qdisc.kind === 'blackhole') return { text: 'drops all that it sends', isAll: true };
  const { limit, rate, burst, loss } = qdiscLimits(qdisc);
  if (limit === 0) return { text: 'has room for no packet (limit 0): all that it sends is dropped', isAll: true };
  if (rate !== undefined && mtu / rate > MAX_SECONDS_A_PACKET) {
    return { text: `sends ${rate} bytes a second: a packet of ${mtu} bytes waits forever`, isAll: true };
  }
  if (burst !== undefined && burst < mtu) {
    return { text: `drops packets above ${burst} bytes (its burst); the MTU is ${mtu}`, isAll: true };
  }
  if (loss !== undefined && loss > 0) {
    return { text: `drops ${Math.round(loss * 100)} % of what it sends`, isAll: loss > 0.99 };
  }
  return undefined;
}

/** Names of the programs of Cilium and Calico, which let pass what their policies allow. */
const POLICY_ENGINES = /^(cil_|bpf_(host|lxc|netdev|network|overlay)\b|cali)/;

function filterFault(
  filter: TrafficFilterMessage,
  links: readonly LinkMessage[],
  { link, title, subjects, prefix }: NamedLink,
): readonly Finding[] {
  const { actions, program } = filterEffect(filter);
  const taken = actions.map((action) => takenBy(action, links)).find((text) => text !== undefined);
  const isOurs = flowFilterOf(filter) !== undefined;
  const isForeign = program !== undefined && !isOurs && !POLICY_ENGINES.test(program);
  const effect = isForeign ? `with the program ${program} decides about each packet` : taken;
  if (effect === undefined) return [];
  const place = placeOf(filter);
  return [
    finding('link-tc', {
      what: `a traffic filter (${filter.kind}) at the ${place.text} of ${title} ${effect}`,
      fix: [
        `${prefix}tc filter show dev ${link.ifname} ${place.word}`,
        `${prefix}tc filter del dev ${link.ifname} ${place.word}`,
      ],
      subjects,
    }),
  ];
}

function placeOf({ parent }: TrafficFilterMessage): { readonly text: string; readonly word: string } {
  if ((parent & 0xffff) === TC_H_MIN_EGRESS) return { text: 'egress', word: 'egress' };
  if ((parent & 0xffff) === TC_H_MIN_INGRESS) return { text: 'ingress', word: 'ingress' };
  return { text: 'root discipline', word: 'root' };
}

/** Returns what an action does with a packet, when it does not continue on its way. */
function takenBy({ kind, control, mirred }: TrafficAction, links: readonly LinkMessage[]): string | undefined {
  if (mirred === undefined)
    return control === TC_ACT_SHOT || control === TC_ACT_STOLEN ? `drops packets (${kind})` : undefined;
  if (mirred.how !== TCA_EGRESS_REDIR && mirred.how !== TCA_INGRESS_REDIR) return undefined;
  const to = links.find(({ ifindex }) => ifindex === mirred.ifindex);
  // An ifb link shapes what comes in, and gives it back: the CNI plugin bandwidth uses it. By its tap Kata leads packets to the
  // virtual machine, which has the Pod's address too.
  return to !== undefined && (to.kind === 'ifb' || isKataTap(to))
    ? undefined
    : `redirects packets to ${to?.ifname ?? `if${mirred.ifindex}`}`;
}
