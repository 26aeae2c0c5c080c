import { readFileSync } from 'node:fs';

const FOLDER = new URL('../../capture/', import.meta.url);
const NLMSG_HDRLEN = 16;

/** Nested attributes of a message, by number: the bytes before the inner attributes, and what is nested in them. */
export type Nests = { readonly [type: number]: { readonly skip: number; readonly nests: Nests } };

/** Reads a captured netlink message, nlmsghdr included. */
export function readCapture(name: string): Buffer {
  const lines = readFileSync(new URL(`${name}.hex`, FOLDER), 'utf8').split('\n');
  return Buffer.from(lines.filter((line) => !line.startsWith('#')).join(''), 'hex');
}

/** Returns what follows the nlmsghdr. */
export function bodyOf(message: Buffer): Buffer {
  return message.subarray(NLMSG_HDRLEN);
}

/** Writes a fixed header and its attributes as text, attributes sorted: a message forgets the sender's order. */
export function canonical(bytes: Uint8Array, headerBytes: number, nests: Nests = {}): readonly unknown[] {
  const view = Buffer.from(bytes);
  const attributes: (readonly [number, unknown])[] = [];
  for (let at = headerBytes; at + 4 <= view.length; ) {
    const length = view.readUInt16LE(at);
    if (length < 4) {
      throw new RangeError(`attribute of ${length} bytes at ${at}`);
    }
    const type = view.readUInt16LE(at + 2) & 0x3fff;
    const payload = view.subarray(at + 4, at + length);
    const nest = nests[type];
    attributes.push([type, nest === undefined ? payload.toString('hex') : canonical(payload, nest.skip, nest.nests)]);
    at += (length + 3) & ~3;
  }
  return [view.subarray(0, headerBytes).toString('hex'), ...attributes.sort(([a], [b]) => a - b)];
}
