import { formatIp, parseIp } from '../../runtime/ip-text.ts';
import { internetChecksum, ipv4Header, macBytes } from './frame-parts.ts';

/** Bits of the flags of TCP. */
export const TCP_FLAG = { FIN: 0x01, SYN: 0x02, RST: 0x04, PSH: 0x08, ACK: 0x10 } as const;

/** A TCP segment of IPv4 or IPv6, and the link addresses of its frame. */
export type TcpSegment = {
  readonly dstMac: string;
  readonly srcMac: string;
  readonly src: string;
  readonly dst: string;
  readonly sport: number;
  readonly dport: number;
  readonly seq: number;
  readonly ack: number;
  readonly flags: number;
  readonly bytes: number;
  /** Words of 4 bytes of the header; default 5. */
  readonly words?: number;
};

const ETHERNET_BYTES = 14;
const TCP_BYTES = 20;
const IPPROTO_TCP = 6;
/** With window scaling off: as much as fits. */
const WINDOW = 0xffff;

/** Builds its frame, with all checksums. */
export function tcpFrame(segment: TcpSegment): Buffer {
  const { dstMac, srcMac, seq, ack, flags, sport, dport, bytes, words = TCP_BYTES / 4 } = segment;
  const [src, dst] = [parseIp(segment.src), parseIp(segment.dst)];
  if (src === undefined || dst === undefined) throw new Error(`not addresses: ${segment.src}, ${segment.dst}`);
  const isIpv4 = src.length === 4;
  const tcp = Buffer.alloc(words * 4 + bytes);
  tcp.writeUInt16BE(sport, 0);
  tcp.writeUInt16BE(dport, 2);
  tcp.writeUInt32BE(seq >>> 0, 4);
  tcp.writeUInt32BE(ack >>> 0, 8);
  tcp.writeUInt8(words << 4, 12);
  tcp.writeUInt8(flags, 13);
  tcp.writeUInt16BE(WINDOW, 14);
  const pseudo = Buffer.from([...src, ...dst, 0, IPPROTO_TCP, tcp.length >>> 8, tcp.length & 0xff]);
  tcp.writeUInt16BE(internetChecksum(Buffer.concat([pseudo, tcp])), 16);
  const type = isIpv4 ? [0x08, 0x00] : [0x86, 0xdd];
  const header = isIpv4 ? ipv4Header(src, dst, IPPROTO_TCP, tcp.length) : ipv6(src, dst, tcp.length);
  return Buffer.concat([Buffer.from([...macBytes(dstMac), ...macBytes(srcMac), ...type]), header, tcp]);
}

/** What a frame says of its segment; undefined for any other frame. */
export function readTcpFrame(frame: Buffer): Pick<TcpSegment, 'dst' | 'seq' | 'flags'> | undefined {
  const isIpv4 = frame.readUInt16BE(12) === 0x0800;
  if (!isIpv4 && frame.readUInt16BE(12) !== 0x86dd) return undefined;
  const at = ETHERNET_BYTES + (isIpv4 ? 20 : 40);
  if (frame[ETHERNET_BYTES + (isIpv4 ? 9 : 6)] !== IPPROTO_TCP || frame.length < at + TCP_BYTES) return undefined;
  return {
    dst: formatIp(frame, isIpv4 ? 30 : 38, isIpv4 ? 4 : 16),
    seq: frame.readUInt32BE(at + 4),
    flags: frame.readUInt8(at + 13),
  };
}

/** Reports whether the checksums of a frame with a TCP segment are right. */
export function hasRightChecksums(frame: Buffer): boolean {
  const isIpv4 = frame.readUInt16BE(12) === 0x0800;
  const ip = frame.subarray(ETHERNET_BYTES);
  const tcp = isIpv4 ? ip.subarray(20, ip.readUInt16BE(2)) : ip.subarray(40, 40 + ip.readUInt16BE(4));
  const addresses = isIpv4 ? ip.subarray(12, 20) : ip.subarray(8, 40);
  const pseudo = Buffer.from([0, IPPROTO_TCP, tcp.length >>> 8, tcp.length & 0xff]);
  const isHeaderRight = !isIpv4 || internetChecksum(ip.subarray(0, 20)) === 0;
  return isHeaderRight && internetChecksum(Buffer.concat([addresses, pseudo, tcp])) === 0;
}

function ipv6(src: Uint8Array, dst: Uint8Array, length: number): Buffer {
  const header = Buffer.alloc(40);
  header.writeUInt8(0x60, 0);
  header.writeUInt16BE(length, 4);
  header.writeUInt8(IPPROTO_TCP, 6);
  header.writeUInt8(64, 7);
  header.set(src, 8);
  header.set(dst, 24);
  return header;
}
