import { setImmediate } from 'node:timers/promises';
import type { ConntrackMessage } from '../netlink/conntrack-message.ts';
import type { ConntrackUpdate, Ctnetlink } from '../netlink/ctnetlink.ts';
import {
  IP_CT_TCP_FLAG_BE_LIBERAL,
  IPS_ASSURED,
  IPS_DST_NAT,
  IPS_SRC_NAT,
  TCP_CONNTRACK_ESTABLISHED,
  TCP_CONNTRACK_TIME_WAIT,
} from '../netlink/uapi/nfnetlink-conntrack.ts';

/** Keeps TCP connections valid when the kernel checks sequence numbers again. */
export type ConnectionKeeper = {
  /** Reports whether it can; false once `keep` failed. */
  canKeep(): boolean;
  /** Marks those that live now. Returns whether it did; never rejects. */
  keep(): Promise<boolean>;
};

/** How many connections were marked, and how many ended meanwhile. */
type KeptConnections = { readonly marked: number; readonly ended: number };

/** The fast path follows assured connections without address translation. */
const FOLLOWED = { status: IPS_ASSURED, statusMask: IPS_ASSURED | IPS_SRC_NAT | IPS_DST_NAT };
const BE_LIBERAL = { flags: IP_CT_TCP_FLAG_BE_LIBERAL, mask: IP_CT_TCP_FLAG_BE_LIBERAL };
const MARKED = { tcp: { flagsOriginal: BE_LIBERAL, flagsReply: BE_LIBERAL } };

/**
 * Marks each TCP connection that the fast path may have followed: connection tracking takes its packets for valid, whatever their sequence
 * numbers, until it ends. Call it when nothing is followed any more and before net.netfilter.nf_conntrack_tcp_be_liberal is
 * given back: what is followed later would not be marked, and connections that begin later need no mark.
 *
 * Only these flags are written. The state of a connection goes on as its packets say; that of one that began again with the same ports
 * gets the mark as well, which lets more pass and nothing less. A turn of the event loop takes a millisecond or two.
 * @throws NetlinkError
 */
export async function keepConnections(ctnetlink: Ctnetlink): Promise<KeptConnections> {
  let marked = 0;
  let ended = 0;
  for (const entries of ctnetlink.list(FOLLOWED)) {
    for (const outcome of ctnetlink.update(entries.flatMap(markOf))) {
      if (outcome.kind === 'ok') marked++;
      else if (outcome.error.code === 'ENOENT') ended++;
      else throw outcome.error;
    }
    await setImmediate();
  }
  return { marked, ended };
}

function markOf({ family, tupleOrig, zone, protoInfo }: ConntrackMessage): readonly ConntrackUpdate[] {
  const { state = 0, flagsOriginal, flagsReply } = protoInfo?.tcp ?? {};
  // Of a connection that is over nothing is to come but a last acknowledgement; there may be very many.
  if (tupleOrig === undefined || state < TCP_CONNTRACK_ESTABLISHED || state >= TCP_CONNTRACK_TIME_WAIT) return [];
  const both = (flagsOriginal?.flags ?? 0) & (flagsReply?.flags ?? 0);
  if ((both & IP_CT_TCP_FLAG_BE_LIBERAL) !== 0) return [];
  return [{ family, tupleOrig, ...(zone !== undefined && { zone }), protoInfo: MARKED }];
}
