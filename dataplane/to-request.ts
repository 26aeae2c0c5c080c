import type { AddressSpec } from '../netlink/address-message.ts';
import type { LinkChange } from '../netlink/link-message.ts';
import type { NeighSpec } from '../netlink/neigh-message.ts';
import type { Request } from '../netlink/request.ts';
import type { RouteSpec } from '../netlink/route-message.ts';
import type { RuleSpec } from '../netlink/rule-message.ts';
import { RT_SCOPE_LINK, RT_SCOPE_UNIVERSE, RTN_UNREACHABLE } from '../netlink/uapi/rtnetlink.ts';
import { addressFlags, isMadeAgain } from './address-change.ts';
import { addressFamily } from './address-family.ts';
import { type PortProperties, portFields } from './bridge-port.ts';
import type { AddressState, NeighState, RouteState, RuleState } from './desired.ts';
import { familyOf, prefixLength } from './ip-prefix.ts';
import { RTPROT_TKE_ENI } from './numbers.ts';
import type { LinkProperties, Operation } from './operation.ts';

/** IP6_RT_PRIO_USER: the kernel's metric of an IPv6 route without one. @see uapi/linux/ipv6_route.h */
export const IPV6_DEFAULT_METRIC = 1024;

/**
 * Translates an operation to its netlink requests, the last of which is the one that counts; empty for operations of another
 * kind (sysctl, filter, nft).
 */
export function toRequests(operation: Operation): readonly Request[] {
  switch (operation.kind) {
    case 'set-link':
      return [{ object: 'link', verb: 'set', spec: linkSpec(operation.ifindex, operation.change) }];
    case 'make-bridge': {
      const { ifindex, ifname, mac } = operation.bridge;
      const spec = { kind: 'bridge', ifindex, ifname, ...(mac !== undefined && { address: mac }) } as const;
      return [{ object: 'link', verb: 'add', spec }];
    }
    case 'delete-bridge':
      return [{ object: 'link', verb: 'delete', spec: { ifindex: operation.bridge.ifindex } }];
    case 'set-port':
      return [{ object: 'link', verb: 'set', spec: portSpec(operation.ifindex, operation.change) }];
    case 'add-address':
      return addressAddition(operation);
    case 'delete-address':
      return [{ object: 'address', verb: 'delete', spec: addressSpec(operation.address) }];
    case 'replace-route':
      return routeReplacement(operation);
    case 'delete-route':
      return [routeDeletion(operation.route)];
    case 'add-rule': {
      const verb = operation.isBesideTwin === true ? 'append' : 'add';
      return [{ object: 'rule', verb, spec: ruleSpec(operation.rule) }];
    }
    case 'delete-rule':
      return ruleDeletion(operation);
    case 'replace-neigh':
      return [{ object: 'neigh', verb: 'replace', spec: neighSpec(operation.neigh) }];
    case 'delete-neigh':
      return [{ object: 'neigh', verb: 'delete', spec: neighSpec(operation.neigh) }];
    case 'set-sysctl':
    case 'attach-filter':
    case 'detach-filter':
    case 'load-nft':
    case 'replace-flowtable':
    case 'delete-flowtable':
    case 'add-flow-devices':
    case 'delete-flow-devices':
      return [];
  }
}

/** What the kernel does not change of an address that is there goes with it. */
function addressAddition({ address, before }: Operation & { readonly kind: 'add-address' }): readonly Request[] {
  const spec = addressSpec(address);
  if (before === undefined) return [{ object: 'address', verb: 'add', spec }];
  if (!isMadeAgain(address, before)) return [{ object: 'address', verb: 'replace', spec }];
  return [
    { object: 'address', verb: 'delete', spec: addressSpec(before) },
    { object: 'address', verb: 'add', spec },
  ];
}

/**
 * Without twins the route takes the place of what stands there. The kernel deletes the first route that matches what a request
 * names, which may be the right one where a twin has more to it: so the route is written again behind the deletions.
 */
