import { type Argument, hex, line, pair } from '../../../netlink/render-arguments.ts';
import { range, ruleAction } from '../../../netlink/render-rule.ts';
import type { RuleMessage } from '../../../netlink/rule-message.ts';
import { FIB_RULE_INVERT } from '../../../netlink/uapi/fib-rules.ts';
import { batchWord } from './render-batch-line.ts';
import { DEFAULT_PRIORITIES } from './without-kernel-made.ts';

/** Renders the `ip -batch` line that creates a rule. @see ip-rule(8) */
export function renderRuleLine(rule: RuleMessage): string {
  const mark = rule.fwmark === undefined && rule.fwmask === undefined ? undefined : hex(rule.fwmark ?? 0);
  return line(
    'rule add',
    (rule.flags & FIB_RULE_INVERT) === 0 ? undefined : 'not',
    'from',
    rule.src ?? 'all',
    pair('to', rule.dst),
    pair('tos', rule.tos === 0 ? undefined : hex(rule.tos)),
    pair('fwmark', mark === undefined || rule.fwmask === undefined ? mark : `${mark}/${hex(rule.fwmask)}`),
    pair('iif', nameWord(rule.iifname)),
    pair('oif', nameWord(rule.oifname)),
    pair('pref', rule.priority),
    pair('protocol', rule.protocol === 0 ? undefined : rule.protocol),
    pair('uidrange', range(rule.uidRange)),
    pair('ipproto', rule.ipProto),
    pair('sport', range(rule.sportRange)),
    pair('dport', range(rule.dportRange)),
    pair(
      'tun_id',
      rule.tunId?.reduce((value, byte) => value * 256 + byte, 0),
    ),
    rule.l3mdev === 1 ? 'l3mdev' : ruleAction(rule, rule.table),
    pair('suppress_prefixlength', rule.suppressPrefixlength),
    pair('suppress_ifgroup', rule.suppressIfgroup),
    pair('realms', rule.flow === undefined ? undefined : `${rule.flow >>> 16}/${rule.flow & 0xffff}`),
  );
}

/** Renders lines that delete the default rules that are not among `rules`: a new namespace has all of them. */
export function renderDefaultRules(rules: readonly RuleMessage[], family: 4 | 6): readonly string[] {
  const priorities = new Set(
    rules.filter((rule) => (rule.family === 2 ? 4 : 6) === family).map(({ priority }) => priority),
  );
  return DEFAULT_PRIORITIES[family]
    .filter((priority) => !priorities.has(priority))
    .map((priority) => `rule del pref ${priority}`);
}

/**
 * Quotes the name of an interface if needed: the kernel accepts any text as the name of an interface that does not
 * exist yet.
 */
function nameWord(ifname: string | undefined): Argument {
  return ifname === undefined ? undefined : batchWord(ifname);
}
