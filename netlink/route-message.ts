import { formatIp, parseIp } from '../runtime/ip-text.ts';
import type { ByteView } from './byte-view.ts';
import { be16, type Codec, ipAddress, rawBytes, text, u8, u16, u32, u32Struct } from './codec.ts';
import { CodecError } from './codec-error.ts';
import { attribute, headerU8, headerU32, outgrownU8, prefix } from './field.ts';
import { type MessageOf, messageCodec, type NestedOf, nested, withoutEmptyUnknown } from './message-codec.ts';
import { AF_INET, AF_INET6 } from './uapi/netlink.ts';
import {
  RTA_CACHEINFO,
  RTA_DPORT,
  RTA_DST,
  RTA_ENCAP,
  RTA_ENCAP_TYPE,
  RTA_EXPIRES,
  RTA_FLOW,
  RTA_GATEWAY,
  RTA_IIF,
  RTA_IP_PROTO,
  RTA_MARK,
  RTA_METRICS,
  RTA_MULTIPATH,
  RTA_NH_ID,
  RTA_OIF,
  RTA_PREF,
  RTA_PREFSRC,
  RTA_PRIORITY,
  RTA_SPORT,
  RTA_SRC,
  RTA_TABLE,
  RTA_UID,
  RTA_VIA,
  RTAX_ADVMSS,
  RTAX_CC_ALGO,
  RTAX_CWND,
  RTAX_FASTOPEN_NO_COOKIE,
  RTAX_FEATURES,
  RTAX_HOPLIMIT,
  RTAX_INITCWND,
  RTAX_INITRWND,
  RTAX_LOCK,
  RTAX_MTU,
  RTAX_QUICKACK,
  RTAX_REORDERING,
  RTAX_RTO_MIN,
  RTAX_RTT,
  RTAX_RTTVAR,
  RTAX_SSTHRESH,
  RTAX_WINDOW,
} from './uapi/rtnetlink.ts';

/** Length limit of the name. @see net/tcp.h */
const TCP_CA_NAME_MAX = 16;

/** Metrics of a route; `mtu` in bytes. @see uapi/linux/rtnetlink.h RTAX_* */
const ROUTE_METRICS = messageCodec('route.metrics', 0, {
  /** Bit n set: path discovery may not change metric n. */
  lock: attribute(RTAX_LOCK, u32),
  mtu: attribute(RTAX_MTU, u32),
  window: attribute(RTAX_WINDOW, u32),
  rtt: attribute(RTAX_RTT, u32),
  rttvar: attribute(RTAX_RTTVAR, u32),
  ssthresh: attribute(RTAX_SSTHRESH, u32),
  cwnd: attribute(RTAX_CWND, u32),
  advmss: attribute(RTAX_ADVMSS, u32),
  reordering: attribute(RTAX_REORDERING, u32),
  hoplimit: attribute(RTAX_HOPLIMIT, u32),
  initcwnd: attribute(RTAX_INITCWND, u32),
  features: attribute(RTAX_FEATURES, u32),
  rtoMin: attribute(RTAX_RTO_MIN, u32),
  initrwnd: attribute(RTAX_INITRWND, u32),
  quickack: attribute(RTAX_QUICKACK, u32),
  /** Congestion control: 'bbr'. */
  ccAlgo: attribute(RTAX_CC_ALGO, text(TCP_CA_NAME_MAX)),
  fastopenNoCookie: attribute(RTAX_FASTOPEN_NO_COOKIE, u32),
});

/** Metrics of a route. */
export type RouteMetrics = NestedOf<MessageOf<typeof ROUTE_METRICS>>;

/** struct rtvia: gateway of another family than the route's, as an IPv6 next hop of an IPv4 route. */
const via: Codec<string> = {
  read(view, offset, length) {
    const family = view.readU16(offset);
    const isComplete = (length === 6 && family === AF_INET) || (length === 18 && family === AF_INET6);
    return isComplete ? formatIp(view.u8, offset + 2, length - 2) : undefined;
  },
  write(writer, value, field) {
    const address = parseIp(value);
    if (address === undefined) {
      throw new CodecError(field, `expected an IP address, got ${JSON.stringify(value)}`);
    }
    writer.u16(address.length === 4 ? AF_INET : AF_INET6);
    writer.bytes(address);
  },
};

