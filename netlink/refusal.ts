import { constants } from 'node:os';
import { ByteView } from './byte-view.ts';
import { type Asker, type Channel, receiveBuffer, sendBuffer } from './channel.ts';
import type { AttributeNames } from './codec.ts';
import { CodecError } from './codec-error.ts';
import { readExtack } from './extack.ts';
import { NetlinkError } from './netlink-error.ts';
import { NLMSG_HDRLEN } from './uapi/netlink.ts';

/** What it takes to name the attribute that the kernel points at. */
export type SentShape = AttributeNames & { readonly headerBytes: number };

/** Reads the errno of the NLMSG_ERROR or NLMSG_DONE that `channel` came to; 0 when it tells success. */
export function errnoOf(channel: Channel): number {
  const { start, end } = channel;
  return end - start < NLMSG_HDRLEN + 4 ? 0 : -(receiveBuffer.readU32(start + NLMSG_HDRLEN) | 0);
}

/** Makes the error of what `channel` came to. @param sentAt where the refused request begins in the send buffer */
export function refusalOf(
  channel: Channel,
  errno: number,
  asker: Asker,
  sent: { readonly at: number; readonly shape: SentShape },
): NetlinkError {
  const copy = sendBuffer.view.u8.slice(sent.at, sent.at + sendBuffer.view.readU32(sent.at));
  const extack = readExtack(receiveBuffer, channel.start, channel.end, {
    bytes: new ByteView(copy.buffer, copy.length),
    headerBytes: sent.shape.headerBytes,
    names: sent.shape,
  });
  return new NetlinkError({ errno, ...asker.fail(), ...(extack === undefined ? {} : { extack }) });
}

/** Makes the error of a request that cannot be encoded. @throws what is no such error */
export function invalidRequest(error: unknown, asker: Asker): NetlinkError {
  if (error instanceof CodecError || error instanceof RangeError) {
    return new NetlinkError({ errno: constants.errno.EINVAL, ...asker.fail(), detail: error.message, cause: error });
  }
  throw error;
}
