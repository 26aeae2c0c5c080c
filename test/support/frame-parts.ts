/** Returns the bytes of a MAC. */
export function macBytes(mac: string): readonly number[] {
  return mac.split(':').map((byte) => Number.parseInt(byte, 16));
}

/** Builds an IPv4 header without options. @param length Bytes behind it */
export function ipv4Header(src: ArrayLike<number>, dst: ArrayLike<number>, protocol: number, length: number): Buffer {
  const header = Buffer.alloc(20);
  header.writeUInt8(0x45, 0);
  header.writeUInt16BE(header.length + length, 2);
  header.writeUInt8(64, 8);
  header.writeUInt8(protocol, 9);
  header.set(src, 12);
  header.set(dst, 16);
  header.writeUInt16BE(internetChecksum(header), 10);
  return header;
}

/** Returns the checksum of IPv4, TCP and UDP. @see RFC 1071 */
export function internetChecksum(bytes: Buffer): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
