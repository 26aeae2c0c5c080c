import { acceptRa, disableIpv6, forwarding, rpFilter, srcValidMark } from '../sysctl/sysctl-key.ts';
import { EMPTY_STATE, type HostState, type RouteState, type RuleState, type SysctlState } from './desired.ts';
import { eniMark } from './eni-mark.ts';
import { anyPrefix, canonicalAddress, familyOf, hostPrefix, isLinkLocal } from './ip-prefix.ts';
import type { EniNetwork, NodeNetwork } from './network.ts';
import { PRIORITY } from './numbers.ts';
import { planLinklessRoutes, planPodRules } from './plan-pod-rules.ts';
import { unreachableRoute } from './unreachable-route.ts';

/**
 * Plans one shared ENI: its link, its primary address as /32 or /128, its table and its rules, and those of Pods that
 * another program wires.
 *
 * The address is required for three reasons. A device without any IPv4 address drops, under loose rp_filter, everything
 * that comes in. The node's ARP request for the gateway would contain another interface's address. Masqueraded Pod
 * traffic would get the primary's address, which the VPC drops on this port. A /32 makes no connected route, so main
 * never routes the subnet through the ENI.
 */
export function planEni(node: NodeNetwork, eni: EniNetwork): HostState {
  return {
    ...EMPTY_STATE,
    links: [
      {
        // The VPC drops what comes with another MAC than that of the ENI.
        ...{ ifindex: eni.ifindex, ifname: eni.ifname, mtu: eni.mtu, mac: eni.mac, up: true, arp: true, master: 0 },
        ...(eni.addresses.some(({ ip }) => familyOf(ip) === 6) && { linkLocal: true as const }),
      },
    ],
    addresses: eni.addresses.map(({ ip }) => ({ ifindex: eni.ifindex, ifname: eni.ifname, prefix: hostPrefix(ip) })),
    routes: [
      ...eni.addresses.flatMap(({ gateway }) => eniRoutes(eni, canonicalAddress(gateway))),
      // The routes above go with the link. Then packets that only this ENI may carry must not go on to table main, and leave
      // by the primary interface with the addresses of Pods.
      ...node.families.map((family) => unreachableRoute(eni.table, anyPrefix(family))),
      ...planLinklessRoutes(eni.podIps ?? []),
    ],
    rules: [
      ...markRules(node, eni),
      ...eni.addresses.map(({ ip }) => fromPrimaryRule(eni, ip)),
      ...planPodRules(eni.podIps ?? [], eni.table),
    ],
    sysctls: eniSysctls(node, eni),
  };
}

function eniRoutes(eni: EniNetwork, gateway: string): readonly RouteState[] {
  const family = familyOf(gateway);
  const common = { table: eni.table, oif: eni.ifindex, oifname: eni.ifname };
  const viaGateway: RouteState = { ...common, dst: anyPrefix(family), gateway };
  // No connected route contains the gateway. Its own route comes first, or the kernel refuses the default route:
  // "Nexthop has invalid gateway". A link-local gateway is reachable on each link.
  if (isLinkLocal(gateway)) return [viaGateway];
  const toGateway: RouteState = {
    ...common,
    dst: hostPrefix(gateway),
    ...(family === 4 ? { scope: 'link' as const } : {}),
  };
  return [toGateway, viaGateway];
}

function markRules(node: NodeNetwork, eni: EniNetwork): readonly RuleState[] {
  if (node.ruleMode !== 'compact') return [];
  return node.families.map((family) => ({
    family,
    priority: PRIORITY.eniMark,
    fwmark: eniMark(eni.slot, node.eniMarkMask),
    fwmask: node.eniMarkMask,
    table: eni.table,
  }));
}

function fromPrimaryRule(eni: EniNetwork, ip: string): RuleState {
  return { family: familyOf(ip), priority: PRIORITY.fromEniPrimary, src: hostPrefix(ip), table: eni.table };
}

function eniSysctls(node: NodeNetwork, eni: EniNetwork): readonly SysctlState[] {
  const hasIpv4 = eni.addresses.some(({ ip }) => familyOf(ip) === 4);
  const hasIpv6 = eni.addresses.some(({ ip }) => familyOf(ip) === 6);
  return [
    { key: rpFilter(eni.ifname), value: node.rpFilterMode === 'product' ? '0' : '2' },
    // The check looks up the way back with the mark that the packet got on its arrival: by the ENI's table, not by main.
    ...(node.ruleMode === 'compact' && hasIpv4 ? [{ key: srcValidMark(eni.ifname), value: '1' }] : []),
    // Answers to Pods come in here: they are forwarded only if this setting of the link itself is on.
    ...(hasIpv4 ? [{ key: forwarding(4, eni.ifname), value: '1' }] : []),
    // A router advertisement in the ENI's subnet must not add a default route through this ENI to main.
    { key: acceptRa(eni.ifname), value: '0', isOptional: true },
    ...(hasIpv6 ? [{ key: disableIpv6(eni.ifname), value: '0' }] : []),
  ];
}