function routeReplacement({ route, twins = [] }: Operation & { readonly kind: 'replace-route' }): readonly Request[] {
  const replace: Request = { object: 'route', verb: 'replace', spec: routeSpec(route) };
  if (twins.length === 0) return [replace];
  return [replace, ...twins.map(routeDeletion), replace];
}

/** Without a metric an IPv6 request would match routes of each metric. */
function routeDeletion(route: RouteState): Request {
  const priority = familyOf(route.dst) === 6 && route.metric === undefined ? { priority: IPV6_DEFAULT_METRIC } : {};
  return { object: 'route', verb: 'delete', spec: { ...routeSpec(route), ...priority } };
}

function ruleDeletion({ rule, keeps = [] }: Operation & { readonly kind: 'delete-rule' }): readonly Request[] {
  const remove: Request = { object: 'rule', verb: 'delete', spec: ruleSpec(rule) };
  return [
    ...keeps.map((keep) => ({ object: 'rule' as const, verb: 'append' as const, spec: ruleSpec(keep) })),
    ...keeps.map(() => remove),
    remove,
  ];
}

function linkSpec(ifindex: number, { mac, ...properties }: LinkProperties): LinkChange {
  return { ifindex, ...properties, ...(mac !== undefined && { address: mac }) };
}

/** Translates a change of a port of a bridge. */
export function portSpec(ifindex: number, properties: PortProperties): LinkChange {
  return { ifindex, bridgePort: portFields(properties) };
}

/** Translates a route. */
export function routeSpec(route: RouteState): RouteSpec {
  const spec = { ...plainRouteSpec(route), ...route.more };
  if (spec.nhId === undefined) return spec;
  // A next hop object has interface and gateway in it; the kernel refuses them beside it.
  const { oif: _oif, gateway: _gateway, via: _via, multipath: _multipath, ...rest } = spec;
  return rest;
}

function plainRouteSpec(route: RouteState): RouteSpec {
  const family = familyOf(route.dst);
  return {
    family: addressFamily(family),
    table: route.table,
    ...(route.type === undefined ? { oif: route.oif } : { type: RTN_UNREACHABLE }),
    protocol: RTPROT_TKE_ENI,
    ...(prefixLength(route.dst) === 0 ? {} : { dst: route.dst }),
    ...(route.gateway === undefined ? {} : { gateway: route.gateway }),
    ...(family === 4 ? { scope: route.scope === 'link' ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE } : {}),
    ...(route.prefsrc === undefined ? {} : { prefsrc: route.prefsrc }),
    ...(route.metric === undefined ? {} : { priority: route.metric }),
  };
}

/** Translates a rule. */
export function ruleSpec({ family, priority, table, src, dst, fwmark, fwmask, more }: RuleState): RuleSpec {
  return {
    family: addressFamily(family),
    priority,
    table,
    protocol: RTPROT_TKE_ENI,
    ...(src === undefined ? {} : { src }),
    ...(dst === undefined ? {} : { dst }),
    ...(fwmark === undefined ? {} : { fwmark }),
    ...(fwmask === undefined ? {} : { fwmask }),
    ...more,
  };
}

/** Translates an address. An IPv6 one is usable at once and makes no route of its own in main. */
export function addressSpec({ ifindex, prefix, more = {} }: AddressState): AddressSpec {
  const local = prefix.slice(0, prefix.indexOf('/'));
  const flags = addressFlags(prefix);
  const ends = more.address === undefined ? { address: local } : { address: more.address, local };
  return { ifindex, prefixlen: prefixLength(prefix), ...(flags !== 0 && { flags }), ...more, ...ends };
}

/** Translates a permanent neighbour. */
export function neighSpec({ ifindex, dst, lladdr }: NeighState): NeighSpec {
  return { ifindex, dst, lladdr };
}
