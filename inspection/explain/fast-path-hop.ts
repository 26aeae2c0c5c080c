import { type FlowFilter, flowFilterOf } from '../../dataplane/fast-path/flow-filter.ts';
import { FLOW_TTL_NS, type Flow as LearnedFlow } from '../../dataplane/fast-path/flow-layout.ts';
import { linkId } from '../catalogue/element-id.ts';
import { linkName } from '../model/node-model.ts';
import { ifKnown } from '../node/known.ts';
import type { HostFacts, Known } from '../node/node-facts.ts';
import type { ExplainContext } from './explain-context.ts';
import type { Hop } from './explanation.ts';
import { hopOf } from './hop.ts';
import type { FollowedFlows } from './kernel-answer.ts';

/** A forwarded packet. */
type Forwarded = {
  readonly src: string;
  readonly dst: string;
  readonly iif: number;
  readonly oif: number | undefined;
  /** Which of the two addresses the Pod has that is explained. */
  readonly own: 'src' | 'dst';
  /** Whether its addresses are translated: only a flowtable follows such flows. */
  readonly isTranslated?: boolean;
};

/** Number of flows that a hop lists, and of links of a flowtable. */
const [SHOWN_FLOWS, SHOWN_LINKS] = [5, 8];

/**
 * Builds the hop that says whether packets of a known flow pass all this at once, and which flows are known now. Undefined
 * where the node has no fast path. It is no fault when a link has no program, or is not in the flowtable: packets take the kernel's
 * own way.
 */
export function fastPathHop(
  { facts, readFlows }: Pick<ExplainContext, 'facts' | 'readFlows'>,
  packet: Forwarded,
): Hop | undefined {
  const { iif, oif, isTranslated = false } = packet;
  if (oif === undefined) return undefined;
  const { links, nft } = facts.host;
  const flowLinks = ifKnown(nft)?.flowLinks;
  if (flowLinks !== undefined) return flowtableHop(flowLinks, iif, [linkName(links, iif), linkName(links, oif)]);
  const filters = filtersOf(facts.host);
  if (filters.length === 0 || isTranslated) return undefined;
  const [from, to] = [linkName(links, iif), linkName(links, oif)];
  const fast = filters.find(({ ifindex, program }) => ifindex === iif && program === 'fast');
  const learn = filters.find(({ ifindex, program }) => ifindex === oif && program === 'learn');
  const fields = { kind: 'link' as const, element: linkId(iif) };
  if (fast === undefined || learn === undefined) {
    const missing = fast === undefined ? `${from} has no program at its ingress` : `${to} has none at its egress`;
    return hopOf({ ...fields, title: `fast path: not from ${from} to ${to}`, details: [missing] });
  }
  return hopOf({
    ...fields,
    title: `fast path: packets of followed flows go from ${from} to ${to} at once`,
    details: flowLines(readFlows(fast.programId), packet),
  });
}

/** The kernel lists the flows of a flowtable by connection tracking only. */
function flowtableHop(flowLinks: readonly string[], iif: number, way: readonly [string, string]): Hop {
  const [from, to] = way;
  const missing = way.find((name) => !flowLinks.includes(name));
  const title =
    missing === undefined
      ? `fast path: the flowtable follows flows from ${from} to ${to}`
      : `fast path: not from ${from} to ${to}, ${missing} is not in the flowtable`;
  const others = flowLinks.filter((name) => !way.includes(name));
  const listed = [...way.filter((name) => flowLinks.includes(name)), ...others];
  const more = listed.length > SHOWN_LINKS ? [`and ${listed.length - SHOWN_LINKS} more`] : [];
  const names = [...listed.slice(0, SHOWN_LINKS), ...more].join(', ');
  const details = [`links in the flowtable: ${names || 'none'}`, 'flows that it follows: conntrack -L | grep OFFLOAD'];
  return hopOf({ kind: 'link', element: linkId(iif), title, details });
}

function filtersOf({ traffic }: HostFacts): readonly FlowFilter[] {
  return (ifKnown(traffic.filters) ?? []).flatMap((filter) => flowFilterOf(filter) ?? []);
}

/** Flows of the Pod, those with the other address of the packet first. */
function flowLines(read: Known<FollowedFlows>, { iif, oif, own, ...packet }: Forwarded): readonly string[] {
  if (read.kind === 'unknown') return [`which flows are followed is not known: ${read.why}`, `next: ${read.next}`];
  const { flows, nowNs } = read.value;
  const other = own === 'src' ? 'dst' : 'src';
  const ofPod = flows.filter((flow) => flow.iif === iif && flow.oif === oif && flow[own] === packet[own]);
  const isNamed = (flow: LearnedFlow): boolean => flow[other] === packet[other];
  const sorted = [...ofPod.filter(isNamed), ...ofPod.filter((flow) => !isNamed(flow))];
  const more = ofPod.length > SHOWN_FLOWS ? [`and ${ofPod.length - SHOWN_FLOWS} more`] : [];
  const shown = sorted.slice(0, SHOWN_FLOWS).map((flow) => flowLine(flow, nowNs));
  return [`flows of ${packet[own]} that are followed: ${ofPod.length}`, ...shown, ...more];
}

function flowLine({ protocol, src, sport, dst, dport, expiryNs }: LearnedFlow, nowNs: bigint): string {
  const agoMs = Math.max(0, Number((nowNs - expiryNs) / 1_000_000n) + FLOW_TTL_NS / 1_000_000);
  return `${protocol} ${portText(src, sport)} to ${portText(dst, dport)}: the kernel decided ${Math.round(agoMs)} ms ago`;
}

function portText(ip: string, port: number): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`;
}
