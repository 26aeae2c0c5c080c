import { type Codec, ifName, rawBytes, u8, u32 } from './codec.ts';
import { attribute, attributeOr, attributeUnless, headerU8, headerU32, outgrownU8, prefix } from './field.ts';
import { type MessageOf, messageCodec } from './message-codec.ts';
import {
  FRA_DPORT_RANGE,
  FRA_DST,
  FRA_FLOW,
  FRA_FWMARK,
  FRA_FWMASK,
  FRA_GOTO,
  FRA_IIFNAME,
  FRA_IP_PROTO,
  FRA_L3MDEV,
  FRA_OIFNAME,
  FRA_PRIORITY,
  FRA_PROTOCOL,
  FRA_SPORT_RANGE,
  FRA_SRC,
  FRA_SUPPRESS_IFGROUP,
  FRA_SUPPRESS_PREFIXLEN,
  FRA_TABLE,
  FRA_TUN_ID,
  FRA_UID_RANGE,
} from './uapi/fib-rules.ts';

/** Inclusive range of ports or user ids. */
export type NumberRange = { readonly start: number; readonly end: number };

/** The value that the kernel reports for a suppressor that was never set. */
const NOT_SUPPRESSED = 0xffffffff;

/** struct fib_rule_port_range: host order, unlike the ports of routes. */
const portRange: Codec<NumberRange> = {
  read: (view, offset, length) =>
    length === 4 ? { start: view.readU16(offset), end: view.readU16(offset + 2) } : undefined,
  write(writer, value) {
    writer.u16(value.start);
    writer.u16(value.end);
  },
};

/** struct fib_rule_uid_range. */
const uidRange: Codec<NumberRange> = {
  read: (view, offset, length) =>
    length === 8 ? { start: view.readU32(offset), end: view.readU32(offset + 4) } : undefined,
  write(writer, value, field) {
    u32.write(writer, value.start, field);
    u32.write(writer, value.end, field);
  },
};

/**
 * struct fib_rule_hdr { u8 family; u8 dst_len; u8 src_len; u8 tos; u8 table; u8 res1; u8 res2; u8 action; u32 flags; }
 * @see uapi/linux/fib_rules.h
 */
export const RULE = messageCodec('rule', 12, {
  family: headerU8(0),
  tos: headerU8(3),
  /** FR_ACT_*. */
  action: headerU8(7),
  /** FIB_RULE_*. */
  flags: headerU32(8),
  priority: attributeOr(FRA_PRIORITY, u32, 0),
  src: prefix(FRA_SRC, 2),
  dst: prefix(FRA_DST, 1),
  fwmark: attribute(FRA_FWMARK, u32),
  fwmask: attribute(FRA_FWMASK, u32),
  iifname: attribute(FRA_IIFNAME, ifName),
  oifname: attribute(FRA_OIFNAME, ifName),
  table: outgrownU8(FRA_TABLE, 4),
  /** Refuses results whose prefix is this long or shorter: 0 ignores the table's default route. */
  suppressPrefixlength: attributeUnless(FRA_SUPPRESS_PREFIXLEN, u32, NOT_SUPPRESSED),
  suppressIfgroup: attributeUnless(FRA_SUPPRESS_IFGROUP, u32, NOT_SUPPRESSED),
  /** The program that made the rule, RTPROT_*. Kernels before 4.17 do not store it. */
  protocol: attribute(FRA_PROTOCOL, u8),
  goto: attribute(FRA_GOTO, u32),
  flow: attribute(FRA_FLOW, u32),
  /** struct: 64 bits in network order. */
  tunId: attribute(FRA_TUN_ID, rawBytes),
  l3mdev: attribute(FRA_L3MDEV, u8),
  uidRange: attribute(FRA_UID_RANGE, uidRange),
  /** IPPROTO_*. */
  ipProto: attribute(FRA_IP_PROTO, u8),
  sportRange: attribute(FRA_SPORT_RANGE, portRange),
  dportRange: attribute(FRA_DPORT_RANGE, portRange),
});

/** Policy rule, as the kernel reports it. */
export type RuleMessage = MessageOf<typeof RULE>;

/**
 * Rule to add or delete; a message is a spec. To delete, the kernel compares the given fields, so give as many as are
 * known.
 * @see ip-rule(8)
 */
export type RuleSpec = Partial<RuleMessage> & {
  /**
   * A lower number is looked up earlier. It is required, because the kernel would otherwise select one before all
   * others.
   */
  readonly priority: number;
};
