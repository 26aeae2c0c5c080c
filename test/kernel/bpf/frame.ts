import { parseIp } from '../../../runtime/ip-text.ts';

/** One Ethernet frame with TCP or UDP. Absent: 32 bytes of UDP without anything unusual. */
export type FrameSpec = {
  readonly src: string;
  readonly dst: string;
  readonly sport?: number;
  readonly dport?: number;
  readonly protocol?: number;
  readonly tcpFlags?: number;
  /** Words of 4 bytes of the TCP header. */
  readonly tcpWords?: number;
  readonly ttl?: number;
  /** Type of service, or traffic class. */
  readonly service?: number;
  /** Flags and offset of an IPv4 fragment. */
  readonly fragment?: number;
  /** First byte of the IPv4 header. */
  readonly version?: number;
  readonly payloadBytes?: number;
  /** What the payload of UDP is made of; default zeros. */
  readonly fill?: number;
  /** Default that of the addresses. */
  readonly etherType?: number;
  readonly to?: string;
  readonly from?: string;
};

export const TCP = 6;
const UDP = 17;
export const ACK = 0x10;
const MAC_FROM = '02:00:00:00:00:01';

/** Builds the frame; of an IPv4 header the checksum is right. */
export function frame(spec: FrameSpec): Buffer {
  const isIpv4 = !spec.src.includes(':');
  const transport = spec.protocol === TCP ? tcp(spec) : udp(spec);
  const ip = isIpv4 ? ipv4(spec, transport.length) : ipv6(spec, transport.length);
  const etherType = spec.etherType ?? (isIpv4 ? 0x0800 : 0x86dd);
  const type = [etherType >>> 8, etherType & 0xff];
  return Buffer.concat([mac(spec.to ?? MAC_FROM), mac(spec.from ?? MAC_FROM), Buffer.from(type), ip, transport]);
}

/** The sum of the words of an IPv4 header in one's complement; 0 when its checksum is right. */
export function ipv4Fault(bytes: Buffer): number {
  return ~sum(bytes.subarray(14, 34)) & 0xffff;
}

function mac(text: string): Buffer {
  return Buffer.from(text.replaceAll(':', ''), 'hex');
}

function addressOf(text: string): Uint8Array {
  return parseIp(text) ?? new Uint8Array(0);
}

function ipv4(
  { src, dst, ttl = 64, service = 0, fragment = 0, version = 0x45, protocol = UDP }: FrameSpec,
  length: number,
): Buffer {
  const header = Buffer.alloc(20);
  header.writeUInt8(version, 0);
  header.writeUInt8(service, 1);
  header.writeUInt16BE(20 + length, 2);
  header.writeUInt16BE(fragment, 6);
  header.writeUInt8(ttl, 8);
  header.writeUInt8(protocol, 9);
  header.set(addressOf(src), 12);
  header.set(addressOf(dst), 16);
  header.writeUInt16BE(~sum(header) & 0xffff, 10);
  return header;
}

function ipv6({ src, dst, ttl = 64, service = 0, protocol = UDP }: FrameSpec, length: number): Buffer {
  const header = Buffer.alloc(40);
  header.writeUInt16BE(0x6000 | (service << 4), 0);
  header.writeUInt16BE(length, 4);
  header.writeUInt8(protocol, 6);
  header.writeUInt8(ttl, 7);
  header.set(addressOf(src), 8);
  header.set(addressOf(dst), 24);
  return header;
}

function tcp({ sport = 1000, dport = 80, tcpFlags = ACK, tcpWords = 5, payloadBytes = 32 }: FrameSpec): Buffer {
  const bytes = Buffer.alloc(tcpWords * 4 + payloadBytes);
  bytes.writeUInt16BE(sport, 0);
  bytes.writeUInt16BE(dport, 2);
  bytes.writeUInt8(tcpWords << 4, 12);
  bytes.writeUInt8(tcpFlags, 13);
  return bytes;
}

function udp({ sport = 1000, dport = 53, payloadBytes = 32, fill = 0 }: FrameSpec): Buffer {
  const bytes = Buffer.alloc(8 + payloadBytes, fill);
  bytes.writeUInt16BE(sport, 0);
  bytes.writeUInt16BE(dport, 2);
  bytes.writeUInt16BE(bytes.length, 4);
  return bytes;
}

function sum(bytes: Buffer): number {
  let total = 0;
  for (let at = 0; at < bytes.length; at += 2) total += bytes.readUInt16BE(at);
  while (total > 0xffff) total = (total & 0xffff) + (total >>> 16);
  return total;
}
