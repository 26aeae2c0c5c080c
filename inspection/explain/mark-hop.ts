import { hex } from '../../dataplane/eni-mark.ts';
import { NFT_TABLE, NODEPORT_MARK, PRIORITY } from '../../dataplane/numbers.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { finding } from '../catalogue/catalogue.ts';
import { linkId, podId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import type { FirewallChain } from '../firewall/build-firewall-chains.ts';
import type { Packet } from '../firewall/evaluate-chain.ts';
import { rewritesAt } from '../firewall/evaluate-firewall-chain.ts';
import { evaluatePacketMark, type NftVerdict } from '../firewall/evaluate-packet-mark.ts';
import { nodeFirewalls } from '../firewall/node-firewalls.ts';
import type { ModelEni, ModelPod } from '../model/node-model.ts';
import { expectedRouteToPod } from './expected-route.ts';
import type { ExplainContext } from './explain-context.ts';
import type { Hop } from './explanation.ts';
import { findRoute, type RouteResult } from './find-route.ts';
import { findRoutingFault } from './find-routing-fault.ts';
import { hopOf, mostSevere, unknownHop } from './hop.ts';

/** Element id of the table of tke-eni, for findings and the graph. */
const ELEMENT = `nft:${NFT_TABLE}`;

/** A packet that arrives on a link of the node, before it is routed. */
type Incoming = {
  readonly family: 4 | 6;
  readonly src: string;
  readonly dst: string;
  readonly link: LinkMessage;
  /** The Pod that has the link as its host veth; undefined for an ENI. */
  readonly pod: ModelPod | undefined;
  /** The ENI whose link it is. */
  readonly eni?: ModelEni;
  readonly isLocal: boolean;
  /**
   * Whether the mark selects the route: not for the node's own addresses and for Pods of this node, which earlier rules
   * match.
   */
  readonly isRoutedByMark: boolean;
};

/** The mark that a packet gets, and the hop that shows it. */
type Marked = { readonly hop: Hop; readonly mark: number; readonly isDropped: boolean };

/** Evaluates what the nftables table of tke-eni does with a packet that opens a connection. */
export function evaluateMark(context: ExplainContext, packet: Incoming): Marked {
  const { nft } = context.facts.host;
  const expected = expectedMark(context, packet);
  const fields = { kind: 'nft' as const, element: ELEMENT };
  if (nft.kind === 'unknown') {
    const title = `mark ${hex(expected)} expected of nftables table inet ${NFT_TABLE}`;
    return { hop: unknownHop({ ...fields, title }, nft.why, nft.next), mark: expected, isDropped: false };
  }
  if (nft.value.ourTable === undefined) return withoutTable(context, packet, expected);
  const verdict = evaluatePacketMark(nft.value.objects, {
    family: packet.family,
    src: packet.src,
    dst: packet.dst,
    iifname: packet.link.ifname,
    iifgroup: packet.link.group,
    mark: 0,
    direction: 'original',
    ctMark: 0,
    isSourceRouted: isSourceRouted(context, packet),
    isLocal: packet.isLocal,
  });
  const isDropped = verdict.verdict === 'drop';
  const title = isDropped
    ? `nftables table inet ${NFT_TABLE} drops it`
    : `nftables table inet ${NFT_TABLE} gives mark ${hex(verdict.mark)}`;
  const fault = isDropped
    ? dropped(context, packet)
    : mostSevere(markFault(context, packet, expected, verdict), overwritten(context, packet, verdict));
  const hop = hopOf({ ...fields, title, details: details(context, packet, verdict) }, fault);
  return { hop, mark: verdict.mark, isDropped };
}

/** Finds what changes the mark after our table, where the mark selects the route. */
function overwritten(
  context: ExplainContext,
  { family, src, dst, link, isRoutedByMark }: Incoming,
  { mark }: NftVerdict,
): Finding | undefined {
  if (!isRoutedByMark || context.ruleMode !== 'compact') return undefined;
  return findMarkFault(context, { family, src, dst, iifs: [link.ifname], oifs: [] }, mark);
}

/** Returns the expected mark. In compact mode packets of a Pod and of an ENI carry the mark of the ENI; all others carry none. */
function expectedMark({ ruleMode }: ExplainContext, { pod, eni = pod?.eni }: Incoming): number {
  return ruleMode === 'compact' && pod?.isOurs !== false ? (eni?.mark ?? 0) : 0;
}

function withoutTable(context: ExplainContext, packet: Incoming, expected: number): Marked {
  const isPlanned = context.ruleMode === 'compact' || context.plannedNft.kind === 'known';
  const fields = { kind: 'nft' as const, element: ELEMENT, title: `no nftables table inet ${NFT_TABLE}: mark 0x0` };
  const { pod, eni = pod?.eni } = packet;
  // Each ENI has a mark; without a record the rules and the table say which, and may be gone.
  const isMarked = context.ruleMode === 'compact' && pod?.isOurs !== false && eni !== undefined;
  const details = [`mark expected: ${isMarked && expected === 0 ? 'not known' : hex(expected)}`];
  if (!isPlanned) return { hop: hopOf({ ...fields, details }), mark: 0, isDropped: false };
  const weight = isMarked && packet.isRoutedByMark ? {} : { severity: 'warning' as const };
  const missing = { ...context.assessment.table(), ...weight };
  return { hop: hopOf({ ...fields, details }, missing), mark: 0, isDropped: false };
}

function details(
  context: ExplainContext,
  packet: Incoming,
  { chains, unsupported, mark }: NftVerdict,
): readonly string[] {
  const { node, ruleMode } = context;
  const expected = expectedMark(context, packet);
  const by = packet.pod === undefined ? packet.link.ifname : `${packet.link.ifname} (link group ${packet.link.group})`;
  const primary = node?.primary.ifname ?? 'the primary interface';
  return [
    `in by ${by}: chains ${chains.join(' > ')}`,
    ...(((mark ^ expected) & context.mask) === 0 ? [] : [`mark expected: ${hex(expected)}`]),
    ...unsupported.map((statement) => `not understood, left out: ${statement}`),
    // Answers get another mark than the packet that is explained here.
    ...(packet.pod !== undefined && node?.nodePort !== false
      ? [
          `NodePort: answers of connections that came in by ${primary}, or by another link that is no ENI, get mark ${hex(NODEPORT_MARK)} and leave by rule ${PRIORITY.nodePort}`,
        ]
      : []),
    ...(ruleMode === 'per-pod' ? ['per-pod mode: rules by source lead Pods, no mark is needed'] : []),
  ];
}

function markFault(
  context: ExplainContext,
  packet: Incoming,
  expected: number,
  verdict: NftVerdict,
): Finding | undefined {
  const { mask, node } = context;
  const isChanged = context.assessment.about(ELEMENT, ['nft-table-changed']) !== undefined;
  // With --egress=node the table sets the NodePort bit on purpose.
  const isMarked = (verdict.mark & NODEPORT_MARK) !== 0;
  // So are packets that a Pod with an ENI of its own sends by the node.
  const isByNode = isMarked && (node?.egress === 'node' || packet.pod?.hasOwnEni === true);
  const isWrongMark = (verdict.mark & mask) >>> 0 !== expected || (isMarked && !isByNode);
  if (!isWrongMark && !isChanged) return undefined;
  const weight = isWrongMark && packet.isRoutedByMark ? {} : { severity: 'warning' as const };
  const group = isChanged ? undefined : context.assessment.about(linkId(packet.link.ifindex), ['link-group-wrong']);
  return { ...(group ?? context.assessment.table()), ...weight };
}

function dropped(context: ExplainContext, packet: Incoming): Finding {
  const { src, link, pod, family } = packet;
  const isPodAddress = pod?.ips.includes(src) === true;
  const { host } = context.facts;
  const back = isPodAddress ? expectedRouteToPod(context, pod, src) : undefined;
  const result = routeBack(context, packet);
  const { oif, gateway } = result.kind === 'route' ? (result.nexthops[0] ?? {}) : {};
  const route = result.kind === 'route' ? result.route : undefined;
  // The table drops the Pod's own address as forged when the route back to it is broken. Then that route is the fault.
  const fault =
    back === undefined
      ? undefined
      : findRoutingFault({
          family,
          result,
          route,
          oif,
          gateway,
          expected: back,
          rules: host.rules,
          links: host.links,
          assessment: context.assessment,
        });
  return (
    fault?.finding ??
    finding('source-not-ours', {
      what: isPodAddress
        ? `${src} is dropped as forged: no route leads back to it by ${link.ifname}`
        : `${src} is no address of ${pod?.title ?? link.ifname}: the packet is dropped as forged`,
      fix: isPodAddress
        ? ['tke-eni repair']
        : [`let the Pod send with ${pod?.ips.join(' or ') ?? 'an address of its own'}`],
      subjects: [ELEMENT, ...(pod === undefined ? [] : [podId(pod.pod.key)])],
      isOurs: isPodAddress,
    })
  );
}

/** Looks up the route back to the source, as `fib saddr . iif oif missing` does. */
function routeBack({ facts }: ExplainContext, { family, src, dst, link }: Incoming): RouteResult {
  return findRoute(facts.host, { family, dst: src, src: dst, oif: link.ifindex, mark: 0 });
}

function isSourceRouted(context: ExplainContext, packet: Incoming): boolean {
  const back = routeBack(context, packet);
  return back.kind === 'route' && back.nexthops.some(({ oif }) => oif === packet.link.ifindex);
}

/** Priority of our chain that sets the mark. @see dataplane/nft-table.ts preroutingChain */
const OUR_PRIORITY = -150;

/**
 * Finds the chain of another program that changes our bits of a packet's mark after our chain has set them, before the
 * packet is routed. It is an error where the change is certain. At our own priority the order is not known.
 */
function findMarkFault({ facts, mask }: ExplainContext, packet: Packet, mark: number): Finding | undefined {
  const bits = (mask | NODEPORT_MARK) >>> 0;
  const found = nodeFirewalls(facts.host)
    .filter(({ hook, priority }) => hook === 'prerouting' && priority >= OUR_PRIORITY)
    .flatMap((chain) => changeBy(chain, packet, { mark, bits }) ?? []);
  return found.find(({ severity }) => severity === 'error') ?? found[0];
}

function changeBy(
  chain: FirewallChain,
  packet: Packet,
  { mark, bits }: { readonly mark: number; readonly bits: number },
): Finding | undefined {
  for (const { rewrite, isSure } of rewritesAt(chain, packet)) {
    if (rewrite.kind !== 'mark') continue;
    const after = rewrite.after(mark);
    // What a rule copies from elsewhere is not known, and mostly the mark that the connection had.
    if (after === undefined || ((after ^ mark) & bits) === 0) continue;
    const isCertain = isSure && chain.priority > OUR_PRIORITY;
    return finding('mark-collision', {
      what: `${chain.name} ${isCertain ? 'changes' : 'may change'} its mark from ${hex(mark)} to ${hex(after)}; our bits are ${hex(bits)}`,
      fix: [chain.show, 'let that program leave our bits as they are, or give the agent another --eni-mark-mask'],
      subjects: [chain.element],
      severity: isCertain ? 'error' : 'warning',
    });
  }
  return undefined;
}
