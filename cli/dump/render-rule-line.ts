import { hex, line, pair, type Word } from '../../netlink/render-words.ts';
import type { NumberRange, RuleMessage } from '../../netlink/rule-message.ts';
import {
  FIB_RULE_INVERT,
  FR_ACT_BLACKHOLE,
  FR_ACT_GOTO,
  FR_ACT_NOP,
  FR_ACT_PROHIBIT,
  FR_ACT_TO_TBL,
  FR_ACT_UNREACHABLE,
} from '../../netlink/uapi/fib-rules.ts';
import { DEFAULT_PRIORITIES } from './find-kernel-made.ts';
import { batchWord } from './render-batch-line.ts';

/** Renders the `ip -batch` line that makes a rule. Pure. @see ip-rule(8) */
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
    action(rule),
    pair('suppress_prefixlength', rule.suppressPrefixlength),
    pair('suppress_ifgroup', rule.suppressIfgroup),
    pair('realms', rule.flow === undefined ? undefined : `${rule.flow >>> 16}/${rule.flow & 0xffff}`),
  );
}

/** Renders lines that take away default rules which are not among `rules`: a namespace is born with all of them. Pure. */
export function renderDefaultRules(rules: readonly RuleMessage[], family: 4 | 6): readonly string[] {
  const priorities = new Set(
    rules.filter((rule) => (rule.family === 2 ? 4 : 6) === family).map(({ priority }) => priority),
  );
  return DEFAULT_PRIORITIES[family]
    .filter((priority) => !priorities.has(priority))
    .map((priority) => `rule del pref ${priority}`);
}

/** The kernel takes any text for the name of an interface that is not there yet. */
function nameWord(ifname: string | undefined): Word {
  return ifname === undefined ? undefined : batchWord(ifname);
}

function range(value: NumberRange | undefined): Word {
  return value === undefined ? undefined : `${value.start}-${value.end}`;
}

function action(rule: RuleMessage): readonly Word[] {
  if (rule.l3mdev === 1) return ['l3mdev'];
  switch (rule.action) {
    case FR_ACT_TO_TBL:
      return ['lookup', rule.table];
    case FR_ACT_GOTO:
      return ['goto', rule.goto];
    case FR_ACT_NOP:
      return ['nop'];
    case FR_ACT_BLACKHOLE:
      return ['blackhole'];
    case FR_ACT_UNREACHABLE:
      return ['unreachable'];
    case FR_ACT_PROHIBIT:
      return ['prohibit'];
    default:
      return ['type', rule.action];
  }
}
