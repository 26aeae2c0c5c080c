import { i32, ifName, linkAddress, text, u8, u32, unterminatedText } from './codec.ts';
import { attribute, headerU8, headerU16, headerU32 } from './field.ts';
import type { Fields } from './message-codec.ts';
import {
  IFLA_ADDRESS,
  IFLA_BROADCAST,
  IFLA_CARRIER,
  IFLA_EXT_MASK,
  IFLA_GROUP,
  IFLA_IFALIAS,
  IFLA_IFNAME,
  IFLA_LINK,
  IFLA_LINK_NETNSID,
  IFLA_MASTER,
  IFLA_MAX_MTU,
  IFLA_MIN_MTU,
  IFLA_MTU,
  IFLA_NET_NS_FD,
  IFLA_NET_NS_PID,
  IFLA_NUM_RX_QUEUES,
  IFLA_NUM_TX_QUEUES,
  IFLA_OPERSTATE,
  IFLA_PERM_ADDRESS,
  IFLA_PROMISCUITY,
  IFLA_QDISC,
  IFLA_TXQLEN,
} from './uapi/if-link.ts';

/** Length limit of an alias, NUL included. @see uapi/linux/if.h IFALIASZ */
const IFALIASZ = 256;

/**
 * All of a link but its kind; a veth's peer inside a request is described by these too.
 * struct ifinfomsg { u8 family; u8 pad; u16 type; s32 index; u32 flags; u32 change; }
 * @see uapi/linux/rtnetlink.h, uapi/linux/if_link.h
 */
export const LINK_FIELDS = {
  family: headerU8(0),
  type: headerU16(2),
  ifindex: headerU32(4),
  flags: headerU32(8),
  change: headerU32(12),
  ifname: attribute(IFLA_IFNAME, ifName),
  mtu: attribute(IFLA_MTU, u32),
  address: attribute(IFLA_ADDRESS, linkAddress),
  broadcast: attribute(IFLA_BROADCAST, linkAddress),
  group: attribute(IFLA_GROUP, u32),
  txqlen: attribute(IFLA_TXQLEN, u32),
  numTxQueues: attribute(IFLA_NUM_TX_QUEUES, u32),
  numRxQueues: attribute(IFLA_NUM_RX_QUEUES, u32),
  /** Ifindex of the device below or of the other end; in namespace `linkNetnsid` when that is there. */
  link: attribute(IFLA_LINK, u32),
  linkNetnsid: attribute(IFLA_LINK_NETNSID, i32),
  /** Ifindex of the bridge; 0 in a request takes the link out of its bridge. */
  master: attribute(IFLA_MASTER, u32),
  /** RFC 2863 state: 0 unknown, 2 down, 3 lower layer down, 5 dormant, 6 up. */
  operstate: attribute(IFLA_OPERSTATE, u8),
  carrier: attribute(IFLA_CARRIER, u8),
  qdisc: attribute(IFLA_QDISC, text(32)),
  ifalias: attribute(IFLA_IFALIAS, unterminatedText(IFALIASZ)),
  promiscuity: attribute(IFLA_PROMISCUITY, u32),
  minMtu: attribute(IFLA_MIN_MTU, u32),
  maxMtu: attribute(IFLA_MAX_MTU, u32),
  permAddress: attribute(IFLA_PERM_ADDRESS, linkAddress),
  netNsPid: attribute(IFLA_NET_NS_PID, u32),
  netNsFd: attribute(IFLA_NET_NS_FD, u32),
  extMask: attribute(IFLA_EXT_MASK, u32),
} as const satisfies Fields;
