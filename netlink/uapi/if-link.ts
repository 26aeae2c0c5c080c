/**
 * Constants of link messages, kernel names kept.
 * @see uapi/linux/if_link.h, uapi/linux/if.h, uapi/linux/veth.h
 */
export const IFF_UP = 0x1;
export const IFF_BROADCAST = 0x2;
export const IFF_LOOPBACK = 0x8;
export const IFF_NOARP = 0x80;
export const IFF_PROMISC = 0x100;
export const IFF_ALLMULTI = 0x200;
export const IFF_MULTICAST = 0x1000;
export const IFF_LOWER_UP = 0x10000;
export const IFNAMSIZ = 16;

export const IFLA_ADDRESS = 1;
export const IFLA_BROADCAST = 2;
export const IFLA_IFNAME = 3;
export const IFLA_MTU = 4;
export const IFLA_LINK = 5;
export const IFLA_QDISC = 6;
export const IFLA_MASTER = 10;
export const IFLA_TXQLEN = 13;
export const IFLA_OPERSTATE = 16;
export const IFLA_LINKINFO = 18;
export const IFLA_NET_NS_PID = 19;
export const IFLA_IFALIAS = 20;
export const IFLA_GROUP = 27;
export const IFLA_NET_NS_FD = 28;
export const IFLA_EXT_MASK = 29;
export const IFLA_PROMISCUITY = 30;
export const IFLA_NUM_TX_QUEUES = 31;
export const IFLA_NUM_RX_QUEUES = 32;
export const IFLA_CARRIER = 33;
export const IFLA_LINK_NETNSID = 37;
export const IFLA_NEW_IFINDEX = 49;
export const IFLA_MIN_MTU = 50;
export const IFLA_MAX_MTU = 51;
export const IFLA_ALT_IFNAME = 53;
export const IFLA_PERM_ADDRESS = 54;

export const IFLA_INFO_KIND = 1;
export const IFLA_INFO_DATA = 2;
export const IFLA_INFO_SLAVE_KIND = 4;
export const VETH_INFO_PEER = 1;

export const IFLA_BR_FORWARD_DELAY = 1;
export const IFLA_BR_HELLO_TIME = 2;
export const IFLA_BR_MAX_AGE = 3;
export const IFLA_BR_AGEING_TIME = 4;
export const IFLA_BR_STP_STATE = 5;
export const IFLA_BR_PRIORITY = 6;
export const IFLA_BR_VLAN_FILTERING = 7;
export const IFLA_BR_VLAN_DEFAULT_PVID = 39;

/** Leaves per-device statistics out of a link dump: half of its bytes. @see uapi/linux/rtnetlink.h */
export const RTEXT_FILTER_SKIP_STATS = 8;
