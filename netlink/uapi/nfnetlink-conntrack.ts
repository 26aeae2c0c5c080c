/**
 * Constants of connection tracking by netlink, kernel names kept.
 * @see uapi/linux/netfilter/nfnetlink.h, nfnetlink_conntrack.h, nf_conntrack_common.h, nf_conntrack_tcp.h
 */
export const NFNL_SUBSYS_CTNETLINK = 1;
/** A message type is the subsystem << 8 | one of these. */
export const IPCTNL_MSG_CT_NEW = 0;
export const IPCTNL_MSG_CT_GET = 1;

export const CTA_TUPLE_ORIG = 1;
export const CTA_TUPLE_REPLY = 2;
export const CTA_STATUS = 3;
export const CTA_PROTOINFO = 4;
export const CTA_ZONE = 18;
/** With it the kernel dumps only entries whose status has the bits of CTA_STATUS (5.18); an older one ignores it. No bit: EINVAL. */
export const CTA_STATUS_MASK = 26;

export const CTA_TUPLE_IP = 1;
export const CTA_TUPLE_PROTO = 2;
export const CTA_TUPLE_ZONE = 3;

export const CTA_IP_V4_SRC = 1;
export const CTA_IP_V4_DST = 2;
export const CTA_IP_V6_SRC = 3;
export const CTA_IP_V6_DST = 4;

export const CTA_PROTO_NUM = 1;
export const CTA_PROTO_SRC_PORT = 2;
export const CTA_PROTO_DST_PORT = 3;

export const CTA_PROTOINFO_TCP = 1;

export const CTA_PROTOINFO_TCP_STATE = 1;
export const CTA_PROTOINFO_TCP_WSCALE_ORIGINAL = 2;
export const CTA_PROTOINFO_TCP_WSCALE_REPLY = 3;
export const CTA_PROTOINFO_TCP_FLAGS_ORIGINAL = 4;
export const CTA_PROTOINFO_TCP_FLAGS_REPLY = 5;

export const IPS_ASSURED = 1 << 2;
export const IPS_CONFIRMED = 1 << 3;
export const IPS_SRC_NAT = 1 << 4;
export const IPS_DST_NAT = 1 << 5;

export const TCP_CONNTRACK_ESTABLISHED = 3;
export const TCP_CONNTRACK_TIME_WAIT = 7;

/** What its sender sends is valid whatever its sequence number is. */
export const IP_CT_TCP_FLAG_BE_LIBERAL = 0x08;
