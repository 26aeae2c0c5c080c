import { ADDRESS, type AddressMessage } from './address-message.ts';
import type { ByteView } from './byte-view.ts';
import { be32, text } from './codec.ts';
import { CodecError } from './codec-error.ts';
import { attribute } from './field.ts';
import { LINK, type LinkMessage } from './link-message.ts';
import { type MessageCodec, messageCodec } from './message-codec.ts';
import { NEIGH, type NeighMessage } from './neigh-message.ts';
import { NETCONF, type NetconfMessage } from './netconf-message.ts';
import { QDISC, type QdiscMessage } from './qdisc-message.ts';
import { ROUTE, type RouteMessage } from './route-message.ts';
import { RULE, type RuleMessage } from './rule-message.ts';
import { TRAFFIC_FILTER, type TrafficFilterMessage } from './traffic-filter-message.ts';
import {
  NFNL_SUBSYS_NFTABLES,
  NFT_MSG_NEWGEN,
  NFTA_GEN_ID,
  NFTA_GEN_PROC_NAME,
  NFTA_GEN_PROC_PID,
  NLMSG_HDRLEN,
} from './uapi/netlink.ts';
import {
  RTM_DELADDR,
  RTM_DELLINK,
  RTM_DELNEIGH,
  RTM_DELNETCONF,
  RTM_DELQDISC,
  RTM_DELROUTE,
  RTM_DELRULE,
  RTM_DELTFILTER,
  RTM_NEWADDR,
  RTM_NEWLINK,
  RTM_NEWNEIGH,
  RTM_NEWNETCONF,
  RTM_NEWQDISC,
  RTM_NEWROUTE,
  RTM_NEWRULE,
  RTM_NEWTFILTER,
} from './uapi/rtnetlink.ts';

type Change<K extends string, M> = {
  readonly kind: K;
  readonly op: 'new' | 'del';
  readonly message: M;
  /** Port of the socket that asked for the change; 0: the kernel itself. */
  readonly portid: number;
};

/** An event of a monitor. */
export type MonitorEvent =
  | Change<'link', LinkMessage>
  | Change<'address', AddressMessage>
  | Change<'route', RouteMessage>
  | Change<'rule', RuleMessage>
  | Change<'neigh', NeighMessage>
  /** Not notified when it goes with its link. */
  | Change<'qdisc', QdiscMessage>
  /** Not notified when it goes with its discipline. */
  | Change<'filter', TrafficFilterMessage>
  /** Settings below /proc/sys/net; the kernel names no sender. */
  | Change<'netconf', NetconfMessage>
  /** A transaction changed the nftables rule set. */
  | {
      readonly kind: 'nftables';
      readonly op: 'new';
      /** Port of the socket that asked for the change: nft's is its PID in its own PID namespace, if that port is free. */
      readonly portid: number;
      readonly generation?: number;
      /** Process that changed it, by its PID as the whole machine numbers it, and its name: 'nft'. */
      readonly pid?: number;
      readonly process?: string;
    }
  /** Events were lost: read everything again. */
  | { readonly kind: 'overrun' };

/** The event for notifications that were lost or could not be read. */
export const OVERRUN: MonitorEvent = Object.freeze({ kind: 'overrun' });

const NFNL_HEADER_BYTES = 4;
const PROCESS_NAME_BYTES = 64;
const NFT_NEWGEN = (NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWGEN;

/** struct nfgenmsg { u8 family; u8 version; be16 res_id; }. @see uapi/linux/netfilter/nf_tables.h nft_gen_attributes */
const NFT_GENERATION = messageCodec('nft generation', NFNL_HEADER_BYTES, {
  generation: attribute(NFTA_GEN_ID, be32),
  pid: attribute(NFTA_GEN_PROC_PID, be32),
  process: attribute(NFTA_GEN_PROC_NAME, text(PROCESS_NAME_BYTES)),
});

/**
 * Decodes a datagram of an rtnetlink multicast group. Other message types are skipped; a message that cannot be read
 * becomes an overrun, so that it is not lost silently.
 */
export function decodeRouteNotifications(view: ByteView, length: number): readonly MonitorEvent[] {
  return decodeEach(view, length, (type, start, end) => {
    const portid = view.readU32(start + 12);
    const body = start + NLMSG_HDRLEN;
    const change = <K extends string, M>(kind: K, op: 'new' | 'del', codec: MessageCodec<M>): Change<K, M> => ({
      kind,
      op,
      message: codec.read(view, body, end),
      portid,
    });
    switch (type) {
      case RTM_NEWLINK:
        return change('link', 'new', LINK);
      case RTM_DELLINK:
        return change('link', 'del', LINK);
      case RTM_NEWADDR:
        return change('address', 'new', ADDRESS);
      case RTM_DELADDR:
        return change('address', 'del', ADDRESS);
      case RTM_NEWROUTE:
        return change('route', 'new', ROUTE);
      case RTM_DELROUTE:
        return change('route', 'del', ROUTE);
      case RTM_NEWRULE:
        return change('rule', 'new', RULE);
      case RTM_DELRULE:
        return change('rule', 'del', RULE);
      case RTM_NEWNEIGH:
        return change('neigh', 'new', NEIGH);
      case RTM_DELNEIGH:
        return change('neigh', 'del', NEIGH);
      case RTM_NEWQDISC:
        return change('qdisc', 'new', QDISC);
      case RTM_DELQDISC:
        return change('qdisc', 'del', QDISC);
      case RTM_NEWTFILTER:
        return change('filter', 'new', TRAFFIC_FILTER);
      case RTM_DELTFILTER:
        return change('filter', 'del', TRAFFIC_FILTER);
      case RTM_NEWNETCONF:
        return change('netconf', 'new', NETCONF);
      case RTM_DELNETCONF:
        return change('netconf', 'del', NETCONF);
      default:
        return undefined;
    }
  });
}

/** Decodes a datagram of the nftables group: one event per transaction. */
export function decodeNftablesNotifications(view: ByteView, length: number): readonly MonitorEvent[] {
  return decodeEach(view, length, (type, start, end) => {
    if (type !== NFT_NEWGEN) {
      return undefined;
    }
    const { unknown: _, ...fields } = NFT_GENERATION.read(view, start + NLMSG_HDRLEN, end);
    return { kind: 'nftables', op: 'new', portid: view.readU32(start + 12), ...fields };
  });
}

function decodeEach(
  view: ByteView,
  length: number,
  decode: (type: number, start: number, end: number) => MonitorEvent | undefined,
): readonly MonitorEvent[] {
  const events: MonitorEvent[] = [];
  for (let start = 0; start + NLMSG_HDRLEN <= length; ) {
    const messageLength = view.readU32(start);
    if (messageLength < NLMSG_HDRLEN || start + messageLength > length) {
      events.push(OVERRUN);
      break;
    }
    try {
      const event = decode(view.readU16(start + 4), start, start + messageLength);
      if (event !== undefined) {
        events.push(event);
      }
    } catch (error) {
      if (!(error instanceof CodecError)) {
        throw error;
      }
      events.push(OVERRUN);
    }
    start += (messageLength + 3) & ~3;
  }
  return events;
}
