import { hex } from '../../dataplane/eni-mark.ts';
import { NFT_TABLE, NODEPORT_MARK, PRIORITY } from '../../dataplane/numbers.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { finding } from '../catalogue.ts';
import type { Finding } from '../finding.ts';
import { podId } from '../node/element-id.ts';
import type { Hop } from './explanation.ts';
import { hopOf, unknownHop } from './find-hop.ts';
import { leadsToPod } from './find-leads.ts';
import { findPacketMark, type NftVerdict } from './find-packet-mark.ts';
import { findRoute, type Reading } from './find-route.ts';
import { findRoutingFault } from './find-routing-fault.ts';
import type { PodView, Situation } from './find-situation.ts';

/** Element id of the table of tke-eni, for findings and the graph. */
const ELEMENT = `nft:${NFT_TABLE}`;
const REPAIR = 'tke-eni repair';

/** A packet that arrives on a link of the node, before it is routed. */
type Incoming = {
  readonly family: 4 | 6;
  readonly src: string;
  readonly dst: string;
  readonly link: LinkMessage;
  /** The Pod that has the link as its host veth; undefined for an ENI. */
  readonly pod: PodView | undefined;
  readonly isLocal: boolean;
  /**
   * Whether the mark selects the route: not for the node's own addresses and for Pods of this node, which earlier rules
   * match.
   */
  readonly isLedByMark: boolean;
};

/** The mark that a packet gets, and the hop that shows it. */
type Marked = { readonly hop: Hop; readonly mark: number; readonly isDropped: boolean };

/** Evaluates what the nftables table of tke-eni does with a packet that opens a connection. */
export function findMark(situation: Situation, packet: Incoming): Marked {
  const { nft } = situation.facts.host;
  const wanted = wantedMark(situation, packet);
  const parts = { kind: 'nft' as const, element: ELEMENT };
  if (nft.kind === 'unknown') {
    const title = `mark ${hex(wanted)} expected of nftables table inet ${NFT_TABLE}`;
    return { hop: unknownHop({ ...parts, title }, nft.why, nft.next), mark: wanted, isDropped: false };
  }
  if (nft.value.ourTable === undefined) return withoutTable(situation, packet, wanted);
  const verdict = findPacketMark(nft.value.objects, {
    family: packet.family,
    src: packet.src,
    dst: packet.dst,
    iifname: packet.link.ifname,
    iifgroup: packet.link.group,
    mark: 0,
    direction: 'original',
    ctMark: 0,
    isSourceRouted: isSourceRouted(situation, packet),
    isLocal: packet.isLocal,
  });
  const isDropped = verdict.verdict === 'drop';
  const title = isDropped
    ? `nftables table inet ${NFT_TABLE} drops it`
    : `nftables table inet ${NFT_TABLE} gives mark ${hex(verdict.mark)}`;
  const fault = isDropped ? dropped(situation, packet) : markFault(situation, packet, wanted, verdict);
  const hop = hopOf({ ...parts, title, details: details(situation, packet, verdict) }, fault);
  return { hop, mark: verdict.mark, isDropped };
}

/** Returns the expected mark. In compact mode a Pod's packets carry the mark of its ENI; all others carry none. */
function wantedMark({ ruleMode }: Situation, { pod }: Incoming): number {
  return ruleMode === 'compact' && pod?.isOurs !== false ? (pod?.eni?.mark ?? 0) : 0;
}

function withoutTable(situation: Situation, packet: Incoming, wanted: number): Marked {
  const isPlanned = situation.ruleMode === 'compact' || situation.wantedNft.kind === 'known';
  const parts = { kind: 'nft' as const, element: ELEMENT, title: `no nftables table inet ${NFT_TABLE}: mark 0x0` };
  const details = [`mark expected: ${hex(wanted)}`];
  if (!isPlanned) return { hop: hopOf({ ...parts, details }), mark: 0, isDropped: false };
  const missing = finding('nft-table-missing', {
    what: `nftables table inet ${NFT_TABLE} is not there${wanted === 0 ? '' : `: the packet has no mark of ${packet.pod?.eni?.title}`}`,
    fix: [REPAIR, 'look for a firewall service that runs `nft flush ruleset` (nftables.service, firewalld)'],
    subjects: [ELEMENT],
    ...(wanted === 0 || !packet.isLedByMark ? { severity: 'warning' as const } : {}),
  });
  return { hop: hopOf({ ...parts, details }, missing), mark: 0, isDropped: false };
}

