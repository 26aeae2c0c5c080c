import { be16, be32, type Codec, flag, ipAddress, u8, u32 } from '../codec.ts';
import { attribute } from '../field.ts';
import { type MessageOf, messageCodec } from '../message-codec.ts';
import {
  IFLA_VXLAN_AGEING,
  IFLA_VXLAN_COLLECT_METADATA,
  IFLA_VXLAN_DF,
  IFLA_VXLAN_GBP,
  IFLA_VXLAN_GPE,
  IFLA_VXLAN_GROUP,
  IFLA_VXLAN_GROUP6,
  IFLA_VXLAN_ID,
  IFLA_VXLAN_L2MISS,
  IFLA_VXLAN_L3MISS,
  IFLA_VXLAN_LABEL,
  IFLA_VXLAN_LEARNING,
  IFLA_VXLAN_LIMIT,
  IFLA_VXLAN_LINK,
  IFLA_VXLAN_LOCAL,
  IFLA_VXLAN_LOCAL6,
  IFLA_VXLAN_PORT,
  IFLA_VXLAN_PORT_RANGE,
  IFLA_VXLAN_PROXY,
  IFLA_VXLAN_REMCSUM_RX,
  IFLA_VXLAN_REMCSUM_TX,
  IFLA_VXLAN_RSC,
  IFLA_VXLAN_TOS,
  IFLA_VXLAN_TTL,
  IFLA_VXLAN_TTL_INHERIT,
  IFLA_VXLAN_UDP_CSUM,
  IFLA_VXLAN_UDP_ZERO_CSUM6_RX,
  IFLA_VXLAN_UDP_ZERO_CSUM6_TX,
  IFLA_VXLAN_VNIFILTER,
} from '../uapi/if-link.ts';

/** struct ifla_vxlan_port_range { be16 low; be16 high; } */
const portRange: Codec<{ readonly low: number; readonly high: number }> = {
  read(view, offset, length) {
    const low = be16.read(view, offset, length - 2);
    const high = be16.read(view, offset + 2, length - 2);
    return low === undefined || high === undefined ? undefined : { low, high };
  },
  write(writer, { low, high }, field) {
    be16.write(writer, low, field);
    be16.write(writer, high, field);
  },
};

/** Parameters of a VXLAN; ageing in seconds. @see uapi/linux/if_link.h IFLA_VXLAN_* */
export const VXLAN_INFO = messageCodec('vxlan', 0, {
  id: attribute(IFLA_VXLAN_ID, u32),
  group: attribute(IFLA_VXLAN_GROUP, ipAddress),
  link: attribute(IFLA_VXLAN_LINK, u32),
  local: attribute(IFLA_VXLAN_LOCAL, ipAddress),
  ttl: attribute(IFLA_VXLAN_TTL, u8),
  tos: attribute(IFLA_VXLAN_TOS, u8),
  learning: attribute(IFLA_VXLAN_LEARNING, u8),
  ageing: attribute(IFLA_VXLAN_AGEING, u32),
  limit: attribute(IFLA_VXLAN_LIMIT, u32),
  portRange: attribute(IFLA_VXLAN_PORT_RANGE, portRange),
  proxy: attribute(IFLA_VXLAN_PROXY, u8),
  rsc: attribute(IFLA_VXLAN_RSC, u8),
  l2miss: attribute(IFLA_VXLAN_L2MISS, u8),
  l3miss: attribute(IFLA_VXLAN_L3MISS, u8),
  port: attribute(IFLA_VXLAN_PORT, be16),
  group6: attribute(IFLA_VXLAN_GROUP6, ipAddress),
  local6: attribute(IFLA_VXLAN_LOCAL6, ipAddress),
  udpCsum: attribute(IFLA_VXLAN_UDP_CSUM, u8),
  udpZeroCsum6Tx: attribute(IFLA_VXLAN_UDP_ZERO_CSUM6_TX, u8),
  udpZeroCsum6Rx: attribute(IFLA_VXLAN_UDP_ZERO_CSUM6_RX, u8),
  remcsumTx: attribute(IFLA_VXLAN_REMCSUM_TX, u8),
  remcsumRx: attribute(IFLA_VXLAN_REMCSUM_RX, u8),
  gbp: attribute(IFLA_VXLAN_GBP, flag),
  collectMetadata: attribute(IFLA_VXLAN_COLLECT_METADATA, u8),
  label: attribute(IFLA_VXLAN_LABEL, be32),
  gpe: attribute(IFLA_VXLAN_GPE, flag),
  ttlInherit: attribute(IFLA_VXLAN_TTL_INHERIT, u8),
  df: attribute(IFLA_VXLAN_DF, u8),
  vnifilter: attribute(IFLA_VXLAN_VNIFILTER, u8),
});

/** Parameters of a VXLAN as the kernel reports them. */
export type VxlanInfo = MessageOf<typeof VXLAN_INFO>;
