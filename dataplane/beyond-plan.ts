import { isDeepStrictEqual } from 'node:util';
import type { AddressMessage } from '../netlink/address-message.ts';
import { ROUTE_REQUEST_FLAGS, routeMessageOf, ruleMessageOf } from '../netlink/encode-request.ts';
import type { RouteMessage } from '../netlink/route-message.ts';
import type { Rtattr } from '../netlink/rtattr.ts';
import type { RuleMessage } from '../netlink/rule-message.ts';
import { FIB_RULE_INVERT } from '../netlink/uapi/fib-rules.ts';
import {
  IFA_F_OPTIMISTIC,
  IFA_F_PERMANENT,
  IFA_F_SECONDARY,
  IFA_F_STABLE_PRIVACY,
  IFA_F_TENTATIVE,
} from '../netlink/uapi/if-addr.ts';
import { RT_SCOPE_UNIVERSE, RTN_UNREACHABLE } from '../netlink/uapi/rtnetlink.ts';
import { addressFlags } from './address-change.ts';
import type { AddressMore, AddressState, RouteState, RuleState } from './desired.ts';
import { familyOf, lastAddress } from './ip-prefix.ts';
import { routeSpec, ruleSpec } from './to-request.ts';

/** Units of a second in which the kernel reports times. */
const USER_HZ = 100;

/**
 * Returns what an address has besides the fields of its state, as far as packets depend on it; undefined when it is as a request
 * for the state makes it.
 */
export function addressBeyond(message: AddressMessage, state: AddressState): AddressMore | undefined {
  const { address, local = address, scope, broadcast, flags, cacheinfo } = message;
  const isIpv4 = familyOf(state.prefix) === 4;
  const plannedFlags = addressFlags(state.prefix);
  const ourFlags = flags & ~FLAGS_OF_KERNEL;
  const found: Fields<AddressMore> = {
    address: address === local ? undefined : address,
    // Of IPv6 it follows from the address.
    scope: isIpv4 && scope !== RT_SCOPE_UNIVERSE ? scope : undefined,
    // Any other address that is a broadcast one is delivered to the node, also when it is a Pod's.
    broadcast: broadcast === lastAddress(state.prefix) ? undefined : broadcast,
    flags: ourFlags === plannedFlags ? undefined : ourFlags,
    cacheinfo: isForEver(cacheinfo) ? undefined : cacheinfo,
  };
  return fieldsBeyond<AddressMore>(found, {});
}

/** States that the kernel gives an address, and that pass or that another address made. */
const FLAGS_OF_KERNEL = IFA_F_SECONDARY | IFA_F_OPTIMISTIC | IFA_F_TENTATIVE | IFA_F_PERMANENT | IFA_F_STABLE_PRIVACY;

/** Seconds of a lifetime without an end. */
const FOR_EVER = 0xffff_ffff;

function isForEver(cacheinfo: AddressMessage['cacheinfo']): boolean {
  return cacheinfo === undefined || (cacheinfo.valid === FOR_EVER && cacheinfo.preferred === FOR_EVER);
}

/** Returns what a route has besides the fields of its state; undefined when it is as a request for the state makes it. */
export function routeBeyond(message: RouteMessage, route: RouteState): Partial<RouteMessage> | undefined {
  const { flags, type, oif, multipath } = message;
  const request = { tos: 0, pref: 0, ...routeMessageOf(routeSpec(route), false) };
  const found = {
    ...message,
    flags: flags & ROUTE_REQUEST_FLAGS,
    // The protocol is whose it is; the metric is in the state, where the kernel's default is absent.
    protocol: request.protocol,
    priority: request.priority,
    // The kernel leads refused IPv6 packets to lo.
    oif: type === RTN_UNREACHABLE ? undefined : oif,
    expires: expiresOf(message),
    cacheinfo: undefined,
    multipath: multipath?.map((hop) => ({ ...hop, flags: (hop.flags ?? 0) & ROUTE_REQUEST_FLAGS })),
  };
  return fieldsBeyond<RouteMessage>(found, request);
}

/** Returns what a rule has besides the fields of its state; undefined when it is as a request for the state makes it. */
export function ruleBeyond(message: RuleMessage, rule: RuleState): Partial<RuleMessage> | undefined {
  const request = { tos: 0, ...ruleMessageOf(ruleSpec(rule), false) };
  const found = { ...message, flags: message.flags & FIB_RULE_INVERT, protocol: request.protocol };
  return fieldsBeyond<RuleMessage>(found, request);
}

/**
 * Removes attributes that no codec knows and that all messages of a list have: a kernel newer than this program says them of
 * each object.
 */
export function withoutCommonUnknown<M extends { readonly unknown: readonly Rtattr[] }>(
  messages: readonly M[],
): readonly M[] {
  const [first, ...others] = messages;
  if (first === undefined || first.unknown.length === 0 || others.length === 0) return messages;
  const types = first.unknown.map(({ type }) => type);
  const common = types.filter((type) => others.every(({ unknown }) => unknown.some((one) => one.type === type)));
  return messages.map((message) => ({
    ...message,
    unknown: message.unknown.filter(({ type }) => !common.includes(type)),
  }));
}

function expiresOf({ expires, cacheinfo }: RouteMessage): number | undefined {
  if (expires !== undefined) return expires;
  return cacheinfo === undefined || cacheinfo.expires === 0 ? undefined : Math.ceil(cacheinfo.expires / USER_HZ);
}

type Fields<M> = { readonly [K in keyof M]?: M[K] | undefined };

/** Returns the fields of `found` that `request` does not set, or sets to another value; attributes that no codec knows are in `unknown`. */
function fieldsBeyond<M extends object>(found: Fields<M>, request: Fields<M>): Partial<M> | undefined {
  let beyond: Partial<M> | undefined;
  for (const name in found) {
    const value = found[name];
    const isEmpty = value === undefined || (Array.isArray(value) && value.length === 0);
    if (isEmpty || value === request[name] || isDeepStrictEqual(value, request[name])) continue;
    beyond ??= {};
    beyond[name] = value;
  }
  return beyond;
}
