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

const ETHERNET_BYTES = 14;
const IP_BYTES = 20;
const UDP_BYTES = 8;

/** Builds an Ethernet frame with an IPv4 UDP packet of any source, without a checksum of UDP. */
export function udpFrame({ dstMac, srcMac, src, dst, sport, dport, payload }: ForgedUdp): Buffer {
  const body = Buffer.from(payload);
  const frame = Buffer.alloc(ETHERNET_BYTES + IP_BYTES + UDP_BYTES + body.length);
  frame.set([...macBytes(dstMac), ...macBytes(srcMac), 0x08, 0x00]);
  const ip = frame.subarray(ETHERNET_BYTES, ETHERNET_BYTES + IP_BYTES);
  ip[0] = 0x45;
  ip.writeUInt16BE(frame.length - ETHERNET_BYTES, 2);
  ip[8] = 64;
  ip[9] = 17;
  ip.set(ipBytes(src), 12);
  ip.set(ipBytes(dst), 16);
  ip.writeUInt16BE(checksum(ip), 10);
  const udp = frame.subarray(ETHERNET_BYTES + IP_BYTES);
  udp.writeUInt16BE(sport, 0);
  udp.writeUInt16BE(dport, 2);
  udp.writeUInt16BE(UDP_BYTES + body.length, 4);
  udp.set(body, UDP_BYTES);
  return frame;
}

/** Builds a broadcast ARP request: who has `target`, tell `sender`. */
export function arpRequest({ srcMac, sender, target }: { srcMac: string; sender: string; target: string }): Buffer {
  const mac = macBytes(srcMac);
  const ethernet = [...macBytes('ff:ff:ff:ff:ff:ff'), ...mac, 0x08, 0x06];
  const arp = [0, 1, 0x08, 0x00, 6, 4, 0, 1, ...mac, ...ipBytes(sender), 0, 0, 0, 0, 0, 0, ...ipBytes(target)];
  return Buffer.from([...ethernet, ...arp]);
}

function macBytes(mac: string): readonly number[] {
  return mac.split(':').map((byte) => Number.parseInt(byte, 16));
}

function ipBytes(ip: string): readonly number[] {
  return ip.split('.').map(Number);
}

/** @see RFC 1071 */
function checksum(header: Buffer): number {
  let sum = 0;
  for (let at = 0; at < header.length; at += 2) sum += header.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
