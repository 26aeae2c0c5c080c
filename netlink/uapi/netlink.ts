/**
 * Constants of the netlink protocol, kernel names kept.
 * @see uapi/linux/netlink.h
 */
export const AF_UNSPEC = 0;
export const AF_INET = 2;
export const AF_BRIDGE = 7;
export const AF_INET6 = 10;
export const AF_NETLINK = 16;

export const NETLINK_ROUTE = 0;
export const NETLINK_SOCK_DIAG = 4;
export const NETLINK_XFRM = 6;
export const NETLINK_NETFILTER = 12;

export const NLMSG_NOOP = 1;
export const NLMSG_ERROR = 2;
export const NLMSG_DONE = 3;
export const NLMSG_OVERRUN = 4;
export const NLMSG_HDRLEN = 16;

export const NLM_F_REQUEST = 0x01;
export const NLM_F_MULTI = 0x02;
export const NLM_F_ACK = 0x04;
export const NLM_F_ECHO = 0x08;
export const NLM_F_DUMP_INTR = 0x10;
export const NLM_F_DUMP_FILTERED = 0x20;
export const NLM_F_DUMP = 0x300;
export const NLM_F_REPLACE = 0x100;
export const NLM_F_EXCL = 0x200;
export const NLM_F_CREATE = 0x400;
export const NLM_F_APPEND = 0x800;
/** On an NLMSG_ERROR: the request is not echoed. */
export const NLM_F_CAPPED = 0x100;
/** On an NLMSG_ERROR or NLMSG_DONE: extended acknowledgement attributes follow. */
export const NLM_F_ACK_TLVS = 0x200;

export const NLA_HDRLEN = 4;
export const NLA_F_NESTED = 0x8000;
export const NLA_F_NET_BYTEORDER = 0x4000;
export const NLA_TYPE_MASK = 0x3fff;

export const NLMSGERR_ATTR_MSG = 1;
export const NLMSGERR_ATTR_OFFS = 2;
export const NLMSGERR_ATTR_COOKIE = 3;
export const NLMSGERR_ATTR_POLICY = 4;
export const NLMSGERR_ATTR_MISS_TYPE = 5;
export const NLMSGERR_ATTR_MISS_NEST = 6;

export const SOL_NETLINK = 270;
export const NETLINK_ADD_MEMBERSHIP = 1;
export const NETLINK_NO_ENOBUFS = 5;
export const NETLINK_CAP_ACK = 10;
export const NETLINK_EXT_ACK = 11;
export const NETLINK_GET_STRICT_CHK = 12;

/** Multicast group of NETLINK_NETFILTER that announces nftables changes. @see uapi/linux/netfilter/nfnetlink.h */
export const NFNLGRP_NFTABLES = 7;
/** Message type: subsystem NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN. @see uapi/linux/netfilter/nf_tables.h */
export const NFNL_SUBSYS_NFTABLES = 10;
export const NFT_MSG_NEWGEN = 15;
export const NFTA_GEN_ID = 1;
export const NFTA_GEN_PROC_PID = 2;
export const NFTA_GEN_PROC_NAME = 3;
