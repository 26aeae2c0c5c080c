/**
 * Constants of routing messages, kernel names kept.
 * @see rtnetlink(7), uapi/linux/rtnetlink.h
 */
export const RTM_NEWLINK = 16;
export const RTM_DELLINK = 17;
export const RTM_GETLINK = 18;
export const RTM_SETLINK = 19;
export const RTM_NEWADDR = 20;
export const RTM_DELADDR = 21;
export const RTM_GETADDR = 22;
export const RTM_NEWROUTE = 24;
export const RTM_DELROUTE = 25;
export const RTM_GETROUTE = 26;
export const RTM_NEWNEIGH = 28;
export const RTM_DELNEIGH = 29;
export const RTM_GETNEIGH = 30;
export const RTM_NEWRULE = 32;
export const RTM_DELRULE = 33;
export const RTM_GETRULE = 34;
export const RTM_NEWNETCONF = 80;
export const RTM_DELNETCONF = 81;

export const RTM_NEWQDISC = 36;
export const RTM_DELQDISC = 37;
export const RTM_GETQDISC = 38;
export const RTM_NEWTFILTER = 44;
export const RTM_DELTFILTER = 45;
export const RTM_GETTFILTER = 46;

export const RTN_UNSPEC = 0;
export const RTN_UNICAST = 1;
export const RTN_LOCAL = 2;
export const RTN_BROADCAST = 3;
export const RTN_ANYCAST = 4;
export const RTN_MULTICAST = 5;
export const RTN_BLACKHOLE = 6;
export const RTN_UNREACHABLE = 7;
export const RTN_PROHIBIT = 8;
export const RTN_THROW = 9;
export const RTN_NAT = 10;

export const RTPROT_UNSPEC = 0;
export const RTPROT_REDIRECT = 1;
export const RTPROT_KERNEL = 2;
export const RTPROT_BOOT = 3;
export const RTPROT_STATIC = 4;
export const RTPROT_RA = 9;
export const RTPROT_DHCP = 16;

export const RT_SCOPE_UNIVERSE = 0;
export const RT_SCOPE_SITE = 200;
export const RT_SCOPE_LINK = 253;
export const RT_SCOPE_HOST = 254;
export const RT_SCOPE_NOWHERE = 255;

export const RT_TABLE_UNSPEC = 0;
export const RT_TABLE_COMPAT = 252;
export const RT_TABLE_DEFAULT = 253;
export const RT_TABLE_MAIN = 254;
export const RT_TABLE_LOCAL = 255;

export const RTM_F_CLONED = 0x200;
export const RTM_F_LOOKUP_TABLE = 0x1000;
export const RTM_F_FIB_MATCH = 0x2000;
export const RTM_F_OFFLOAD = 0x4000;
export const RTM_F_TRAP = 0x8000;
export const RTM_F_OFFLOAD_FAILED = 0x20000000;

export const RTNH_F_DEAD = 1;
export const RTNH_F_PERVASIVE = 2;
export const RTNH_F_ONLINK = 4;
export const RTNH_F_OFFLOAD = 8;
export const RTNH_F_LINKDOWN = 16;
export const RTNH_F_UNRESOLVED = 32;
export const RTNH_F_TRAP = 64;

export const RTA_DST = 1;
export const RTA_SRC = 2;
export const RTA_IIF = 3;
export const RTA_OIF = 4;
export const RTA_GATEWAY = 5;
export const RTA_PRIORITY = 6;
export const RTA_PREFSRC = 7;
export const RTA_METRICS = 8;
export const RTA_MULTIPATH = 9;
export const RTA_FLOW = 11;
export const RTA_CACHEINFO = 12;
export const RTA_TABLE = 15;
export const RTA_MARK = 16;
export const RTA_VIA = 18;
export const RTA_PREF = 20;
export const RTA_ENCAP_TYPE = 21;
export const RTA_ENCAP = 22;
export const RTA_EXPIRES = 23;
export const RTA_UID = 25;
export const RTA_IP_PROTO = 27;
export const RTA_SPORT = 28;
export const RTA_DPORT = 29;
export const RTA_NH_ID = 30;

export const RTAX_LOCK = 1;
export const RTAX_MTU = 2;
export const RTAX_WINDOW = 3;
export const RTAX_RTT = 4;
export const RTAX_RTTVAR = 5;
export const RTAX_SSTHRESH = 6;
export const RTAX_CWND = 7;
export const RTAX_ADVMSS = 8;
export const RTAX_REORDERING = 9;
export const RTAX_HOPLIMIT = 10;
export const RTAX_INITCWND = 11;
export const RTAX_FEATURES = 12;
export const RTAX_RTO_MIN = 13;
export const RTAX_INITRWND = 14;
export const RTAX_QUICKACK = 15;
export const RTAX_CC_ALGO = 16;
export const RTAX_FASTOPEN_NO_COOKIE = 17;

export const RTNLGRP_LINK = 1;
export const RTNLGRP_NEIGH = 3;
export const RTNLGRP_TC = 4;
export const RTNLGRP_IPV4_IFADDR = 5;
export const RTNLGRP_IPV4_ROUTE = 7;
export const RTNLGRP_IPV4_RULE = 8;
export const RTNLGRP_IPV6_IFADDR = 9;
export const RTNLGRP_IPV6_ROUTE = 11;
export const RTNLGRP_IPV6_RULE = 19;
export const RTNLGRP_IPV4_NETCONF = 24;
export const RTNLGRP_IPV6_NETCONF = 25;