/** struct rtnexthop { u16 len; u8 flags; u8 hops; s32 ifindex; }, then attributes; `len` belongs to the list. */
const NEXTHOP_HEADER_BYTES = 8;
const NEXTHOP = messageCodec('route.multipath', NEXTHOP_HEADER_BYTES, {
  /** RTNH_F_*. */
  flags: headerU8(2),
  /** Weight minus one. */
  hops: headerU8(3),
  oif: headerU32(4),
  gateway: attribute(RTA_GATEWAY, ipAddress),
  via: attribute(RTA_VIA, via),
  flow: attribute(RTA_FLOW, u32),
  encap: attribute(RTA_ENCAP, rawBytes),
  encapType: attribute(RTA_ENCAP_TYPE, u16),
});

/** One of the next hops of a multipath route. */
export type RouteNexthop = NestedOf<MessageOf<typeof NEXTHOP>>;

const nexthops: Codec<readonly RouteNexthop[]> = {
  read(view, offset, length) {
    const hops: RouteNexthop[] = [];
    const end = offset + length;
    for (let at = offset; at < end; ) {
      const hop = readNexthop(view, at, end);
      if (hop === undefined) {
        return undefined;
      }
      hops.push(hop);
      at += (view.readU16(at) + 3) & ~3;
    }
    return hops;
  },
  write(writer, hops) {
    for (const hop of hops) {
      const start = writer.position;
      NEXTHOP.write(writer, hop);
      writer.view.u16[start >> 1] = writer.position - start;
    }
  },
};

function readNexthop(view: ByteView, at: number, end: number): RouteNexthop | undefined {
  const length = view.readU16(at);
  // With a length below the header's the loop would never end.
  if (length < NEXTHOP_HEADER_BYTES || at + length > end) {
    return undefined;
  }
  try {
    return withoutEmptyUnknown(NEXTHOP.read(view, at, at + length));
  } catch (error) {
    if (error instanceof CodecError) {
      return undefined;
    }
    throw error;
  }
}

/**
 * struct rtmsg { u8 family; u8 dst_len; u8 src_len; u8 tos; u8 table; u8 protocol; u8 scope; u8 type; u32 flags; }
 * @see uapi/linux/rtnetlink.h, rtnetlink(7)
 */
export const ROUTE = messageCodec('route', 12, {
  family: headerU8(0),
  tos: headerU8(3),
  /** RTPROT_*: the program that made the route. */
  protocol: headerU8(5),
  /** RT_SCOPE_*; IPv6 has none and says universe. */
  scope: headerU8(6),
  /** RT_SCOPE_*; IPv6 has none and reports universe. */
  type: headerU8(7),
  /** RTNH_F_* and RTM_F_*. */
  flags: headerU32(8),
  /** Absent: the default route. */
  dst: prefix(RTA_DST, 1),
  /** Source-specific route, or the source of a lookup. */
  src: prefix(RTA_SRC, 2),
  gateway: attribute(RTA_GATEWAY, ipAddress),
  via: attribute(RTA_VIA, via),
  oif: attribute(RTA_OIF, u32),
  iif: attribute(RTA_IIF, u32),
  prefsrc: attribute(RTA_PREFSRC, ipAddress),
  priority: attribute(RTA_PRIORITY, u32),
  table: outgrownU8(RTA_TABLE, 4),
  mark: attribute(RTA_MARK, u32),
  flow: attribute(RTA_FLOW, u32),
  metrics: attribute(RTA_METRICS, nested(ROUTE_METRICS)),
  multipath: attribute(RTA_MULTIPATH, nexthops),
  /** IPv6 router preference. */
  pref: attribute(RTA_PREF, u8),
  /** Seconds until the kernel removes the route. */
  expires: attribute(RTA_EXPIRES, u32),
  uid: attribute(RTA_UID, u32),
  ipProto: attribute(RTA_IP_PROTO, u8),
  sport: attribute(RTA_SPORT, be16),
  dport: attribute(RTA_DPORT, be16),
  nhId: attribute(RTA_NH_ID, u32),
  encap: attribute(RTA_ENCAP, rawBytes),
  encapType: attribute(RTA_ENCAP_TYPE, u16),
  /** struct rta_cacheinfo: `expires` in USER_HZ, signed; `error` a negated errno. */
  cacheinfo: attribute(RTA_CACHEINFO, u32Struct('clntref', 'lastuse', 'expires', 'error', 'used', 'id', 'ts', 'tsage')),
});

/** Route, as the kernel reports it. */
export type RouteMessage = MessageOf<typeof ROUTE>;

/**
 * Route to add, replace or delete; a message is a spec. When omitted: family follows from the addresses, table is main,
 * type unicast, protocol boot, scope that of iproute2. To delete, the kernel compares only the given fields.
 * @see ip-route(8)
 */
export type RouteSpec = Partial<RouteMessage>;
