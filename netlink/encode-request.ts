import { ADDRESS, type AddressMessage, type AddressSpec } from './address-message.ts';
import type { ByteWriter } from './byte-writer.ts';
import type { AttributeNames } from './codec.ts';
import { LINK, type LinkMessage } from './link-message.ts';
import { linkMessageOf, linkMessageOfChange, linkMessageOfRef } from './link-request.ts';
import { NEIGH, type NeighMessage, type NeighSpec } from './neigh-message.ts';
import { beginMessage, endMessage } from './nlmsghdr.ts';
import { QDISC } from './qdisc-message.ts';
import { qdiscMessageOf } from './qdisc-request.ts';
import type { Request } from './request.ts';
import { ROUTE, type RouteMessage, type RouteSpec } from './route-message.ts';
import { RULE, type RuleMessage, type RuleSpec } from './rule-message.ts';
import { BPF_FILTER } from './traffic-filter-message.ts';
import { filterMessageOf } from './traffic-filter-request.ts';
import { FIB_RULE_INVERT, FR_ACT_TO_TBL } from './uapi/fib-rules.ts';
import { NUD_PERMANENT } from './uapi/neighbour.ts';
import {
  AF_INET,
  AF_INET6,
  NLM_F_APPEND,
  NLM_F_CREATE,
  NLM_F_ECHO,
  NLM_F_EXCL,
  NLM_F_REPLACE,
  NLM_F_REQUEST,
} from './uapi/netlink.ts';
import {
  RT_SCOPE_HOST,
  RT_SCOPE_LINK,
  RT_SCOPE_NOWHERE,
  RT_SCOPE_UNIVERSE,
  RT_TABLE_LOCAL,
  RT_TABLE_MAIN,
  RTM_DELADDR,
  RTM_DELLINK,
  RTM_DELNEIGH,
  RTM_DELQDISC,
  RTM_DELROUTE,
  RTM_DELRULE,
  RTM_DELTFILTER,
  RTM_NEWADDR,
  RTM_NEWLINK,
  RTM_NEWNEIGH,
  RTM_NEWQDISC,
  RTM_NEWROUTE,
  RTM_NEWRULE,
  RTM_NEWTFILTER,
  RTN_ANYCAST,
  RTN_BROADCAST,
  RTN_LOCAL,
  RTN_MULTICAST,
  RTN_NAT,
  RTN_UNICAST,
  RTN_UNSPEC,
  RTNH_F_ONLINK,
  RTNH_F_PERVASIVE,
  RTPROT_BOOT,
} from './uapi/rtnetlink.ts';

/** Flags by verb; all requests carry NLM_F_REQUEST too. */
const VERB_FLAGS = {
  add: NLM_F_CREATE | NLM_F_EXCL,
  replace: NLM_F_CREATE | NLM_F_REPLACE,
  append: NLM_F_CREATE | NLM_F_APPEND,
  set: 0,
  delete: 0,
} as const;

const MESSAGE_TYPES = {
  link: { make: RTM_NEWLINK, remove: RTM_DELLINK, name: 'LINK' },
  address: { make: RTM_NEWADDR, remove: RTM_DELADDR, name: 'ADDR' },
  route: { make: RTM_NEWROUTE, remove: RTM_DELROUTE, name: 'ROUTE' },
  rule: { make: RTM_NEWRULE, remove: RTM_DELRULE, name: 'RULE' },
  neigh: { make: RTM_NEWNEIGH, remove: RTM_DELNEIGH, name: 'NEIGH' },
  qdisc: { make: RTM_NEWQDISC, remove: RTM_DELQDISC, name: 'QDISC' },
  filter: { make: RTM_NEWTFILTER, remove: RTM_DELTFILTER, name: 'TFILTER' },
} as const;

/** Appends a request as one netlink message. The only effect is on the writer. @throws CodecError */
export function encodeRequest(writer: ByteWriter, request: Request, seq: number, extraFlags: number): void {
  const types = MESSAGE_TYPES[request.object];
  const type = request.verb === 'delete' ? types.remove : types.make;
  // The echo contains the ifindex of the new link.
  const echo = request.object === 'link' && request.verb === 'add' ? NLM_F_ECHO : 0;
  // Of filters the kernel replaces one that is there unless NLM_F_EXCL is set.
  const verbFlags = request.object === 'filter' && request.verb === 'replace' ? NLM_F_CREATE : VERB_FLAGS[request.verb];
  const flags = NLM_F_REQUEST | verbFlags | echo | extraFlags;
  const start = beginMessage(writer, type, flags, seq);
  writeBody(writer, request);
  endMessage(writer, start);
}

/** Returns the message type of a request: 'RTM_NEWROUTE'. */
export function operationName(object: Request['object'], verb: Request['verb'] | 'get' | 'list'): string {
  const prefix = verb === 'delete' ? 'DEL' : verb === 'get' || verb === 'list' ? 'GET' : 'NEW';
  return `RTM_${prefix}${MESSAGE_TYPES[object].name}`;
}

/** Returns the codec of an object's messages. */
export function messageCodecOf(object: Request['object']): AttributeNames & { readonly headerBytes: number } {
  switch (object) {
    case 'link':
      return LINK;
    case 'address':
      return ADDRESS;
    case 'route':
      return ROUTE;
    case 'rule':
      return RULE;
    case 'neigh':
      return NEIGH;
    case 'qdisc':
      return QDISC;
    case 'filter':
      return BPF_FILTER;
  }
}

