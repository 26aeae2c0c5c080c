/**
 * Constants of policy rules, kernel names kept.
 * @see uapi/linux/fib_rules.h, ip-rule(8)
 */
export const FRA_DST = 1;
export const FRA_SRC = 2;
export const FRA_IIFNAME = 3;
export const FRA_GOTO = 4;
export const FRA_PRIORITY = 6;
export const FRA_FWMARK = 10;
export const FRA_FLOW = 11;
export const FRA_TUN_ID = 12;
export const FRA_SUPPRESS_IFGROUP = 13;
export const FRA_SUPPRESS_PREFIXLEN = 14;
export const FRA_TABLE = 15;
export const FRA_FWMASK = 16;
export const FRA_OIFNAME = 17;
export const FRA_L3MDEV = 19;
export const FRA_UID_RANGE = 20;
export const FRA_PROTOCOL = 21;
export const FRA_IP_PROTO = 22;
export const FRA_SPORT_RANGE = 23;
export const FRA_DPORT_RANGE = 24;

export const FR_ACT_TO_TBL = 1;
export const FR_ACT_GOTO = 2;
export const FR_ACT_NOP = 3;
export const FR_ACT_BLACKHOLE = 6;
export const FR_ACT_UNREACHABLE = 7;
export const FR_ACT_PROHIBIT = 8;

export const FIB_RULE_PERMANENT = 0x1;
export const FIB_RULE_INVERT = 0x2;
export const FIB_RULE_UNRESOLVED = 0x4;
export const FIB_RULE_IIF_DETACHED = 0x8;
export const FIB_RULE_OIF_DETACHED = 0x10;
