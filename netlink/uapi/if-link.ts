/**
 * Constants of link messages, kernel names kept.
 * @see uapi/linux/if_link.h, uapi/linux/if.h, uapi/linux/veth.h
 */
export const IFF_UP = 0x1;
export const IFF_BROADCAST = 0x2;
export const IFF_DEBUG = 0x4;
export const IFF_LOOPBACK = 0x8;
export const IFF_POINTOPOINT = 0x10;
export const IFF_NOTRAILERS = 0x20;
export const IFF_RUNNING = 0x40;
export const IFF_NOARP = 0x80;
export const IFF_PROMISC = 0x100;
export const IFF_ALLMULTI = 0x200;
export const IFF_MASTER = 0x400;
export const IFF_SLAVE = 0x800;
export const IFF_MULTICAST = 0x1000;
export const IFF_PORTSEL = 0x2000;
export const IFF_AUTOMEDIA = 0x4000;
export const IFF_DYNAMIC = 0x8000;
export const IFF_LOWER_UP = 0x10000;
export const IFF_DORMANT = 0x20000;
export const IFF_ECHO = 0x40000;
export const IFNAMSIZ = 16;

export const IFLA_ADDRESS = 1;
export const IFLA_BROADCAST = 2;
export const IFLA_IFNAME = 3;
export const IFLA_MTU = 4;
export const IFLA_LINK = 5;
export const IFLA_QDISC = 6;
export const IFLA_MASTER = 10;
export const IFLA_PROTINFO = 12;
export const IFLA_TXQLEN = 13;
export const IFLA_OPERSTATE = 16;
export const IFLA_LINKMODE = 17;
export const IFLA_LINKINFO = 18;
export const IFLA_NET_NS_PID = 19;
export const IFLA_IFALIAS = 20;
export const IFLA_AF_SPEC = 26;
export const IFLA_GROUP = 27;
export const IFLA_NET_NS_FD = 28;
export const IFLA_EXT_MASK = 29;
export const IFLA_PROMISCUITY = 30;
export const IFLA_NUM_TX_QUEUES = 31;
export const IFLA_NUM_RX_QUEUES = 32;
export const IFLA_CARRIER = 33;
export const IFLA_LINK_NETNSID = 37;
export const IFLA_PROTO_DOWN = 39;
export const IFLA_GSO_MAX_SEGS = 40;
export const IFLA_GSO_MAX_SIZE = 41;
export const IFLA_XDP = 43;
export const IFLA_NEW_IFINDEX = 49;
export const IFLA_MIN_MTU = 50;
export const IFLA_MAX_MTU = 51;
export const IFLA_PROP_LIST = 52;
export const IFLA_ALT_IFNAME = 53;
export const IFLA_PERM_ADDRESS = 54;
export const IFLA_PARENT_DEV_NAME = 56;
export const IFLA_PARENT_DEV_BUS_NAME = 57;
export const IFLA_GRO_MAX_SIZE = 58;
export const IFLA_TSO_MAX_SIZE = 59;
export const IFLA_TSO_MAX_SEGS = 60;
export const IFLA_ALLMULTI = 61;
export const IFLA_GSO_IPV4_MAX_SIZE = 63;
export const IFLA_GRO_IPV4_MAX_SIZE = 64;

export const IFLA_INET6_TOKEN = 7;
export const IFLA_INET6_ADDR_GEN_MODE = 8;

export const IFLA_XDP_ATTACHED = 2;
export const IFLA_XDP_PROG_ID = 4;
export const XDP_ATTACHED_NONE = 0;

export const IFLA_INFO_KIND = 1;
export const IFLA_INFO_DATA = 2;
export const IFLA_INFO_SLAVE_KIND = 4;
export const IFLA_INFO_SLAVE_DATA = 5;
export const VETH_INFO_PEER = 1;

export const IFLA_BR_FORWARD_DELAY = 1;
export const IFLA_BR_HELLO_TIME = 2;
export const IFLA_BR_MAX_AGE = 3;
export const IFLA_BR_AGEING_TIME = 4;
export const IFLA_BR_STP_STATE = 5;
export const IFLA_BR_PRIORITY = 6;
export const IFLA_BR_VLAN_FILTERING = 7;
export const IFLA_BR_VLAN_DEFAULT_PVID = 39;

export const IFLA_BRPORT_STATE = 1;
export const IFLA_BRPORT_PRIORITY = 2;
export const IFLA_BRPORT_COST = 3;
export const IFLA_BRPORT_MODE = 4;
export const IFLA_BRPORT_LEARNING = 8;
export const IFLA_BRPORT_UNICAST_FLOOD = 9;
export const IFLA_BRPORT_PROXYARP = 10;
export const IFLA_BRPORT_BCAST_FLOOD = 30;
export const IFLA_BRPORT_ISOLATED = 33;
export const IFLA_BRPORT_LOCKED = 39;

export const IFLA_MACVLAN_MODE = 1;
export const MACVLAN_MODE_PASSTHRU = 8;

/** Excludes per-device statistics from a link dump: half of its bytes. @see uapi/linux/rtnetlink.h */
export const RTEXT_FILTER_SKIP_STATS = 8;
