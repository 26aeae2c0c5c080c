import { familyOf } from '../../agent/journal/lease.ts';
import { hostPrefix } from '../../dataplane/ip-prefix.ts';
import { NODEPORT_MARK, PRIORITY, RTPROT_TKE_ENI, TABLE_MAIN, TABLE_POD_ROUTES } from '../../dataplane/numbers.ts';
import type { RuleSpec } from '../../netlink/rule-message.ts';
import { RT_TABLE_LOCAL } from '../../netlink/uapi/rtnetlink.ts';
import type { EniView, ExplainContext, PodView } from './explain-context.ts';
import type { ExpectedRoute } from './find-routing-fault.ts';
import { addressFamily } from './flow.ts';

/** Returns the route that packets to a Pod should take: its host route; undefined when the Pod's link is not known. */
export function expectedRouteToPod({ ruleMode }: ExplainContext, view: PodView, ip: string): ExpectedRoute | undefined {
  const isCompact = ruleMode === 'compact';
  const dst = hostPrefix(ip);
  const table = isCompact ? TABLE_POD_ROUTES : TABLE_MAIN;
  // The plugin that wired a Pod without a veth of tke-eni also routes its packets.
  if (!view.isOurs) return undefined;
  const rule: RuleSpec = isCompact
    ? ours(ip, { priority: PRIORITY.podHostRoutes, table })
    : ours(ip, { priority: PRIORITY.toPod, dst, table });
  // No interface has index 0: without a veth no route can match.
  return { rule, table, oif: view.veth?.ifindex ?? 0, dst, what: `the host route of ${view.title}`, pod: view };
}

/** Returns the route that packets of a Pod out of the node should take: in the table of its ENI. */
export function expectedRouteByEni(
  context: ExplainContext,
  view: PodView,
  src: string,
  mark: number,
): ExpectedRoute | undefined {
  const { eni } = view;
  const { node, ruleMode, mask } = context;
  if (node?.egress === 'node' && (mark & NODEPORT_MARK) !== 0) return expectedRouteByPrimary(context, view, src);
  if (eni === undefined || !view.ips.includes(src)) return undefined;
  const isPerPod = ruleMode === 'per-pod' || !view.isOurs;
  const rule = isPerPod
    ? ours(src, { priority: PRIORITY.fromPod, src: hostPrefix(src), table: eni.table })
    : ours(src, { priority: PRIORITY.eniMark, fwmark: eni.mark, fwmask: mask, table: eni.table });
  return { rule, ...byTable(eni, src) };
}

/** Returns the route that packets from an ENI's own address should take. */
export function expectedRouteFromPrimary(eni: EniView, src: string): ExpectedRoute {
  const rule = ours(src, { priority: PRIORITY.fromEniPrimary, src: hostPrefix(src), table: eni.table });
  return { rule, ...byTable(eni, src) };
}

/** Returns the route that packets for the node itself should take: in the kernel's table of local addresses. */
export function expectedRouteToNode(ip: string): ExpectedRoute {
  return {
    rule: undefined,
    table: RT_TABLE_LOCAL,
    oif: undefined,
    dst: hostPrefix(ip),
    what: `the local route of ${ip}`,
  };
}

function expectedRouteByPrimary({ node }: ExplainContext, view: PodView, src: string): ExpectedRoute | undefined {
  if (node === undefined) return undefined;
  const rule = ours(src, {
    priority: PRIORITY.nodePort,
    fwmark: NODEPORT_MARK,
    fwmask: NODEPORT_MARK,
    table: TABLE_MAIN,
  });
  const { ifindex, ifname } = node.primary;
  return {
    rule,
    table: TABLE_MAIN,
    oif: ifindex,
    dst: 'default',
    what: `the default route by ${ifname}`,
    alternativeOif: view.eni?.ifindex ?? 0,
  };
}

function byTable(eni: EniView, src: string): Omit<ExpectedRoute, 'rule'> {
  const gateway = eni.network?.addresses.find(({ ip }) => familyOf(ip) === familyOf(src))?.gateway;
  return {
    table: eni.table,
    oif: eni.ifindex ?? 0,
    dst: 'default',
    what: `the default route of ${eni.title}`,
    eni,
    ...(gateway === undefined ? {} : { gateway }),
  };
}

function ours(ip: string, rule: Omit<RuleSpec, 'family' | 'protocol'>): RuleSpec {
  return { ...rule, family: addressFamily(familyOf(ip)), protocol: RTPROT_TKE_ENI };
}
