import type { AddressMessage } from '../netlink/address-message.ts';
import type { LinkMessage } from '../netlink/link-message.ts';
import type { RouteMessage } from '../netlink/route-message.ts';
import type { RuleMessage } from '../netlink/rule-message.ts';
import { IFF_NOARP, IFF_PROMISC, IFF_RUNNING, IFF_UP } from '../netlink/uapi/if-link.ts';
import { RT_SCOPE_LINK, RTN_UNREACHABLE } from '../netlink/uapi/rtnetlink.ts';
import { familyOfMessage } from './address-family.ts';
import { addressBeyond, routeBeyond, ruleBeyond } from './beyond-plan.ts';
import { oddPort } from './bridge-port.ts';
import type { AddressState, RouteState, RuleState } from './desired.ts';
import { anyPrefix } from './ip-prefix.ts';
import type { ObservedLink, ObservedRoute, ObservedRule } from './observed.ts';
import { renderRoute, renderRule } from './operation.ts';
import { IPV6_DEFAULT_METRIC } from './to-request.ts';

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
    ...((message.flags & IFF_RUNNING) !== 0 && { isRunning: true as const }),
    ...((message.flags & IFF_NOARP) !== 0 && { isNoArp: true as const }),
    ...((message.flags & IFF_PROMISC) !== 0 && { isPromisc: true as const }),
    ...(bridgePort !== undefined && { oddPort: oddPort(bridgePort) }),
    ...(master !== 0 && { master }),
    ...(kind !== undefined && { kind }),
    ...(ifalias !== undefined && { ifalias }),
  };
}

/** Translates the kernel's message about an address. */
export function toAddress(message: AddressMessage, nameOf: (ifindex: number) => string): AddressState {
  const { ifindex, prefixlen, local = message.address } = message;
  const address: AddressState = { ifindex, ifname: nameOf(ifindex), prefix: `${local}/${prefixlen}` };
  const more = addressBeyond(message, address);
  return more === undefined ? address : { ...address, more };
}

/** Translates the kernel's message about a route. */
export function toRoute(message: RouteMessage, nameOf: (ifindex: number) => string): ObservedRoute {
  const family = familyOfMessage(message);
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
  const more = routeBeyond(message, route);
  const whole = more === undefined ? route : { ...route, more };
  return { ...whole, protocol: message.protocol, shown: renderRoute(whole, message.protocol) };
}

/** Translates the kernel's message about a rule. */
export function toRule(message: RuleMessage): ObservedRule {
  const { src, dst, fwmark, fwmask, protocol = 0 } = message;
  const rule: RuleState = {
    family: familyOfMessage(message),
    priority: message.priority,
    table: message.table,
    ...(src !== undefined && { src }),
    ...(dst !== undefined && { dst }),
    ...(fwmark !== undefined && { fwmark, fwmask: fwmask ?? 0xffffffff }),
  };
  const more = ruleBeyond(message, rule);
  const whole = more === undefined ? rule : { ...rule, more };
  return { ...whole, protocol, shown: renderRule(whole, protocol) };
}
