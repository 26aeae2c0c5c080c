import { be16, be32, type Codec, ipAddress, u8 } from './codec.ts';
import { attribute, headerBe16, headerU8, nestedAttribute } from './field.ts';
import { type MessageOf, messageCodec, nested } from './message-codec.ts';
import {
  CTA_IP_V4_DST,
  CTA_IP_V4_SRC,
  CTA_IP_V6_DST,
  CTA_IP_V6_SRC,
  CTA_PROTO_DST_PORT,
  CTA_PROTO_NUM,
  CTA_PROTO_SRC_PORT,
  CTA_PROTOINFO,
  CTA_PROTOINFO_TCP,
  CTA_PROTOINFO_TCP_FLAGS_ORIGINAL,
  CTA_PROTOINFO_TCP_FLAGS_REPLY,
  CTA_PROTOINFO_TCP_STATE,
  CTA_PROTOINFO_TCP_WSCALE_ORIGINAL,
  CTA_PROTOINFO_TCP_WSCALE_REPLY,
  CTA_STATUS,
  CTA_STATUS_MASK,
  CTA_TUPLE_IP,
  CTA_TUPLE_ORIG,
  CTA_TUPLE_PROTO,
  CTA_TUPLE_REPLY,
  CTA_TUPLE_ZONE,
  CTA_ZONE,
} from './uapi/nfnetlink-conntrack.ts';

/** struct nf_ct_tcp_flags: the bits of `mask` become those of `flags`. The kernel reports a mask of 0. */
const tcpFlags: Codec<{ readonly flags: number; readonly mask: number }> = {
  read: (view, offset, length) =>
    length === 2 ? { flags: view.readU8(offset), mask: view.readU8(offset + 1) } : undefined,
  write(writer, { flags, mask }, field) {
    u8.write(writer, flags, `${field}.flags`);
    u8.write(writer, mask, `${field}.mask`);
  },
};

const ADDRESSES = messageCodec('conntrack.ip', 0, {
  srcV4: attribute(CTA_IP_V4_SRC, ipAddress),
  dstV4: attribute(CTA_IP_V4_DST, ipAddress),
  srcV6: attribute(CTA_IP_V6_SRC, ipAddress),
  dstV6: attribute(CTA_IP_V6_DST, ipAddress),
});

const PROTOCOL = messageCodec('conntrack.proto', 0, {
  /** IPPROTO_TCP and the like. */
  number: attribute(CTA_PROTO_NUM, u8),
  sport: attribute(CTA_PROTO_SRC_PORT, be16),
  dport: attribute(CTA_PROTO_DST_PORT, be16),
});

const TUPLE = messageCodec('conntrack.tuple', 0, {
  ip: nestedAttribute(CTA_TUPLE_IP, nested(ADDRESSES)),
  proto: nestedAttribute(CTA_TUPLE_PROTO, nested(PROTOCOL)),
  /** Of an entry whose zone is that of one direction. */
  zone: attribute(CTA_TUPLE_ZONE, be16),
});

const TCP = messageCodec('conntrack.tcp', 0, {
  /** TCP_CONNTRACK_ESTABLISHED and the like. */
  state: attribute(CTA_PROTOINFO_TCP_STATE, u8),
  wscaleOriginal: attribute(CTA_PROTOINFO_TCP_WSCALE_ORIGINAL, u8),
  wscaleReply: attribute(CTA_PROTOINFO_TCP_WSCALE_REPLY, u8),
  flagsOriginal: attribute(CTA_PROTOINFO_TCP_FLAGS_ORIGINAL, tcpFlags),
  flagsReply: attribute(CTA_PROTOINFO_TCP_FLAGS_REPLY, tcpFlags),
});

const PROTO_INFO = messageCodec('conntrack.protoInfo', 0, {
  tcp: nestedAttribute(CTA_PROTOINFO_TCP, nested(TCP)),
});

/** Entry of connection tracking: struct nfgenmsg, then attributes. @see uapi/linux/netfilter/nfnetlink_conntrack.h */
export const CONNTRACK = messageCodec('conntrack', 4, {
  family: headerU8(0),
  version: headerU8(1),
  resId: headerBe16(2),
  tupleOrig: nestedAttribute(CTA_TUPLE_ORIG, nested(TUPLE)),
  tupleReply: nestedAttribute(CTA_TUPLE_REPLY, nested(TUPLE)),
  /** IPS_ASSURED and the like. */
  status: attribute(CTA_STATUS, be32),
  /** In a request for a dump: the bits of `status` that count. */
  statusMask: attribute(CTA_STATUS_MASK, be32),
  protoInfo: nestedAttribute(CTA_PROTOINFO, nested(PROTO_INFO)),
  zone: attribute(CTA_ZONE, be16),
});

/** Entry of connection tracking, as the kernel reports it; in a request, what of it is meant. */
export type ConntrackMessage = MessageOf<typeof CONNTRACK>;
