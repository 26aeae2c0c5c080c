import { readFileSync } from 'node:fs';
import { type Netns, withNetns } from '../netlink/netns.ts';
import { openRtnetlink } from '../netlink/rtnetlink.ts';
import { AF_INET } from '../netlink/uapi/netlink.ts';
import { type InsideSigns, isEmptied, isTaken } from './decide-inside.ts';
import { EMPTY_STATE, type PodState } from './desired.ts';

/** The sockets of the calling thread's namespace that take whole frames. @see packet(7) */
const PACKET_SOCKETS = '/proc/thread-self/net/packet';
/** In hexadecimal, as the file has it: packets of every protocol. @see uapi/linux/if_ether.h */
const ETH_P_ALL = '0003';
const SOCK_RAW = '3';

/**
 * Returns the part of a Pod's plan that holds in its namespace: all of it, or, where a sandbox took addresses and routes
 * out, its links.
 * @param handler asks the runtime for the Pod's handler; called only where addresses and routes are gone
 * @throws NetnsError, NetlinkError when the namespace cannot be read
 */
export async function planInside(
  podNetns: Netns,
  plan: PodState,
  handler: (() => Promise<string | undefined>) | undefined,
): Promise<PodState> {
  const ifindexes = plan.addresses.map(({ ifindex }) => ifindex);
  const signs = withNetns(podNetns, readSigns);
  if (!isEmptied(signs, ifindexes)) return plan;
  return isTaken(signs, ifindexes, await handler?.()) ? { ...EMPTY_STATE, links: plan.links } : plan;
}

function readSigns(): InsideSigns {
  using rtnetlink = openRtnetlink();
  return {
    links: rtnetlink.link.list(),
    addresses: rtnetlink.address.list(),
    routes: rtnetlink.route.list({ family: AF_INET }),
    packetLinks: readPacketLinks(),
  };
}

/**
 * Lists the links of the calling thread's namespace of which a packet socket receives every packet; empty where the kernel
 * does not say.
 */
export function readPacketLinks(): readonly number[] {
  return contentOf(PACKET_SOCKETS)
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , type, protocol]) => type === SOCK_RAW && protocol === ETH_P_ALL)
    .map(([, , , , ifindex]) => Number(ifindex));
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // A kernel without packet sockets.
    return '';
  }
}
