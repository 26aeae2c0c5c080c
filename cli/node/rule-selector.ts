import type { RuleState } from '../../dataplane/desired.ts';
import type { RuleMessage, RuleSpec } from '../../netlink/rule-message.ts';
import { FIB_RULE_INVERT } from '../../netlink/uapi/fib-rules.ts';
import { AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { type ElementId, ruleId } from './element-id.ts';

/** A rule as the kernel tells it, as a request says it or as a plan has it. */
export type AnyRule = RuleMessage | RuleSpec | RuleState;

/**
 * Names a rule for findings, explain and graph: the same rule has one name, whoever read or planned it. Pure.
 * @param family when the rule itself does not say it
 */
export function ruleElement(rule: AnyRule, family: 4 | 6 = isIpv6(rule) ? 6 : 4): ElementId {
  return ruleId(family, rule.priority, ruleSelector(rule));
}

/** Spells what a rule selects as `ip rule` does, host prefixes without length and whole masks left out. Pure. */
export function ruleSelector(rule: AnyRule): string {
  const more: RuleSpec = rule;
  return [
    ...(((more.flags ?? 0) & FIB_RULE_INVERT) === 0 ? [] : ['not']),
    `from ${bare(rule.src) ?? 'all'}`,
    ...said('to', bare(rule.dst)),
    ...said('tos', more.tos === 0 ? undefined : more.tos),
    ...said('fwmark', markText(rule)),
    ...said('iif', more.iifname),
    ...said('oif', more.oifname),
    ...said('uidrange', rangeText(more.uidRange)),
    ...said('ipproto', more.ipProto),
    ...said('sport', rangeText(more.sportRange)),
    ...said('dport', rangeText(more.dportRange)),
  ].join(' ');
}

/** A plan says 4 or 6, a message AF_INET or AF_INET6: no two of these numbers are equal. */
function isIpv6({ family }: AnyRule): boolean {
  return family === 6 || family === AF_INET6;
}

function said(word: string, value: string | number | undefined): readonly string[] {
  return value === undefined ? [] : [`${word} ${value}`];
}

function markText({ fwmark, fwmask }: AnyRule): string | undefined {
  if (fwmark === undefined) return undefined;
  const mask = fwmask === undefined || fwmask === 0xffffffff ? '' : `/0x${fwmask.toString(16)}`;
  return `0x${fwmark.toString(16)}${mask}`;
}

function rangeText(range: RuleMessage['sportRange']): string | undefined {
  return range === undefined ? undefined : `${range.start}-${range.end}`;
}

/** Undefined for a prefix that holds every address. */
function bare(prefix: string | undefined): string | undefined {
  if (prefix === undefined || prefix.endsWith('/0')) return undefined;
  return prefix.replace(prefix.includes(':') ? /\/128$/ : /\/32$/, '');
}
