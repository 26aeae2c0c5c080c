import type { RuleState } from '../../dataplane/desired.ts';
import { withoutHostLength } from '../../dataplane/ip-prefix.ts';
import type { RuleMessage, RuleSpec } from '../../netlink/rule-message.ts';
import { FIB_RULE_INVERT } from '../../netlink/uapi/fib-rules.ts';
import { AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { type ElementId, ruleId } from '../catalogue/element-id.ts';

/** A rule as the kernel reports it, as a request contains it, or as a plan has it. */
type AnyRule = RuleMessage | RuleSpec | RuleState;

/**
 * Returns the element id of a rule, for findings, explain and graph: equal for a rule that was read and one that was
 * planned.
 * @param family for rules without a family of their own
 */
export function ruleElement(rule: AnyRule, family: 4 | 6 = isIpv6(rule) ? 6 : 4): ElementId {
  return ruleId(family, rule.priority, ruleSelector(rule));
}

/** Formats the selectors of a rule as `ip rule` does, without the length of host prefixes and without full masks. */
export function ruleSelector(rule: AnyRule): string {
  const more: RuleSpec = rule;
  return [
    ...(((more.flags ?? 0) & FIB_RULE_INVERT) === 0 ? [] : ['not']),
    `from ${bare(rule.src) ?? 'all'}`,
    ...term('to', bare(rule.dst)),
    ...term('tos', more.tos === 0 ? undefined : more.tos),
    ...term('fwmark', markText(rule)),
    ...term('iif', more.iifname),
    ...term('oif', more.oifname),
    ...term('uidrange', rangeText(more.uidRange)),
    ...term('ipproto', more.ipProto),
    ...term('sport', rangeText(more.sportRange)),
    ...term('dport', rangeText(more.dportRange)),
  ].join(' ');
}

/** Reports whether a rule is for IPv6. A plan has 4 or 6, a message AF_INET or AF_INET6: all four numbers differ. */
function isIpv6({ family }: AnyRule): boolean {
  return family === 6 || family === AF_INET6;
}

function term(keyword: string, value: string | number | undefined): readonly string[] {
  return value === undefined ? [] : [`${keyword} ${value}`];
}

function markText({ fwmark, fwmask }: AnyRule): string | undefined {
  if (fwmark === undefined) return undefined;
  const mask = fwmask === undefined || fwmask === 0xffffffff ? '' : `/0x${fwmask.toString(16)}`;
  return `0x${fwmark.toString(16)}${mask}`;
}

function rangeText(range: RuleMessage['sportRange']): string | undefined {
  return range === undefined ? undefined : `${range.start}-${range.end}`;
}

/** Removes the length of a host prefix; undefined for a prefix that contains every address. */
function bare(prefix: string | undefined): string | undefined {
  if (prefix === undefined || prefix.endsWith('/0')) return undefined;
  return withoutHostLength(prefix);
}