function details(situation: Situation, packet: Incoming, { chains, strange }: NftVerdict): readonly string[] {
  const { node, ruleMode } = situation;
  const by = packet.pod === undefined ? packet.link.ifname : `${packet.link.ifname} (link group ${packet.link.group})`;
  const primary = node?.primary.ifname ?? 'the primary interface';
  return [
    `in by ${by}: chains ${chains.join(' > ')}`,
    ...strange.map((statement) => `not understood, left out: ${statement}`),
    // Answers get another mark than the packet that is explained here.
    ...(packet.pod !== undefined && node?.nodePort !== false
      ? [
          `NodePort: answers of connections that came in by ${primary} get mark ${hex(NODEPORT_MARK)} and leave by rule ${PRIORITY.nodePort}`,
        ]
      : []),
    ...(ruleMode === 'per-pod' ? ['per-pod mode: rules by source lead Pods, no mark is needed'] : []),
  ];
}

function markFault(situation: Situation, packet: Incoming, wanted: number, verdict: NftVerdict): Finding | undefined {
  const { wantedNft, mask, facts, node } = situation;
  const isChanged =
    wantedNft.kind === 'known' && facts.host.nft.kind === 'known' && wantedNft.value !== facts.host.nft.value.ourTable;
  // With --egress=node the table sets the NodePort bit on purpose.
  const isByNode = node?.egress === 'node' && (verdict.mark & NODEPORT_MARK) !== 0;
  const isWrong = (verdict.mark & mask) >>> 0 !== wanted || ((verdict.mark & NODEPORT_MARK) !== 0 && !isByNode);
  const isByGroup =
    packet.pod?.isOurs === true && packet.pod.eni !== undefined && packet.link.group !== packet.pod.eni.table;
  if (!isWrong && !isChanged) return undefined;
  const weight = isWrong && packet.isLedByMark ? {} : { severity: 'warning' as const };
  if (isWrong && isByGroup && !isChanged) {
    return finding('link-group-wrong', {
      what: `link group ${packet.link.group} of ${packet.link.ifname} leads to mark ${hex(verdict.mark)}, not to ${hex(wanted)} of ${packet.pod?.eni?.title}`,
      fix: [REPAIR, `ip link set ${packet.link.ifname} group ${packet.pod?.eni?.table}`],
      subjects: [ELEMENT, podId(packet.pod?.pod.key ?? '')],
      ...weight,
    });
  }
  return finding('nft-table-changed', {
    what: isWrong
      ? `nftables table inet ${NFT_TABLE} gives the packet mark ${hex(verdict.mark)}, not ${hex(wanted)}`
      : `nftables table inet ${NFT_TABLE} is not as planned; this packet gets its mark all the same`,
    fix: [REPAIR],
    subjects: [ELEMENT],
    ...weight,
  });
}

function dropped(situation: Situation, packet: Incoming): Finding {
  const { src, link, pod, family } = packet;
  const isOwn = pod?.ips.includes(src) === true;
  const { host } = situation.facts;
  const back = isOwn ? leadsToPod(situation, pod, src) : undefined;
  const reading = wayBack(situation, packet);
  const { oif, gateway } = reading.kind === 'route' ? (reading.nexthops[0] ?? {}) : {};
  const route = reading.kind === 'route' ? reading.route : undefined;
  // The table drops the Pod's own address as forged when the route back to it is broken. Then that route is the fault.
  const fault =
    back === undefined
      ? undefined
      : findRoutingFault({ family, reading, route, oif, gateway, leads: back, rules: host.rules, links: host.links });
  return (
    fault?.finding ??
    finding('source-not-ours', {
      what: isOwn
        ? `${src} is dropped as forged: no route leads back to it by ${link.ifname}`
        : `${src} is no address of ${pod?.title ?? link.ifname}: the packet is dropped as forged`,
      fix: isOwn ? [REPAIR] : [`let the Pod send with ${pod?.ips.join(' or ') ?? 'an address of its own'}`],
      subjects: [ELEMENT, ...(pod === undefined ? [] : [podId(pod.pod.key)])],
      isOurs: isOwn,
    })
  );
}

/** Looks up the route back to the source, as `fib saddr . iif oif missing` does. */
function wayBack({ facts }: Situation, { family, src, dst, link }: Incoming): Reading {
  return findRoute(facts.host, { family, dst: src, src: dst, oif: link.ifindex, mark: 0 });
}

function isSourceRouted(situation: Situation, packet: Incoming): boolean {
  const back = wayBack(situation, packet);
  return back.kind === 'route' && back.nexthops.some(({ oif }) => oif === packet.link.ifindex);
}
