import { type Codec, i32, ifName, ipAddress, linkAddress, rawBytes, text, u8, u32, unterminatedText } from './codec.ts';
import { attribute, headerU8, headerU16, headerU32 } from './field.ts';
import { type Fields, messageCodec, nested } from './message-codec.ts';
import { walkAttributes } from './rtattr.ts';
import {
  IFLA_ADDRESS,
  IFLA_AF_SPEC,
  IFLA_ALLMULTI,
  IFLA_ALT_IFNAME,
  IFLA_BROADCAST,
  IFLA_CARRIER,
  IFLA_EXT_MASK,
  IFLA_GRO_IPV4_MAX_SIZE,
  IFLA_GRO_MAX_SIZE,
  IFLA_GROUP,
  IFLA_GSO_IPV4_MAX_SIZE,
  IFLA_GSO_MAX_SEGS,
  IFLA_GSO_MAX_SIZE,
  IFLA_IFALIAS,
  IFLA_IFNAME,
  IFLA_INET6_ADDR_GEN_MODE,
  IFLA_INET6_TOKEN,
  IFLA_LINK,
  IFLA_LINK_NETNSID,
  IFLA_LINKMODE,
  IFLA_MASTER,
  IFLA_MAX_MTU,
  IFLA_MIN_MTU,
  IFLA_MTU,
  IFLA_NET_NS_FD,
  IFLA_NET_NS_PID,
  IFLA_NUM_RX_QUEUES,
  IFLA_NUM_TX_QUEUES,
  IFLA_OPERSTATE,
  IFLA_PARENT_DEV_BUS_NAME,
  IFLA_PARENT_DEV_NAME,
  IFLA_PERM_ADDRESS,
  IFLA_PROMISCUITY,
  IFLA_PROP_LIST,
  IFLA_PROTINFO,
  IFLA_PROTO_DOWN,
  IFLA_QDISC,
  IFLA_TSO_MAX_SEGS,
  IFLA_TSO_MAX_SIZE,
  IFLA_TXQLEN,
  IFLA_XDP,
  IFLA_XDP_ATTACHED,
  IFLA_XDP_PROG_ID,
} from './uapi/if-link.ts';
import { AF_INET6 } from './uapi/netlink.ts';

/** Length limit of an alias, NUL included. @see uapi/linux/if.h IFALIASZ */
const IFALIASZ = 256;

/** Names of devices below: 'virtio0', 'pci'. */
const PARENT_NAME_BYTES = 256;
/** Length limit of an alternative name, NUL included. @see uapi/linux/if.h ALTIFNAMSIZ */
const ALTIFNAMSIZ = 128;

const INET6 = messageCodec('link.afSpec.inet6', 0, {
  token: attribute(IFLA_INET6_TOKEN, ipAddress),
  /** IN6_ADDR_GEN_MODE_*: 0 eui64, 1 none, 2 stable privacy, 3 random. */
  addrGenMode: attribute(IFLA_INET6_ADDR_GEN_MODE, u8),
});
const AF_SPEC = messageCodec('link.afSpec', 0, { inet6: attribute(AF_INET6, nested(INET6)) });

/** Program that every packet passes before anything else. */
const XDP = messageCodec('link.xdp', 0, {
  /** XDP_ATTACHED_*: 0 none, 1 driver, 2 generic, 3 hardware, 4 several. */
  attached: attribute(IFLA_XDP_ATTACHED, u8),
  /** Id of the program, for bpftool; absent where several are attached. */
  programId: attribute(IFLA_XDP_PROG_ID, u32),
});

/** Alternative names: one attribute each. */
const altNames: Codec<readonly string[]> = {
  read(view, offset, length) {
    const names: string[] = [];
    const isComplete = walkAttributes(view, offset, offset + length, (type, at, size) => {
      const name = type === IFLA_ALT_IFNAME ? altName.read(view, at, size) : undefined;
      if (name !== undefined) names.push(name);
    });
    return isComplete && names.length > 0 ? names : undefined;
  },
  write(writer, names, field) {
    for (const name of names) {
      const start = writer.beginAttribute(IFLA_ALT_IFNAME);
      altName.write(writer, name, field);
      writer.endAttribute(start);
    }
  },
};
const altName = text(ALTIFNAMSIZ);

/**
 * All fields of a link except its kind; they also describe a veth's peer in a request. struct ifinfomsg { u8 family; u8
 * pad; u16 type; s32 index; u32 flags; u32 change; }
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
  /** Ifindex of the device below or of the other end; in namespace `linkNetnsid` when that is present. */
  link: attribute(IFLA_LINK, u32),
  linkNetnsid: attribute(IFLA_LINK_NETNSID, i32),
  /** Ifindex of the bridge; 0 in a request takes the link out of its bridge. */
  master: attribute(IFLA_MASTER, u32),
  /** Of the protocol that `family` names: of AF_BRIDGE the parameters of the port, see `bridgePortOf`. */
  protinfo: attribute(IFLA_PROTINFO, rawBytes),
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
  /** 0 default, 1 dormant. */
  linkmode: attribute(IFLA_LINKMODE, u8),
  allmulti: attribute(IFLA_ALLMULTI, u32),
  protoDown: attribute(IFLA_PROTO_DOWN, u8),
  gsoMaxSize: attribute(IFLA_GSO_MAX_SIZE, u32),
  gsoMaxSegs: attribute(IFLA_GSO_MAX_SEGS, u32),
  tsoMaxSize: attribute(IFLA_TSO_MAX_SIZE, u32),
  tsoMaxSegs: attribute(IFLA_TSO_MAX_SEGS, u32),
  groMaxSize: attribute(IFLA_GRO_MAX_SIZE, u32),
  gsoIpv4MaxSize: attribute(IFLA_GSO_IPV4_MAX_SIZE, u32),
  groIpv4MaxSize: attribute(IFLA_GRO_IPV4_MAX_SIZE, u32),
  parentDevName: attribute(IFLA_PARENT_DEV_NAME, text(PARENT_NAME_BYTES)),
  parentDevBusName: attribute(IFLA_PARENT_DEV_BUS_NAME, text(PARENT_NAME_BYTES)),
  altNames: attribute(IFLA_PROP_LIST, altNames),
  xdp: attribute(IFLA_XDP, nested(XDP)),
  afSpec: attribute(IFLA_AF_SPEC, nested(AF_SPEC)),
} as const satisfies Fields;
