import { readFileSync } from 'node:fs';

/** The sockets of the calling thread's namespace that take whole frames. @see packet(7) */
const PACKET_SOCKETS = '/proc/thread-self/net/packet';
/** In hexadecimal, as the file has it: packets of every protocol. @see uapi/linux/if_ether.h */
const ETH_P_ALL = '0003';
const SOCK_RAW = '3';

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
