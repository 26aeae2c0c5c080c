import type { ByteView } from '../../netlink/byte-view.ts';
import { formatIp } from '../../netlink/ip-text.ts';
import { ROUTE } from '../../netlink/route-message.ts';
import { NLA_HDRLEN } from '../../netlink/uapi/netlink.ts';
import {
  RTA_DST,
  RTA_GATEWAY,
  RTA_OIF,
  RTA_PREFSRC,
  RTA_TABLE,
  RTM_F_CLONED,
  RTN_UNICAST,
} from '../../netlink/uapi/rtnetlink.ts';
import type { IpNames } from './ip-names.ts';
import { type RouteView, renderRouteJson } from './render-route-json.ts';

/** struct rtmsg. @see uapi/linux/rtnetlink.h */
const RTMSG_BYTES = 12;
const IPV4_BYTES = 4;
/** Which route is not wanted. */
const NONE = '';

/**
 * Makes the function that reads a route message as the text of its JSON object, the same that `renderRouteJson` gives, and
 * '' for a cached route or another table's. IPv4 routes of few attributes, as all Pods' are, become text without an
 * object in between: a tenth of the time. All else goes the common way. Valid for one namespace and one reading.
 * @param table whose routes alone are wanted; undefined: all
 */
export function routeJsonReader(
  names: IpNames,
  view: RouteView,
  table: number | undefined,
): (view: ByteView, start: number, end: number) => string {
  const bytes = Array.from({ length: 256 }, (_, value) => String(value));
  const dotted = (u8: Uint8Array, at: number): string =>
    `${bytes[u8[at] ?? 0]}.${bytes[u8[at + 1] ?? 0]}.${bytes[u8[at + 2] ?? 0]}.${bytes[u8[at + 3] ?? 0]}`;
  const tails = new Map<number, string>();
  let lastWord = -1;

  const byObject = (message: ByteView, start: number, end: number): string => {
    const route = ROUTE.read(message, start, end);
    const isWanted = (route.flags & RTM_F_CLONED) === 0 && (table === undefined || route.table === table);
    return isWanted ? JSON.stringify(renderRouteJson(route, names, view)) : NONE;
  };
  /** What stands behind the addresses: equal for all routes of one interface, protocol, scope and table. */
  const tailOf = (message: ByteView, start: number, oif: number, found: number, prefsrc: string): string => {
    // Protocol, scope and type stand beside the table's byte.
    const word = message.readU32(start + 4);
    if (word !== lastWord) tails.clear();
    lastWord = word;
    const isPlain = prefsrc === '';
    const known = isPlain ? tails.get(oif) : undefined;
    if (known !== undefined) return known;
    const [protocol, scope] = [message.readU8(start + 5), message.readU8(start + 6)];
    const parts = { family: message.readU8(start), tos: 0, protocol, scope, type: RTN_UNICAST, flags: 0, oif };
    const whole = { ...parts, table: found, ...(isPlain ? {} : { prefsrc }), unknown: [] };
    // An object of the common way without its destination: what it says goes for the next route too.
    const { dst: _, ...rest } = renderRouteJson(whole, names, view);
    const tail = JSON.stringify(rest).replace(/^\{(?:"type":"unicast",)?/, '');
    if (isPlain) tails.set(oif, tail);
    return tail;
  };

  return (message, start, end) => {
    const { u8 } = message;
    const bits = message.readU8(start + 1);
    const isPlain =
      message.readU8(start) === 2 &&
      u8[start + 2] === 0 &&
      u8[start + 3] === 0 &&
      u8[start + 7] === RTN_UNICAST &&
      message.readU32(start + 8) === 0;
    if (!isPlain) return byObject(message, start, end);
    let [dst, gateway, prefsrc] = ['', '', ''];
    let oif = 0;
    let found = message.readU8(start + 4);
    for (let at = start + RTMSG_BYTES; at + NLA_HDRLEN <= end; ) {
      const length = message.readU16(at);
      const payload = at + NLA_HDRLEN;
      if (length !== NLA_HDRLEN + IPV4_BYTES) return byObject(message, start, end);
      switch (message.readU16(at + 2)) {
        case RTA_DST:
          dst = bits === 32 ? dotted(u8, payload) : `${formatIp(u8, payload, IPV4_BYTES)}/${bits}`;
          break;
        case RTA_GATEWAY:
          gateway = dotted(u8, payload);
          break;
        case RTA_PREFSRC:
          prefsrc = dotted(u8, payload);
          break;
        case RTA_OIF:
          oif = message.readU32(payload);
          break;
        case RTA_TABLE:
          found = message.readU32(payload);
          break;
        default:
          return byObject(message, start, end);
      }
      at += NLA_HDRLEN + IPV4_BYTES;
    }
    if (oif === 0) return byObject(message, start, end);
    if (table !== undefined && found !== table) return NONE;
    const type = view.isDetailed ? '"type":"unicast",' : '';
    const via = gateway === '' ? '' : `"gateway":"${gateway}",`;
    return `{${type}"dst":"${dst === '' ? 'default' : dst}",${via}${tailOf(message, start, oif, found, prefsrc)}`;
  };
}
