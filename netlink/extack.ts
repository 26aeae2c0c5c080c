import type { ByteView } from './byte-view.ts';
import type { AttributeNames } from './codec.ts';
import type { Extack } from './netlink-error.ts';
import { walkAttributes } from './rtattr.ts';
import {
  NLA_HDRLEN,
  NLA_TYPE_MASK,
  NLM_F_ACK_TLVS,
  NLM_F_CAPPED,
  NLMSG_ERROR,
  NLMSG_HDRLEN,
  NLMSGERR_ATTR_MISS_NEST,
  NLMSGERR_ATTR_MISS_TYPE,
  NLMSGERR_ATTR_MSG,
  NLMSGERR_ATTR_OFFS,
} from './uapi/netlink.ts';

/** The refused request, in which the attribute at an offset is looked up. */
type SentMessage = { readonly bytes: ByteView; readonly headerBytes: number; readonly names: AttributeNames };

type RawExtack = { message?: string; offset?: number; missType?: number; missNest?: number };

const utf8 = new TextDecoder();

/**
 * Reads the extended acknowledgement of an NLMSG_ERROR or NLMSG_DONE that begins at `start`. A malformed one is
 * ignored, so that the errno is not lost.
 * @param sent the request, its nlmsghdr at offset 0
 */
export function readExtack(
  view: ByteView,
  start: number,
  end: number,
  sent: SentMessage | undefined,
): Extack | undefined {
  const flags = view.readU16(start + 6);
  if ((flags & NLM_F_ACK_TLVS) === 0) {
    return undefined;
  }
  let offset = start + NLMSG_HDRLEN + 4;
  if (view.readU16(start + 4) === NLMSG_ERROR) {
    // The refused message follows the errno: its header alone when capped.
    const echoed = (flags & NLM_F_CAPPED) === 0 ? view.readU32(offset) : NLMSG_HDRLEN;
    offset += Math.max(NLMSG_HDRLEN, (echoed + 3) & ~3);
  }
  const raw: RawExtack = {};
  if (offset < end) {
    walkAttributes(view, offset, end, (type, at, length) => readTlv(raw, view, type, at, length));
  }
  const extack = describe(raw, sent);
  return Object.keys(extack).length === 0 ? undefined : extack;
}

function readTlv(raw: RawExtack, view: ByteView, type: number, at: number, length: number): void {
  const kind = type & NLA_TYPE_MASK;
  if (kind === NLMSGERR_ATTR_MSG) {
    raw.message = utf8.decode(view.u8.subarray(at, at + length)).replace(/\0+$/, '');
  } else if (length === 4 && kind === NLMSGERR_ATTR_OFFS) {
    raw.offset = view.readU32(at);
  } else if (length === 4 && kind === NLMSGERR_ATTR_MISS_TYPE) {
    raw.missType = view.readU32(at);
  } else if (length === 4 && kind === NLMSGERR_ATTR_MISS_NEST) {
    raw.missNest = view.readU32(at);
  }
}

function describe(raw: RawExtack, sent: SentMessage | undefined): Extack {
  const attribute = raw.offset === undefined || sent === undefined ? undefined : attributeAt(sent, raw.offset)?.name;
  const missing =
    raw.missType === undefined || sent === undefined ? undefined : missingName(sent, raw.missType, raw.missNest);
  return {
    ...(raw.message === undefined || raw.message === '' ? {} : { message: raw.message }),
    ...(raw.offset === undefined ? {} : { offset: raw.offset }),
    ...(attribute === undefined ? {} : { attribute }),
    ...(missing === undefined ? {} : { missing }),
  };
}

function missingName(sent: SentMessage, type: number, nestOffset: number | undefined): string {
  if (nestOffset === undefined) {
    return sent.names.attributeName(type) ?? `${type}`;
  }
  const nest = attributeAt(sent, nestOffset);
  return `${nest?.name ?? 'nest'}.${nest?.inner?.attributeName(type) ?? type}`;
}

/**
 * Finds the attribute that begins at, or contains, `offset`; dots separate nesting levels. Undefined for the fixed
 * header.
 */
function attributeAt(
  sent: SentMessage,
  offset: number,
): { readonly name: string; readonly inner: AttributeNames | undefined } | undefined {
  const parts: string[] = [];
  let names: AttributeNames | undefined = sent.names;
  let start = NLMSG_HDRLEN + sent.headerBytes;
  let end = Math.min(sent.bytes.readU32(0), sent.bytes.length);
  while (names !== undefined) {
    const level: AttributeNames = names;
    let found: { type: number; at: number; length: number } | undefined;
    walkAttributes(sent.bytes, start, end, (type, at, length) => {
      if (offset >= at - NLA_HDRLEN && offset < at + length) {
        found = { type: type & NLA_TYPE_MASK, at, length };
      }
    });
    if (found === undefined) {
      break;
    }
    const hit: { type: number; at: number; length: number } = found;
    parts.push(level.attributeName(hit.type) ?? String(hit.type));
    names = level.within?.(hit.type);
    if (offset < hit.at) {
      break;
    }
    start = hit.at;
    end = hit.at + hit.length;
  }
  return parts.length === 0 ? undefined : { name: parts.join('.'), inner: names };
}
