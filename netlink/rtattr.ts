import type { ByteView } from './byte-view.ts';
import type { ByteWriter } from './byte-writer.ts';
import { NLA_HDRLEN } from './uapi/netlink.ts';

/** An attribute that a codec table does not know, or whose payload it cannot read; written back unchanged. */
export type Rtattr = {
  /** Number with its NLA_F_NESTED and NLA_F_NET_BYTEORDER bits. */
  readonly type: number;
  readonly payload: Uint8Array;
};

/** Shared by all messages without unknown attributes. */
export const NO_ATTRIBUTES: readonly Rtattr[] = Object.freeze([]);

/**
 * Walks attributes in `[start, end)`; calls `visit(type, payloadOffset, payloadLength)` for each.
 * @returns false when a length is below 4 or reaches beyond `end`: the rest is not attributes
 * @see uapi/linux/rtnetlink.h struct rtattr
 */
export function walkAttributes(
  view: ByteView,
  start: number,
  end: number,
  visit: (type: number, offset: number, length: number) => void,
): boolean {
  let offset = start;
  while (offset + NLA_HDRLEN <= end) {
    const length = view.readU16(offset);
    if (length < NLA_HDRLEN || offset + length > end) {
      return false;
    }
    visit(view.readU16(offset + 2), offset + NLA_HDRLEN, length - NLA_HDRLEN);
    offset += (length + 3) & ~3;
  }
  // Up to three bytes of padding may be left; more than that cannot be.
  return true;
}

/** Writes attributes unchanged. */
export function writeAttributes(writer: ByteWriter, attributes: readonly Rtattr[]): void {
  for (const attribute of attributes) {
    const start = writer.beginAttribute(attribute.type);
    writer.bytes(attribute.payload);
    writer.endAttribute(start);
  }
}
