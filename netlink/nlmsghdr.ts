import type { ByteWriter } from './byte-writer.ts';
import { NLMSG_HDRLEN } from './uapi/netlink.ts';

/**
 * Writes a header whose length `endMessage` fills in; returns where it begins.
 * struct nlmsghdr { u32 len; u16 type; u16 flags; u32 seq; u32 pid; }
 * @see uapi/linux/netlink.h
 */
export function beginMessage(writer: ByteWriter, type: number, flags: number, seq: number): number {
  const start = writer.reserve(NLMSG_HDRLEN);
  const { u16, u32 } = writer.view;
  u16[(start >> 1) + 2] = type;
  u16[(start >> 1) + 3] = flags;
  u32[(start >> 2) + 2] = seq;
  u32[(start >> 2) + 3] = 0;
  return start;
}

/** Fills in the length of the message that began at `start`. */
export function endMessage(writer: ByteWriter, start: number): void {
  writer.view.u32[start >> 2] = writer.position - start;
}
