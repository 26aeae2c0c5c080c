import type { LinkMessage } from '../../netlink/link-message.ts';
import type { NumberRange, RuleMessage } from '../../netlink/rule-message.ts';
import { FIB_RULE_INVERT } from '../../netlink/uapi/fib-rules.ts';
import { prefixBits, prefixContains } from '../node/prefix-contains.ts';
import type { Flow } from './flow.ts';

/** Index of `lo` in every namespace: the incoming link of packets that the namespace itself sends. */
const LOOPBACK_IFINDEX = 1;

/** Bits of the TOS byte that IPv4 rules and routes with a TOS compare. @see INET_DSCP_LEGACY_TOS_MASK */
export const IPV4_TOS_MASK = 0x1c;

/** Bits of the traffic class that IPv6 rules compare: all but ECN. */
const DSCP_MASK = 0xfc;

/**
 * Reports whether a rule matches a packet; an inverted rule matches where its selectors do not.
 * @see net/core/fib_rules.c fib_rule_match, net/ipv4/fib_rules.c fib4_rule_match, net/ipv6/fib6_rules.c fib6_rule_match
 */
export function isRuleMatch(rule: RuleMessage, flow: Flow, links: readonly LinkMessage[]): boolean {
  return matchesAll(rule, flow, links) !== ((rule.flags & FIB_RULE_INVERT) !== 0);
}

function matchesAll(rule: RuleMessage, flow: Flow, links: readonly LinkMessage[]): boolean {
  return (
    isLink(rule.iifname, flow.iif ?? LOOPBACK_IFINDEX, links) &&
    isLink(rule.oifname, flow.oif ?? 0, links) &&
    (((rule.fwmark ?? 0) ^ flow.mark) & maskOf(rule)) === 0 &&
    // The packets explained here never come through a tunnel and belong to no VRF.
    !rule.tunId?.some((byte) => byte !== 0) &&
    (rule.l3mdev ?? 0) === 0 &&
    isWithin(rule.uidRange, flow.uid ?? 0) &&
    (prefixBits(rule.dst) === 0 || prefixContains(rule.dst, flow.dst)) &&
    isSource(rule, flow) &&
    isTos(rule.tos, flow) &&
    (rule.ipProto === undefined || rule.ipProto === 0 || rule.ipProto === flow.ipProto) &&
    isWithin(rule.sportRange, flow.sport ?? 0) &&
    isWithin(rule.dportRange, flow.dport ?? 0)
  );
}

/** Returns the mask of a rule's mark. A mark without a mask is compared whole; without a mark nothing is compared. */
function maskOf(rule: RuleMessage): number {
  return rule.fwmask ?? (rule.fwmark === undefined ? 0 : 0xffffffff);
}

/** Reports whether a rule's interface is the packet's. A rule for an interface that does not exist matches nothing. */
function isLink(ifname: string | undefined, ifindex: number, links: readonly LinkMessage[]): boolean {
  if (ifname === undefined) return true;
  return ifindex !== 0 && links.find((link) => link.ifname === ifname)?.ifindex === ifindex;
}

function isSource(rule: RuleMessage, flow: Flow): boolean {
  if (prefixBits(rule.src) === 0) return true;
  // An own IPv6 packet that has no source yet matches no rule with a source; an IPv4 one is looked up as 0.0.0.0.
  if (flow.src === undefined) return flow.family === 4 && prefixContains(rule.src, '0.0.0.0');
  return prefixContains(rule.src, flow.src);
}

function isTos(tos: number, flow: Flow): boolean {
  return tos === 0 || tos === ((flow.tos ?? 0) & (flow.family === 4 ? IPV4_TOS_MASK : DSCP_MASK));
}

function isWithin(range: NumberRange | undefined, value: number): boolean {
  return range === undefined || (value >= range.start && value <= range.end);
}
