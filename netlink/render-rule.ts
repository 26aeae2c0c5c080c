import { type Argument, hex, ip, line, named, PROTOCOLS, pair, TABLES, verbKeyword } from './render-arguments.ts';
import type { RuleSpec } from './rule-message.ts';
import {
  FIB_RULE_INVERT,
  FR_ACT_BLACKHOLE,
  FR_ACT_GOTO,
  FR_ACT_NOP,
  FR_ACT_PROHIBIT,
  FR_ACT_TO_TBL,
  FR_ACT_UNREACHABLE,
} from './uapi/fib-rules.ts';

/** Renders a change of a rule. @see ip-rule(8) */
export function renderRule(verb: 'add' | 'append' | 'delete', spec: RuleSpec): string {
  const isInverted = ((spec.flags ?? 0) & FIB_RULE_INVERT) !== 0;
  const mark = spec.fwmark === undefined ? undefined : hex(spec.fwmark);
  return line(
    ip(spec.family, spec.src, spec.dst),
    'rule',
    // ip(8) adds no rule twice.
    verbKeyword(verb === 'append' ? 'add' : verb),
    isInverted ? 'not' : undefined,
    pair('from', spec.src ?? (verb !== 'delete' && spec.dst === undefined ? 'all' : undefined)),
    pair('to', spec.dst),
    pair('tos', spec.tos === 0 ? undefined : spec.tos),
    pair('fwmark', mark !== undefined && spec.fwmask !== undefined ? `${mark}/${hex(spec.fwmask)}` : mark),
    pair('iif', spec.iifname),
    pair('oif', spec.oifname),
    pair('pref', spec.priority),
    pair('protocol', named(PROTOCOLS, spec.protocol)),
    ruleDetails(spec),
    ruleAction(spec, named(TABLES, spec.table)),
    pair('suppress_prefixlength', spec.suppressPrefixlength),
    pair('suppress_ifgroup', spec.suppressIfgroup),
  );
}

/** Renders the selectors of a rule that come behind its protocol. */
export function ruleDetails({
  uidRange,
  ipProto,
  sportRange,
  dportRange,
  l3mdev,
}: Partial<RuleSpec>): readonly Argument[] {
  return [
    ...pair('uidrange', range(uidRange)),
    ...pair('ipproto', ipProto),
    ...pair('sport', range(sportRange)),
    ...pair('dport', range(dportRange)),
    ...(l3mdev === undefined || l3mdev === 0 ? [] : ['l3mdev']),
  ];
}

/** Renders what a rule does with a packet; `table` is the name of the table that it looks up. @see ip-rule(8) */
export function ruleAction(spec: Pick<RuleSpec, 'action' | 'goto'>, table: Argument): readonly Argument[] {
  switch (spec.action ?? FR_ACT_TO_TBL) {
    case FR_ACT_TO_TBL:
      return pair('lookup', table);
    case FR_ACT_GOTO:
      return ['goto', spec.goto];
    case FR_ACT_NOP:
      return ['nop'];
    case FR_ACT_BLACKHOLE:
      return ['blackhole'];
    case FR_ACT_UNREACHABLE:
      return ['unreachable'];
    case FR_ACT_PROHIBIT:
      return ['prohibit'];
    default:
      return ['type', spec.action];
  }
}

/** Renders a range of ports or user ids. */
export function range(value: { readonly start: number; readonly end: number } | undefined): Argument {
  return value === undefined ? undefined : `${value.start}-${value.end}`;
}
