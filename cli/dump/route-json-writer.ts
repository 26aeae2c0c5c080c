import type { ByteView } from '../../netlink/byte-view.ts';
import { ROUTE } from '../../netlink/route-message.ts';
import { AF_INET, NLA_HDRLEN } from '../../netlink/uapi/netlink.ts';
import { RTA_DST, RTA_OIF, RTA_TABLE, RTM_F_CLONED, RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import { jsonText } from '../output/render-json.ts';
import type { IpNames } from './ip-names.ts';
import { type RouteView, renderRouteJson } from './render-route-json.ts';

/** Size of struct rtmsg, bytes. @see uapi/linux/rtnetlink.h */
const RTMSG_BYTES = 12;
/** Size of an attribute of four bytes with its header. */
const SHORT_ATTRIBUTE_BYTES = NLA_HDRLEN + 4;
const FIRST_BYTES = 256 * 1024;
/** Upper bound for a route of few attributes, bytes. */
const ROUTE_BYTES = 512;
/** Beginning of each object. */
const OPENING = Buffer.from('{"dst":"');
const OPENING_DETAILED = Buffer.from('{"type":"unicast","dst":"');
const COMMA = 44;
const DOT = 46;
const ZERO = 48;

/**
 * Writes route messages as JSON objects, equal to those of `renderRouteJson`, into one buffer. A route to one IPv4
 * address out of an interface, as every Pod has, is written byte by byte from its message. No string and no object is
 * made for it: in a process that has just started these would be half of the work. All other routes go through
 * `renderRouteJson`.
 */
export class RouteJsonWriter {
  readonly #names: IpNames;
  readonly #view: RouteView;
  readonly #table: number | undefined;
  readonly #opening: Buffer;
  /** JSON text after the destination, by interface. Valid for `#word` only: equal protocol, scope, type and table. */
  readonly #tails = new Map<number, Buffer>();
  #word = 0;
  #out = Buffer.allocUnsafe(FIRST_BYTES);
  #length = 1;

  /** @param table the only table to write; undefined: all tables */
  constructor(names: IpNames, view: RouteView, table: number | undefined) {
    this.#names = names;
    this.#view = view;
    this.#table = table;
    this.#opening = view.isDetailed ? OPENING_DETAILED : OPENING;
    this.#out[0] = 91;
  }

  /** Adds the message in `[start, end)`, unless it is a cached route or a route of another table. @throws CodecError */
  add(message: ByteView, start: number, end: number): void {
    const { u8, u16, u32 } = message;
    const first = start + RTMSG_BYTES;
    let [dst, oif, table] = [-1, 0, u8[start + 4] ?? 0];
    // Compares family, dst_len 32, src_len 0 and tos 0 in one word; then the type, in the last byte of the next word,
    // and flags 0.
    let isShort =
      u32[start >> 2] === AF_INET + (32 << 8) && u8[start + 7] === RTN_UNICAST && u32[(start >> 2) + 2] === 0;
    for (let at = first; isShort && at < end; at += SHORT_ATTRIBUTE_BYTES) {
      const type = u16[(at >> 1) + 1];
      if (u16[at >> 1] !== SHORT_ATTRIBUTE_BYTES) isShort = false;
      else if (type === RTA_DST) dst = at + NLA_HDRLEN;
      else if (type === RTA_OIF) oif = u32[(at >> 2) + 1] ?? 0;
      else if (type === RTA_TABLE) table = u32[(at >> 2) + 1] ?? 0;
      else isShort = false;
    }
    if (!isShort || dst < 0 || oif === 0) {
      this.#addObject(message, start, end);
      return;
    }
    if (this.#table !== undefined && table !== this.#table) return;
    const tail = this.#tailOf(message, start, oif, table);
    if (this.#length + ROUTE_BYTES > this.#out.length) this.#grow(ROUTE_BYTES);
    const out = this.#out;
    out.set(this.#opening, this.#length);
    let length = this.#length + this.#opening.length;
    for (let index = 0; index < 4; index++) {
      const byte = u8[dst + index] ?? 0;
      if (byte > 99) out[length++] = ZERO + Math.trunc(byte / 100);
      if (byte > 9) out[length++] = ZERO + (Math.trunc(byte / 10) % 10);
      out[length++] = ZERO + (byte % 10);
      out[length++] = DOT;
    }
    // The dot after the last byte is overwritten.
    out.set(tail, length - 1);
    this.#length = length - 1 + tail.length;
  }

  /** Ends the list and returns it as text, with a newline. Nothing may be added after it. */
  end(): string {
    if (this.#length + 2 > this.#out.length) this.#grow(2);
    const at = this.#out[this.#length - 1] === COMMA ? this.#length - 1 : this.#length;
    this.#out[at] = 93;
    this.#out[at + 1] = 10;
    return this.#out.toString('utf8', 0, at + 2);
  }

  #addObject(message: ByteView, start: number, end: number): void {
    const route = ROUTE.read(message, start, end);
    const isSelected = (route.flags & RTM_F_CLONED) === 0 && (this.#table === undefined || route.table === this.#table);
    if (!isSelected) return;
    const text = `${jsonText(renderRouteJson(route, this.#names, this.#view))},`;
    const bytes = Buffer.byteLength(text);
    if (this.#length + bytes > this.#out.length) this.#grow(bytes);
    this.#length += this.#out.write(text, this.#length);
  }

  #tailOf(message: ByteView, start: number, oif: number, table: number): Buffer {
    const word = message.readU32(start + 4);
    if (word !== this.#word) this.#tails.clear();
    this.#word = word;
    const known = this.#tails.get(oif);
    if (known !== undefined) return known;
    const [protocol, scope] = [message.readU8(start + 5), message.readU8(start + 6)];
    const route = { family: AF_INET, tos: 0, protocol, scope, type: RTN_UNICAST, flags: 0, oif, table, unknown: [] };
    // Takes the text after the destination from the common renderer.
    const text = jsonText(renderRouteJson({ ...route, dst: '0.0.0.0/32' }, this.#names, this.#view));
    const tail = Buffer.from(`${text.slice(text.indexOf('0.0.0.0') + '0.0.0.0'.length)},`);
    // The word does not contain a table above 255: in a list of all tables it may differ from route to route.
    if (this.#view.isOneTable || table <= 255) this.#tails.set(oif, tail);
    return tail;
  }

  #grow(bytes: number): void {
    const grown = Buffer.allocUnsafe(2 * this.#out.length + bytes);
    this.#out.copy(grown, 0, 0, this.#length);
    this.#out = grown;
  }
}
