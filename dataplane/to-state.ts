import type { AddressMessage } from '../netlink/address-message.ts';
import type { LinkMessage } from '../netlink/link-message.ts';
import type { RouteMessage } from '../netlink/route-message.ts';
import type { RuleMessage } from '../netlink/rule-message.ts';
import { FR_ACT_TO_TBL } from '../netlink/uapi/fib-rules.ts';
import { IFF_NOARP, IFF_PROMISC, IFF_UP } from '../netlink/uapi/if-link.ts';
import { AF_INET6 } from '../netlink/uapi/netlink.ts';
import { RT_SCOPE_LINK, RT_SCOPE_UNIVERSE, RTN_UNICAST, RTN_UNREACHABLE } from '../netlink/uapi/rtnetlink.ts';
import type { AddressState, RouteState, RuleState } from './desired.ts';
import { anyPrefix, type Family } from './ip-prefix.ts';
import type { ObservedLink, ObservedRoute, ObservedRule } from './observed.ts';
import { renderRoute, renderRule } from './operation.ts';

/** IP6_RT_PRIO_USER: the kernel's metric of an IPv6 route without one. @see uapi/linux/ipv6_route.h */
const IPV6_DEFAULT_METRIC = 1024;

/** Translates the kernel's message about a link. */
export function toLink(message: LinkMessage): ObservedLink {
  const { ifindex, ifname, mtu, group, address, kind, ifalias, master = 0, bridgePort } = message;
  return {
    ifindex,
    ifname,
    isUp: (message.flags & IFF_UP) !== 0,
    mtu,
    group,
    ...(address !== undefined && { mac: address }),
    ...((message.flags & IFF_NOARP) !== 0 && { isNoArp: true as const }),
    ...((message.flags & IFF_PROMISC) !== 0 && { isPromisc: true as const }),
    ...(bridgePort?.mode !== undefined && { hairpin: bridgePort.mode !== 0 }),
    ...(master !== 0 && { master }),
    ...(kind !== undefined && { kind }),
    ...(ifalias !== undefined && { ifalias }),
  };
}

/** Translates the kernel's message about an address. */
export function toAddress(message: AddressMessage, nameOf: (ifindex: number) => string): AddressState {
  const address = message.local ?? message.address ?? '';
  return { ifindex: message.ifindex, ifname: nameOf(message.ifindex), prefix: `${address}/${message.prefixlen}` };
}

/** Translates the kernel's message about a route. */
export function toRoute(message: RouteMessage, nameOf: (ifindex: number) => string): ObservedRoute {
  const family = familyOfMessage(message.family);
  const { oif = 0, gateway, prefsrc, priority = 0 } = message;
  const metric = priority === (family === 6 ? IPV6_DEFAULT_METRIC : 0) ? undefined : priority;
  const route: RouteState = {
    table: message.table,
    dst: message.dst ?? anyPrefix(family),
    ...(message.type === RTN_UNREACHABLE
      ? { type: 'unreachable', oif: 0, oifname: '' }
      : { oif, oifname: nameOf(oif) }),
    ...(gateway !== undefined && { gateway }),
    ...(message.scope === RT_SCOPE_LINK && { scope: 'link' as const }),
    ...(prefsrc !== undefined && { prefsrc }),
    ...(metric !== undefined && { metric }),
  };
  return {
    ...route,
    protocol: message.protocol,
    shown: renderRoute(route, message.protocol),
    isExotic: isExoticRoute(message),
  };
}

/** Translates the kernel's message about a rule. */
export function toRule(message: RuleMessage): ObservedRule {
  const { src, dst, fwmark, fwmask, protocol = 0 } = message;
  const rule: RuleState = {
    family: familyOfMessage(message.family),
    priority: message.priority,
    table: message.table,
    ...(src !== undefined && { src }),
    ...(dst !== undefined && { dst }),
    ...(fwmark !== undefined && { fwmark, fwmask: fwmask ?? 0xffffffff }),
  };
  return { ...rule, protocol, shown: renderRule(rule, protocol), isExotic: isExoticRule(message) };
}

function isExoticRoute(message: RouteMessage): boolean {
  const { tos, type, scope, src, iif, via, metrics, multipath, nhId, encap, expires, unknown = [] } = message;
  const hasMore = [src, iif, via, metrics, multipath, nhId, encap, expires].some((field) => field !== undefined);
  const isKnownScope = scope === RT_SCOPE_UNIVERSE || scope === RT_SCOPE_LINK;
  const isKnownType = type === RTN_UNICAST || type === RTN_UNREACHABLE;
  return hasMore || tos !== 0 || !isKnownType || !isKnownScope || unknown.length > 0;
}

function isExoticRule(message: RuleMessage): boolean {
  const { iifname, oifname, suppressPrefixlength, suppressIfgroup, flow, tunId, uidRange, sportRange, dportRange } =
    message;
  const fields = [
    iifname,
    oifname,
    suppressPrefixlength,
    suppressIfgroup,
    flow,
    tunId,
    uidRange,
    sportRange,
    dportRange,
  ];
  const hasMore = fields.some((field) => field !== undefined) || Boolean(message.l3mdev) || Boolean(message.ipProto);
  const isMaskOnly = message.fwmark === undefined && Boolean(message.fwmask);
  const { tos, flags, action, unknown = [] } = message;
  return hasMore || isMaskOnly || tos !== 0 || flags !== 0 || action !== FR_ACT_TO_TBL || unknown.length > 0;
}

function familyOfMessage(family: number): Family {
  return family === AF_INET6 ? 6 : 4;
}