function writeBody(writer: ByteWriter, request: Request): void {
  const isDelete = request.verb === 'delete';
  switch (request.object) {
    case 'route':
      ROUTE.write(writer, routeMessageOf(request.spec, isDelete));
      break;
    case 'rule':
      RULE.write(writer, ruleMessageOf(request.spec, isDelete));
      break;
    case 'address':
      ADDRESS.write(writer, addressMessageOf(request.spec));
      break;
    case 'neigh':
      NEIGH.write(writer, neighMessageOf(request.spec));
      break;
    case 'qdisc':
      QDISC.write(writer, qdiscMessageOf(request.spec));
      break;
    case 'filter':
      BPF_FILTER.write(writer, filterMessageOf(request.spec));
      break;
    case 'link':
      LINK.write(writer, linkMessage(request));
      break;
  }
}

function linkMessage(request: Request & { object: 'link' }): Partial<LinkMessage> {
  if (request.verb === 'add') {
    return linkMessageOf(request.spec);
  }
  return request.verb === 'set' ? linkMessageOfChange(request.spec) : linkMessageOfRef(request.spec);
}

function neighMessageOf(spec: NeighSpec): Partial<NeighMessage> {
  return { ...spec, family: spec.family ?? familyOf(spec.dst), state: spec.state ?? NUD_PERMANENT };
}

/** AF_INET or AF_INET6 of an address or prefix; AF_INET when there is none. */
export function familyOf(...addresses: readonly (string | undefined)[]): number {
  for (const address of addresses) {
    if (address !== undefined) {
      return address.includes(':') ? AF_INET6 : AF_INET;
    }
  }
  return AF_INET;
}

/** Flags that a request may set; the others describe the kernel's state of the next hop and are refused in requests. */
export const ROUTE_REQUEST_FLAGS = RTNH_F_ONLINK | RTNH_F_PERVASIVE;

/** Returns the message of a route that is added, replaced or deleted. */
export function routeMessageOf(spec: RouteSpec, isDelete: boolean): Partial<RouteMessage> {
  const family = spec.family ?? familyOf(spec.dst, spec.gateway, spec.src, spec.prefsrc, spec.multipath?.[0]?.gateway);
  const type = spec.type ?? (isDelete ? RTN_UNSPEC : RTN_UNICAST);
  return {
    ...(spec.cacheinfo === undefined ? spec : withoutCacheinfo(spec)),
    family,
    type,
    table: spec.table ?? (isLocalType(type) ? RT_TABLE_LOCAL : RT_TABLE_MAIN),
    scope: spec.scope ?? routeScope(spec, family, type, isDelete),
    protocol: spec.protocol ?? (isDelete ? 0 : RTPROT_BOOT),
    flags: (spec.flags ?? 0) & ROUTE_REQUEST_FLAGS,
  };
}

/** Removes the age of a route: the kernel reports it and does not accept it. */
function withoutCacheinfo(spec: RouteSpec): RouteSpec {
  const { cacheinfo: _, ...rest } = spec;
  return rest;
}

function isLocalType(type: number): boolean {
  return type === RTN_LOCAL || type === RTN_BROADCAST || type === RTN_NAT || type === RTN_ANYCAST;
}

/** Selects the scope as iproute2 does. @see ip-route(8) */
function routeScope(spec: RouteSpec, family: number, type: number, isDelete: boolean): number {
  if (family === AF_INET6) {
    return RT_SCOPE_UNIVERSE;
  }
  if (type === RTN_LOCAL || type === RTN_NAT) {
    return RT_SCOPE_HOST;
  }
  if (type === RTN_BROADCAST || type === RTN_MULTICAST || type === RTN_ANYCAST) {
    return RT_SCOPE_LINK;
  }
  if (type !== RTN_UNICAST && type !== RTN_UNSPEC) {
    return isDelete ? RT_SCOPE_NOWHERE : RT_SCOPE_UNIVERSE;
  }
  if (isDelete) {
    return RT_SCOPE_NOWHERE;
  }
  const isDirect = spec.gateway === undefined && spec.via === undefined && spec.multipath === undefined;
  return isDirect && spec.nhId === undefined ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
}

/** Returns the message of a rule that is added or deleted. */
export function ruleMessageOf(spec: RuleSpec, isDelete: boolean): Partial<RuleMessage> {
  const message: { -readonly [K in keyof RuleMessage]?: RuleMessage[K] } = { ...spec };
  message.family = spec.family ?? familyOf(spec.src, spec.dst);
  message.flags = (spec.flags ?? 0) & FIB_RULE_INVERT;
  if (!isDelete) {
    message.action = spec.action ?? FR_ACT_TO_TBL;
    if (message.action === FR_ACT_TO_TBL) {
      message.table = spec.table ?? RT_TABLE_MAIN;
    }
  }
  return message;
}

function addressMessageOf(spec: AddressSpec): Partial<AddressMessage> {
  const family = spec.family ?? familyOf(spec.address);
  const isLoopback = family === AF_INET && spec.address.startsWith('127.');
  return {
    ...spec,
    family,
    local: spec.local ?? spec.address,
    scope: spec.scope ?? (isLoopback ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE),
  };
}
