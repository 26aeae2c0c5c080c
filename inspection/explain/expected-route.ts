import { addressFamily } from '../../dataplane/address-family.ts';
import { familyOf, hostPrefix } from '../../dataplane/ip-prefix.ts';
import {
  BRIDGE_IFINDEX,
  NODEPORT_MARK,
  PRIORITY,
  RTPROT_TKE_ENI,
  TABLE_CONNECTED,
  TABLE_MAIN,
  TABLE_POD_ROUTES,
} from '../../dataplane/numbers.ts';
import type { RuleSpec } from '../../netlink/rule-message.ts';
import { RT_TABLE_LOCAL } from '../../netlink/uapi/rtnetlink.ts';
import type { GrView } from '../model/gr-view.ts';
import type { ModelEni, ModelPod } from '../model/node-model.ts';
import { consequenceWithoutBlockRule } from '../node/consequence-without-block-rule.ts';
import { prefixBits, prefixContains } from '../node/prefix-contains.ts';
import { bridgeFault } from './bridge-hop.ts';
import type { ExplainContext } from './explain-context.ts';
import type { ExpectedRoute } from './find-routing-fault.ts';
import { primaryLink } from './gr-hops.ts';

/**
 * Returns the route that packets to a Pod should take: its host route, or that of its block to the bridge; undefined when
 * the Pod's link is not known.
 */
export function expectedRouteToPod(context: ExplainContext, view: ModelPod, ip: string): ExpectedRoute | undefined {
  const isCompact = context.ruleMode === 'compact';
  if (view.gr?.wiring === 'bridge') return expectedRouteToBridge(context, view.gr);
  const dst = hostPrefix(ip);
  const table = isCompact ? TABLE_POD_ROUTES : TABLE_MAIN;
  // The plugin that wired a Pod without a veth of tke-eni also routes its packets.
  if (!view.isOurs) return undefined;
  const rule: RuleSpec = isCompact
    ? ours(ip, { priority: PRIORITY.podHostRoutes, table })
    : view.gr === undefined
      ? ours(ip, { priority: PRIORITY.toPod, dst, table })
      : blockRule(view.gr);
  const byBlock =
    isCompact || view.gr === undefined ? {} : { withoutRule: consequenceWithoutBlockRule(context.ruleMode) };
  // No interface has index 0: without a veth no route can match.
  return {
    rule,
    table,
    oif: view.veth?.ifindex ?? 0,
    dst,
    what: `the host route of ${view.title}`,
    pod: view,
    ...byBlock,
  };
}

/** As `expectedRouteToPod`, for a packet of another Pod of this node, which has a way to an ENI of a Pod's own without it too. */
export function expectedRouteBetweenPods(
  context: ExplainContext,
  view: ModelPod,
  ip: string,
): ExpectedRoute | undefined {
  const route = expectedRouteToPod(context, view, ip);
  return route && { ...route, ...(view.hasOwnEni && { withoutRule: DETOUR_TO_OWN_ENI }) };
}

const DETOUR_TO_OWN_ENI = {
  why: "Detour: the packet leaves by the sender's ENI, and the VPC leads it to the ENI that the Pod has as its own. It passes the security groups of both.",
  severity: 'warning',
} as const;

function expectedRouteToBridge(context: ExplainContext, gr: GrView): ExpectedRoute {
  const { bridge } = context;
  const cause = bridgeFault(context);
  return {
    rule: blockRule(gr),
    table: TABLE_MAIN,
    oif: bridge.link?.ifindex ?? BRIDGE_IFINDEX,
    dst: gr.cidr,
    what: `the route of ${gr.cidr} to the bridge ${bridge.name}`,
    ...(cause?.severity === 'error' && { cause }),
    withoutRule: consequenceWithoutBlockRule(context.ruleMode),
  };
}

function blockRule({ cidr }: GrView): RuleSpec {
  return ours(cidr, { priority: PRIORITY.podCidr, dst: cidr, table: TABLE_MAIN });
}

/** Returns the route by which packets of a GlobalRoute Pod should leave the node: by the primary interface. */
export function expectedRouteOfGr(context: ExplainContext, dst: string): ExpectedRoute | undefined {
  const primary = primaryLink(context);
  // A route of another program to a network of its own, as to that of a container engine, is no fault.
  const { routes } = context.facts.host;
  const more = routes
    .filter((route) => route.table === TABLE_MAIN && prefixContains(route.dst, dst) && route.dst !== undefined)
    .toSorted((a, b) => prefixBits(b.dst) - prefixBits(a.dst))[0];
  if (primary === undefined || (more !== undefined && more.oif !== primary.ifindex)) return undefined;
  const rule = { family: addressFamily(familyOf(dst)), priority: MAIN_RULE, table: TABLE_MAIN };
  return {
    rule,
    table: TABLE_MAIN,
    oif: primary.ifindex,
    dst: 'default',
    what: `the route by ${primary.ifname}`,
  };
}

/** Priority of the kernel's own rule for table main. */
const MAIN_RULE = 32_766;

/** Returns the route to a network that is connected to the node by a link of another program, as the agent recorded it. */
export function expectedRouteToConnected({ node }: ExplainContext, dst: string): ExpectedRoute | undefined {
  const found = (node?.connected ?? [])
    .filter(({ cidr }) => prefixContains(cidr, dst))
    .toSorted((a, b) => (prefixBits(b.cidr) ?? 0) - (prefixBits(a.cidr) ?? 0))[0];
  if (found === undefined) return undefined;
  const { cidr, ifindex, ifname } = found;
  const table = TABLE_CONNECTED;
  const rule = ours(dst, { priority: PRIORITY.connectedNetworks, table });
  return { rule, table, oif: ifindex, dst: cidr, what: `the route of ${cidr} by ${ifname}` };
}

/** Returns the route that packets of a Pod out of the node should take: in the table of its ENI. */
export function expectedRouteByEni(
  context: ExplainContext,
  view: ModelPod,
  src: string,
  mark: number,
): ExpectedRoute | undefined {
  const { eni } = view;
  const { node, ruleMode, mask } = context;
  if (node?.egress === 'node' && (mark & NODEPORT_MARK) !== 0) return expectedRouteByPrimary(context, view, src);
  if (eni === undefined || !view.ips.includes(src)) return undefined;
  // The main plugin has a rule and a table of its own.
  if (view.lease?.uplink === true) return undefined;
  const isPerPod = ruleMode === 'per-pod' || !view.isOurs;
  const rule = isPerPod
    ? ours(src, { priority: PRIORITY.fromPod, src: hostPrefix(src), table: eni.table })
    : ours(src, { priority: PRIORITY.eniMark, fwmark: eni.mark, fwmask: mask, table: eni.table });
  return { rule, ...byTable(eni, src) };
}

/** Returns the route by which answers to what comes in by an ENI should leave, in compact mode: that of its mark. */
export function expectedRouteOfMark({ mask }: ExplainContext, eni: ModelEni, ip: string): ExpectedRoute {
  const rule = ours(ip, { priority: PRIORITY.eniMark, fwmark: eni.mark, fwmask: mask, table: eni.table });
  return { rule, ...byTable(eni, ip) };
}

/** Returns the route that packets from an ENI's own address should take. */
export function expectedRouteFromPrimary(eni: ModelEni, src: string): ExpectedRoute {
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

function expectedRouteByPrimary({ node }: ExplainContext, view: ModelPod, src: string): ExpectedRoute | undefined {
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

function byTable(eni: ModelEni, src: string): Omit<ExpectedRoute, 'rule'> {
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
