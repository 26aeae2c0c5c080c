import { ipv4Header, macBytes } from './frame-parts.ts';

/** Ends of an IPv4 UDP packet, and the link addresses of its frame. */
type ForgedUdp = {
  readonly dstMac: string;
  readonly srcMac: string;
  readonly src: string;
  readonly dst: string;
  readonly sport: number;
  readonly dport: number;
  readonly payload: string;
};

const UDP_BYTES = 8;
const IPPROTO_UDP = 17;

/** Builds an Ethernet frame with an IPv4 UDP packet of any source, without a checksum of UDP. */
export function udpFrame({ dstMac, srcMac, src, dst, sport, dport, payload }: ForgedUdp): Buffer {
  const body = Buffer.from(payload);
  const udp = Buffer.alloc(UDP_BYTES + body.length);
  udp.writeUInt16BE(sport, 0);
  udp.writeUInt16BE(dport, 2);
  udp.writeUInt16BE(udp.length, 4);
  udp.set(body, UDP_BYTES);
  const ethernet = Buffer.from([...macBytes(dstMac), ...macBytes(srcMac), 0x08, 0x00]);
  return Buffer.concat([ethernet, ipv4Header(ipBytes(src), ipBytes(dst), IPPROTO_UDP, udp.length), udp]);
}

/** Builds a broadcast ARP request: who has `target`, tell `sender`. */
export function arpRequest({ srcMac, sender, target }: { srcMac: string; sender: string; target: string }): Buffer {
  const mac = macBytes(srcMac);
  const ethernet = [...macBytes('ff:ff:ff:ff:ff:ff'), ...mac, 0x08, 0x06];
  const arp = [0, 1, 0x08, 0x00, 6, 4, 0, 1, ...mac, ...ipBytes(sender), 0, 0, 0, 0, 0, 0, ...ipBytes(target)];
  return Buffer.from([...ethernet, ...arp]);
}

function ipBytes(ip: string): readonly number[] {
  return ip.split('.').map(Number);
}
