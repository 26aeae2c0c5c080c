import { forwarding, ipForward, parseSysctlName, rpFilter, sysctlName } from '../../sysctl/sysctl-key.ts';
import { finding } from '../catalogue/catalogue.ts';
import { linkId, sysctlId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import { findRewriteFault } from '../faults/find-rewrite-fault.ts';
import { findFullConntrack } from '../faults/find-setting-fault.ts';
import { findXfrmFault } from '../faults/find-xfrm-fault.ts';
import { nodeFirewalls } from '../firewall/node-firewalls.ts';
import { linkName, type ModelEni, type ModelPod } from '../model/node-model.ts';
import { effective, evaluateSourceCheck, type SourceCheck } from './evaluate-source-check.ts';
import { expectedRouteOfMark } from './expected-route.ts';
import type { ExplainContext } from './explain-context.ts';
import type { Hop } from './explanation.ts';
import { type Forwarded, findForwardFault, HOOKS_OF } from './find-forward-fault.ts';
import { type ExpectedRoute, findRoutingFault } from './find-routing-fault.ts';
import { hopOf, mostSevere } from './hop.ts';
import { refusalText, routeText, ruleText } from './routing-text.ts';

/** A packet that the node has to forward. */
type Passing = Pick<Forwarded, 'family' | 'src' | 'dst' | 'isFirst'> & {
  readonly iif: number;
  readonly oif: number | undefined;
};

/** Evaluates whether the node forwards what comes in by a link, and why not. */
export function forwardingHop(
  context: ExplainContext,
  { iif, oif, ...packet }: Passing,
): { readonly hop: Hop; readonly isOn: boolean } {
  const { family } = packet;
  const { host } = context.facts;
  const ifname = linkName(host.links, iif);
  // IPv4 uses the setting of the incoming link, IPv6 that of `all`.
  const key = sysctlName(forwarding(family, family === 4 ? ifname : 'all'));
  const value = host.sysctls.get(key);
  const all = family === 4 ? sysctlName(ipForward()) : key;
  const isOn = value !== '0';
  const fields = {
    kind: 'sysctl' as const,
    element: sysctlId(key),
    title: `forwarding is ${value === undefined ? 'not known' : isOn ? 'on' : 'off'} for ${family === 4 ? ifname : 'IPv6'}`,
    details: [
      `${key} = ${value ?? 'not there'}`,
      ...(all === key ? [] : [`${all} = ${host.sysctls.get(all) ?? 'not there'}`]),
    ],
  };
  if (isOn) {
    const oifs = oif === undefined ? [] : [linkName(host.links, oif)];
    const fault = mostSevere(
      findForwardFault(context, { ...packet, iifs: [ifname], oifs }),
      ...rewriteFaults(context, { ...packet, iifs: [ifname], oifs }),
      findXfrmFault(host, { ...packet, dir: 'fwd', ifindex: iif }, 'the node'),
      findXfrmFault(host, { ...packet, dir: 'out', ifindex: oif }, 'the node'),
      findFullConntrack(host),
    );
    return { hop: hopOf(fields, fault), isOn };
  }
  const isAll = host.sysctls.get(all) === '0';
  const off =
    context.assessment.about(sysctlId(isAll ? all : key), ['ip-forward-off']) ??
    context.assessment.ofHost({ kind: 'set-sysctl', key: parseSysctlName(isAll ? all : key), value: '1', before: '0' });
  return { hop: hopOf(fields, off), isOn };
}

function rewriteFaults(
  { facts }: ExplainContext,
  { isFirst: _, ...packet }: Forwarded,
): readonly (Finding | undefined)[] {
  const chains = nodeFirewalls(facts.host).filter(({ hook }) => HOOKS_OF.forwarded.some((each) => each === hook));
  return chains.map((chain) => findRewriteFault(chain, packet));
}

/** Builds the hop of a packet that is for the node itself, when something takes it before a program gets it. */
export function deliveryHop(context: ExplainContext, { iif, ...packet }: Passing): Hop | undefined {
  const { host } = context.facts;
  const ifname = linkName(host.links, iif);
  const fault = mostSevere(
    findForwardFault(context, { ...packet, iifs: [ifname], oifs: [] }, HOOKS_OF.delivered),
    findXfrmFault(host, { ...packet, dir: 'in', ifindex: iif }, 'the node'),
  );
  if (fault === undefined) return undefined;
  return hopOf(
    { kind: 'nft', element: linkId(iif), title: `delivery to the node of what comes in by ${ifname}` },
    fault,
  );
}

/** Builds the hop of a packet that the node sends itself, when something takes it before it leaves. */
export function outputHop(context: ExplainContext, { oif, ...packet }: Omit<Passing, 'iif'>): Hop | undefined {
  const { host } = context.facts;
  const oifs = oif === undefined ? [] : [linkName(host.links, oif)];
  const fault = mostSevere(
    findForwardFault(context, { ...packet, iifs: [], oifs }, HOOKS_OF.sent),
    findXfrmFault(host, { ...packet, dir: 'out', ifindex: oif }, 'the node'),
  );
  if (fault === undefined) return undefined;
  return hopOf(
    { kind: 'nft', element: linkId(oif ?? 0), title: `what the node sends by ${linkName(host.links, oif)}` },
    fault,
  );
}

/** An IPv4 packet whose source is checked. */
type Checked = {
  readonly src: string;
  readonly dst: string;
  readonly iif: number;
  readonly mark: number;
  readonly oif: number | undefined;
  /** The Pod that sends it, by its host veth; undefined for a packet from an ENI. */
  readonly pod: ModelPod | undefined;
  readonly eni: ModelEni | undefined;
  /** The route that a packet to the source should take; it explains why the check fails. */
  readonly back: ExpectedRoute | undefined;
};

/** Simulates the source validation of an IPv4 packet. */
export function sourceCheckHop(
  context: ExplainContext,
  packet: Checked,
): { readonly hop: Hop; readonly isDropped: boolean } {
  const { host } = context.facts;
  const ifname = linkName(host.links, packet.iif);
  const check = evaluateSourceCheck(host, packet, packet.oif);
  const key = sysctlName(rpFilter(ifname));
  const details = [
    `${key} = ${host.sysctls.get(key) ?? '?'}, all = ${host.sysctls.get(sysctlName(rpFilter('all'))) ?? '?'}; the larger counts`,
    `way back to ${packet.src}: ${reverseText(check, host.links)}`,
    effective(host, ifname, 'src_valid_mark') > 0
      ? `src_valid_mark is on: looked up with mark 0x${packet.mark.toString(16)}`
      : undefined,
  ];
  const fields = { kind: 'sysctl' as const, element: sysctlId(key), title: titleOf(check, ifname), details };
  const fault = check.isDropped ? dropFault(context, packet, check, ifname) : offFault(context, packet, check, ifname);
  return { hop: hopOf(fields, fault), isDropped: check.isDropped };
}

const MODES: Readonly<Record<number, string>> = { 0: 'off', 1: 'strict', 2: 'loose' };

function titleOf(check: SourceCheck, ifname: string): string {
  return `source check on ${ifname} is ${MODES[check.mode] ?? check.mode}: ${check.isDropped ? `drops it (${REASONS[check.why]})` : 'passes'}`;
}

const REASONS: Readonly<Record<SourceCheck['why'], string>> = {
  'same-link': '',
  off: '',
  loose: '',
  'other-link': 'the answer would leave by another link',
  'no-route': 'no route leads back',
  'no-address': 'the link has no IPv4 address, where loose is strict',
  martian: 'the source is an address of this node',
};

function reverseText({ reverse }: SourceCheck, links: ExplainContext['facts']['host']['links']): string {
  if (reverse.kind === 'refused') return refusalText(reverse.code);
  return `rule ${ruleText(reverse.rule)}, ${routeText(reverse.route, links)}`;
}

function dropFault(context: ExplainContext, packet: Checked, check: SourceCheck, ifname: string): Finding | undefined {
  const { pod, eni, src, back, iif } = packet;
  const { facts, assessment } = context;
  if (pod !== undefined && !pod.ips.includes(src)) return forged(packet, ifname);
  // Strict mode is correct on a Pod's link: the fault is the route back.
  if (pod !== undefined && back !== undefined) return wayBackFault(context, check, back);
  const bare = check.why === 'no-address' ? assessment.about(linkId(iif), ['eni-without-address'], 4) : undefined;
  if (bare !== undefined) return bare;
  const byMark =
    eni !== undefined && context.ruleMode === 'compact' ? expectedRouteOfMark(context, eni, src) : undefined;
  const planned = back ?? byMark;
  if (check.why === 'no-route' && planned !== undefined) return wayBackFault(context, check, planned);
  const isByAll = check.mode === Number(facts.host.sysctls.get(sysctlName(rpFilter('all'))));
  const own = sysctlId(sysctlName(rpFilter(ifname)));
  const found = check.mode === 1 ? assessment.about(own, ['rp-filter-strict']) : undefined;
  if (found !== undefined) return found;
  const key = sysctlName(rpFilter(isByAll ? 'all' : ifname));
  return finding('rp-filter-strict', {
    what: `${ifname} drops packets from ${src}: rp_filter is ${MODES[check.mode] ?? check.mode} and ${REASONS[check.why]}`,
    fix: ['tke-eni repair', `sysctl -w ${key}=2`, 'grep -rn rp_filter /etc/sysctl.conf /etc/sysctl.d'],
    subjects: [sysctlId(key)],
  });
}

function forged({ pod, src }: Checked, ifname: string): Finding {
  return finding('source-not-ours', {
    what: `${src} is no address of ${pod?.title}: the node drops the packet as forged (strict rp_filter on ${ifname})`,
    fix: [`let the Pod send with ${pod?.ips.join(' or ')}`],
    subjects: [sysctlId(sysctlName(rpFilter(ifname)))],
    isOurs: false,
  });
}

function wayBackFault(
  { facts, assessment }: ExplainContext,
  check: SourceCheck,
  back: ExpectedRoute,
): Finding | undefined {
  const { reverse } = check;
  const route = reverse.kind === 'route' ? reverse.route : undefined;
  const hop = reverse.kind === 'route' ? reverse.nexthops[0] : undefined;
  const { rules, links } = facts.host;
  const way = { family: 4, result: reverse, route, oif: hop?.oif, gateway: hop?.gateway, expected: back } as const;
  return findRoutingFault({ ...way, rules, links, assessment })?.finding;
}

function offFault(
  { assessment }: ExplainContext,
  { pod }: Checked,
  check: SourceCheck,
  ifname: string,
): Finding | undefined {
  if (pod?.isOurs !== true || check.mode !== 0) return undefined;
  const key = rpFilter(ifname);
  return (
    assessment.about(sysctlId(sysctlName(key)), ['rp-filter-off']) ??
    assessment.ofHost({ kind: 'set-sysctl', key, value: '1', before: '0' })
  );
}
