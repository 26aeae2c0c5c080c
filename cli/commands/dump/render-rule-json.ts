import { isHostPrefix, prefixLength } from '../../../dataplane/ip-prefix.ts';
import type { RuleMessage } from '../../../netlink/rule-message.ts';
import {
  FIB_RULE_IIF_DETACHED,
  FIB_RULE_INVERT,
  FIB_RULE_OIF_DETACHED,
  FIB_RULE_UNRESOLVED,
  FR_ACT_BLACKHOLE,
  FR_ACT_GOTO,
  FR_ACT_NOP,
  FR_ACT_PROHIBIT,
  FR_ACT_TO_TBL,
  FR_ACT_UNREACHABLE,
} from '../../../netlink/uapi/fib-rules.ts';
import { RTPROT_KERNEL } from '../../../netlink/uapi/rtnetlink.ts';
import type { IpNames, IpObject } from './ip-names.ts';

const ALL_BITS = 0xffffffff;

/** Renders a rule as `ip -j rule` prints it. @see ip-rule(8), iproute2 ip/iprule.c */
export function renderRuleJson(rule: RuleMessage, names: IpNames, isDetailed: boolean): IpObject {
  const { protocol } = rule;
  const isShown = protocol !== undefined && (isDetailed || (protocol !== 0 && protocol !== RTPROT_KERNEL));
  return {
    priority: rule.priority,
    ...flag('not', rule.flags, FIB_RULE_INVERT),
    ...prefix('src', rule.src, { src: 'all' }),
    ...prefix('dst', rule.dst, {}),
    ...(rule.tos === 0 ? {} : { tos: names.dsfield(rule.tos) }),
    ...mark(rule),
    ...(rule.iifname === undefined ? {} : { iif: rule.iifname }),
    ...flag('iif_detached', rule.flags, FIB_RULE_IIF_DETACHED),
    ...(rule.oifname === undefined ? {} : { oif: rule.oifname }),
    ...flag('oif_detached', rule.flags, FIB_RULE_OIF_DETACHED),
    ...(rule.l3mdev === undefined || rule.l3mdev === 0 ? {} : { l3mdev: null }),
    ...(rule.uidRange === undefined ? {} : { uid_start: rule.uidRange.start, uid_end: rule.uidRange.end }),
    ...(rule.ipProto === undefined ? {} : { ipproto: names.ipProtocol(rule.ipProto) }),
    ...ports('sport', rule.sportRange),
    ...ports('dport', rule.dportRange),
    ...(rule.tunId === undefined ? {} : { tun_id: bigEndian(rule.tunId) }),
    ...lookup(rule, names),
    ...(rule.flow === undefined ? {} : realms(rule.flow, names)),
    ...action(rule),
    ...(isShown ? { protocol: names.protocol(protocol) } : {}),
  };
}

function flag(name: string, flags: number, bit: number): IpObject {
  return (flags & bit) === 0 ? {} : { [name]: null };
}

/** Renders a prefix; the length of a host prefix is left out. */
function prefix(name: string, value: string | undefined, otherwise: IpObject): IpObject {
  if (value === undefined) return otherwise;
  const address = value.slice(0, value.lastIndexOf('/'));
  return isHostPrefix(value) ? { [name]: address } : { [name]: address, [`${name}len`]: prefixLength(value) };
}

function mark({ fwmark, fwmask }: RuleMessage): IpObject {
  if (fwmark === undefined && fwmask === undefined) return {};
  return {
    fwmark: `0x${(fwmark ?? 0).toString(16)}`,
    ...(fwmask === undefined || fwmask === ALL_BITS ? {} : { fwmask: `0x${fwmask.toString(16)}` }),
  };
}

function ports(name: string, range: RuleMessage['sportRange']): IpObject {
  if (range === undefined) return {};
  return range.start === range.end
    ? { [name]: range.start }
    : { [`${name}_start`]: range.start, [`${name}_end`]: range.end };
}

function lookup(rule: RuleMessage, names: IpNames): IpObject {
  if (rule.table === 0) return {};
  return {
    table: names.table(rule.table),
    ...(rule.suppressPrefixlength === undefined ? {} : { suppress_prefixlen: rule.suppressPrefixlength }),
    ...(rule.suppressIfgroup === undefined ? {} : { suppress_ifgroup: names.group(rule.suppressIfgroup) }),
  };
}

function realms(flow: number, names: IpNames): IpObject {
  const from = flow >>> 16;
  return { ...(from === 0 ? {} : { flow_from: names.realm(from) }), flow_to: names.realm(flow & 0xffff) };
}

const ACTIONS: Readonly<Record<number, string>> = {
  [FR_ACT_BLACKHOLE]: 'blackhole',
  [FR_ACT_UNREACHABLE]: 'unreachable',
  [FR_ACT_PROHIBIT]: 'prohibit',
};

function action(rule: RuleMessage): IpObject {
  switch (rule.action) {
    case FR_ACT_TO_TBL:
      return {};
    case FR_ACT_GOTO:
      return { goto: rule.goto ?? 'none', ...flag('unresolved', rule.flags, FIB_RULE_UNRESOLVED) };
    case FR_ACT_NOP:
      return { nop: null };
    default:
      return { action: ACTIONS[rule.action] ?? String(rule.action) };
  }
}

function bigEndian(bytes: Uint8Array): number {
  return bytes.reduce((value, byte) => value * 256 + byte, 0);
}
