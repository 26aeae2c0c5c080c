import { constants } from 'node:os';
import { ByteView } from './byte-view.ts';
import { type Channel, type RequestContext, receiveBuffer, sendBuffer } from './channel.ts';
import type { AttributeNames } from './codec.ts';
import { CodecError } from './codec-error.ts';
import { readExtack } from './extack.ts';
import { NetlinkError } from './netlink-error.ts';
import { NLMSG_HDRLEN } from './uapi/netlink.ts';

/** What is needed to name the attribute that the kernel points at. */
export type SentShape = AttributeNames & { readonly headerBytes: number };

/** Reads the errno of the NLMSG_ERROR or NLMSG_DONE that `channel` has read; 0 means success. */
export function errnoOf(channel: Channel): number {
  const { start, end } = channel;
  return end - start < NLMSG_HDRLEN + 4 ? 0 : -(receiveBuffer.readU32(start + NLMSG_HDRLEN) | 0);
}

/**
 * Builds the error of the answer that `channel` has read. @param sentAt where the refused request begins in the send
 * buffer
 */
export function refusalOf(
  channel: Channel,
  errno: number,
  context: RequestContext,
  sent: { readonly at: number; readonly shape: SentShape },
): NetlinkError {
  const copy = sendBuffer.view.u8.slice(sent.at, sent.at + sendBuffer.view.readU32(sent.at));
  const extack = readExtack(receiveBuffer, channel.start, channel.end, {
    bytes: new ByteView(copy.buffer, copy.length),
    headerBytes: sent.shape.headerBytes,
    names: sent.shape,
  });
  return new NetlinkError({ errno, ...context.fail(), ...(extack === undefined ? {} : { extack }) });
}

/** Builds the error of a request that cannot be encoded. @throws any other error unchanged */
export function invalidRequest(error: unknown, context: RequestContext): NetlinkError {
  if (error instanceof CodecError || error instanceof RangeError) {
    return new NetlinkError({ errno: constants.errno.EINVAL, ...context.fail(), detail: error.message, cause: error });
  }
  throw error;
}
