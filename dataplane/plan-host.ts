import { acceptRa, forwarding, ipForward, rpFilter } from '../sysctl/sysctl-key.ts';
import { EMPTY_STATE, type HostState, type RouteState, type RuleState, type SysctlState } from './desired.ts';
import { canonicalPrefix, type Family, familyOf } from './ip-prefix.ts';
import type { ConnectedNetwork, EniNetwork, NodeNetwork, PodCidr } from './network.ts';
import { nftTable } from './nft-table.ts';
import { NODEPORT_MARK, PRIORITY, TABLE_CONNECTED, TABLE_MAIN, TABLE_POD_ROUTES } from './numbers.ts';

/**
 * Plans what a node needs independently of its Pods: settings, the rules that exist once, and the nftables table of all
 * its ENIs.
 */
export function planHost(node: NodeNetwork, enis: readonly EniNetwork[]): HostState {
  return {
    ...EMPTY_STATE,
    sysctls: hostSysctls(node),
    routes: connectedOf(node).map(connectedRoute),
    rules: hostRules(node),
    ...(node.nftables === false ? {} : { nft: nftTable(node, enis) }),
  };
}

function hostSysctls(node: NodeNetwork): readonly SysctlState[] {
  const { ifname } = node.primary;
  const isProduct = node.rpFilterMode === 'product';
  return [
    { key: ipForward(), value: '1' },
    ...(isProduct ? [{ key: rpFilter('all'), value: '0' }] : []),
    // The effective value is max(all, interface). Loose, because packets may come in by one of these interfaces while
    // the route to their source leaves by another.
    { key: rpFilter(ifname), value: isProduct ? '0' : '2' },
    ...(node.families.includes(6) ? ipv6Sysctls(ifname) : []),
  ];
}

function ipv6Sysctls(primary: string): readonly SysctlState[] {
  return [
    // A forwarding host ignores RAs where accept_ra is 1, and drops a default route that came from one: a node that
    // depends on RAs would lose its connectivity. So 1 becomes 2 ("even when forwarding") first; a node that accepts no
    // RAs keeps its 0.
    { key: acceptRa(primary), value: '2', replaces: '1', isOptional: true },
    { key: forwarding(6, 'all'), value: '1' },
  ];
}

function hostRules(node: NodeNetwork): readonly RuleState[] {
  return [
    // Before all others: a packet of an ENI's Pod to a Pod of this block would leave by the ENI, and come back by the
    // route of the VPC.
    ...node.podCidrs.map(podCidrRule),
    ...(node.ruleMode === 'compact'
      ? node.families.map((family) => ({ family, priority: PRIORITY.podHostRoutes, table: TABLE_POD_ROUTES }))
      : []),
    ...(needsPrimaryMark(node) ? node.families.map(primaryMarkRule) : []),
    ...[...new Set(connectedOf(node).map(({ cidr }) => familyOf(cidr)))].map(connectedRule),
  ];
}

function podCidrRule({ cidr }: PodCidr): RuleState {
  const dst = canonicalPrefix(cidr);
  return { family: familyOf(dst), priority: PRIORITY.podCidr, dst, table: TABLE_MAIN };
}

// One rule serves both: replies of NodePort connections and, with `--egress=node`, packets to addresses outside the
// VPC.
function needsPrimaryMark(node: NodeNetwork): boolean {
  return node.nftables !== false && (node.nodePort || node.egress === 'node' || node.hasDirect === true);
}

function primaryMarkRule(family: 4 | 6): RuleState {
  return { family, priority: PRIORITY.nodePort, fwmark: NODEPORT_MARK, fwmask: NODEPORT_MARK, table: TABLE_MAIN };
}

function connectedOf({ connected = [], families }: NodeNetwork): readonly ConnectedNetwork[] {
  return connected.filter(({ cidr }) => families.includes(familyOf(cidr)));
}

// A copy of the route in main, which goes with the link as that one does: a packet never leaves by the primary instead.
// It has the source of that one, because packets of the node itself take it too.
function connectedRoute({ cidr, ifindex, ifname, prefsrc }: ConnectedNetwork): RouteState {
  return {
    ...{ table: TABLE_CONNECTED, dst: cidr, oif: ifindex, oifname: ifname },
    ...(familyOf(cidr) === 4 ? { scope: 'link' as const } : {}),
    ...(prefsrc === undefined ? {} : { prefsrc }),
  };
}

function connectedRule(family: Family): RuleState {
  return { family, priority: PRIORITY.connectedNetworks, table: TABLE_CONNECTED };
}
