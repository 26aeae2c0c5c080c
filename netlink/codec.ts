import { decodeByteText, encodeByteText } from '../runtime/byte-text.ts';
import { formatIp, parseIp, parseIpv4Number } from '../runtime/ip-text.ts';
import type { ByteView } from './byte-view.ts';
import type { ByteWriter } from './byte-writer.ts';
import { CodecError } from './codec-error.ts';
import { IFNAMSIZ } from './uapi/if-link.ts';

/** Names of the attributes of one nesting level; `within` contains those of the next level. */
export type AttributeNames = {
  attributeName(type: number): string | undefined;
  within?(type: number): AttributeNames | undefined;
};

/** Reads and writes the payload of one attribute. Method syntax, so that `Codec<number>` fits `Codec<unknown>`. */
export type Codec<T> = {
  /** Returns undefined for a payload of another form: the caller keeps it as unknown. */
  read(view: ByteView, offset: number, length: number): T | undefined;
  /** Appends a value. @throws CodecError for a value that cannot be encoded; `field` names it */
  write(writer: ByteWriter, value: T, field: string): void;
  /** Names of nested attributes, if there are any. */
  readonly names?: AttributeNames;
};

function checkInteger(value: number, low: number, high: number, field: string): void {
  if (!Number.isInteger(value) || value < low || value > high) {
    throw new CodecError(field, `expected an integer from ${low} to ${high}, got ${String(value)}`);
  }
}

/** 8-bit unsigned integer. */
export const u8: Codec<number> = {
  read: (view, offset, length) => (length === 1 ? view.readU8(offset) : undefined),
  write(writer, value, field) {
    checkInteger(value, 0, 0xff, field);
    writer.u8(value);
  },
};

/** 16-bit unsigned integer in host order. */
export const u16: Codec<number> = {
  read: (view, offset, length) => (length === 2 ? view.readU16(offset) : undefined),
  write(writer, value, field) {
    checkInteger(value, 0, 0xffff, field);
    writer.u16(value);
  },
};

/** 16-bit unsigned integer in network order (ports). */
export const be16: Codec<number> = {
  read: (view, offset, length) => (length === 2 ? (view.readU8(offset) << 8) | view.readU8(offset + 1) : undefined),
  write(writer, value, field) {
    checkInteger(value, 0, 0xffff, field);
    writer.u8(value >> 8);
    writer.u8(value & 0xff);
  },
};

/** 32-bit unsigned integer in host order. */
export const u32: Codec<number> = {
  read: (view, offset, length) => (length === 4 ? view.readU32(offset) : undefined),
  write(writer, value, field) {
    checkInteger(value, 0, 0xffffffff, field);
    writer.u32(value);
  },
};

/** struct of 32-bit unsigned integers in host order, `names` in their order. */
export function u32Struct<const N extends string>(...names: readonly N[]): Codec<{ readonly [K in N]: number }> {
  return {
    read(view, offset, length) {
      if (length !== names.length * 4) return undefined;
      const values = names.map((name, index) => [name, view.readU32(offset + index * 4)] as const);
      return Object.fromEntries(values) as { readonly [K in N]: number };
    },
    write(writer, value, field) {
      for (const name of names) u32.write(writer, value[name], `${field}.${name}`);
    },
  };
}

/** 32-bit signed integer in host order. */
export const i32: Codec<number> = {
  read: (view, offset, length) => (length === 4 ? view.readU32(offset) | 0 : undefined),
  write(writer, value, field) {
    checkInteger(value, -0x80000000, 0x7fffffff, field);
    writer.u32(value >>> 0);
  },
};

/** 32-bit unsigned integer in network order (nftables). */
export const be32: Codec<number> = {
  read: (view, offset, length) =>
    length === 4
      ? ((view.readU8(offset) << 24) |
          (view.readU8(offset + 1) << 16) |
          (view.readU8(offset + 2) << 8) |
          view.readU8(offset + 3)) >>>
        0
      : undefined,
  write(writer, value, field) {
    checkInteger(value, 0, 0xffffffff, field);
    for (const shift of [24, 16, 8, 0]) {
      writer.u8((value >>> shift) & 0xff);
    }
  },
};

/**
 * Text of at most `maxBytes` bytes, the closing NUL included. The kernel allows names that are not UTF-8: such bytes
 * are read as `decodeByteText` does, and written back.
 */
export const text = (maxBytes: number): Codec<string> => textCodec(maxBytes, true);

/** Text that iproute2 writes without its NUL, and the kernel with it. */
export const unterminatedText = (maxBytes: number): Codec<string> => textCodec(maxBytes, false);

function textCodec(maxBytes: number, isTerminated: boolean): Codec<string> {
  return {
    read(view, offset, length) {
      const textBytes = length > 0 && view.readU8(offset + length - 1) === 0 ? length - 1 : length;
      return textBytes < maxBytes ? decodeText(view, offset, textBytes) : undefined;
    },
    write(writer, value, field) {
      const bytes = encodeByteText(value);
      if (bytes.length >= maxBytes || bytes.includes(0)) {
        throw new CodecError(field, `expected text of at most ${maxBytes - 1} bytes, got ${JSON.stringify(value)}`);
      }
      writer.bytes(bytes);
      if (isTerminated) {
        writer.u8(0);
      }
    },
  };
}

function decodeText(view: ByteView, offset: number, length: number): string | undefined {
  let result = '';
  for (let index = offset; index < offset + length; index++) {
    const char = view.readU8(index);
    if (char === 0) {
      return undefined;
    }
    if (char >= 0x80) {
      const bytes = view.u8.subarray(offset, offset + length);
      // A trailing NUL is allowed here too. A text with a NUL inside is invalid and could not be written back.
      return bytes.includes(0) ? undefined : decodeByteText(bytes);
    }
    result += String.fromCharCode(char);
  }
  return result;
}

/** Interface name: any bytes but those that dev_valid_name() refuses. @see uapi/linux/if.h IFNAMSIZ, net/core/dev.c */
export const ifName: Codec<string> = text(IFNAMSIZ);

/** IPv4 or IPv6 address as text; the family follows from the length. */
export const ipAddress: Codec<string> = {
  read: (view, offset, length) => (length === 4 || length === 16 ? formatIp(view.u8, offset, length) : undefined),
  write(writer, value, field) {
    if (!writeIp(writer, value, value.length)) {
      throw new CodecError(field, `expected an IP address such as 10.0.0.5 or fd00::1, got ${JSON.stringify(value)}`);
    }
  },
};

/** Writes the address in the first `end` characters of `value`; returns its bytes, 0 when it is none. */
export function writeIp(writer: ByteWriter, value: string, end: number): number {
  const ipv4 = parseIpv4Number(value, end);
  if (ipv4 >= 0) {
    const at = writer.reserve(4);
    const { u8: bytes } = writer.view;
    bytes[at] = ipv4 >>> 24;
    bytes[at + 1] = ipv4 >>> 16;
    bytes[at + 2] = ipv4 >>> 8;
    bytes[at + 3] = ipv4;
    return 4;
  }
  const ipv6 = value.includes(':') ? parseIp(value.slice(0, end)) : undefined;
  if (ipv6 === undefined) {
    return 0;
  }
  writer.bytes(ipv6);
  return ipv6.length;
}

const HEX = Array.from({ length: 256 }, (_, value) => value.toString(16).padStart(2, '0'));

/** Link-layer address as 'aa:bb:…' in lower case, 1 to 32 bytes long (Ethernet: 6). */
export const linkAddress: Codec<string> = {
  read(view, offset, length) {
    if (length < 1 || length > 32) {
      return undefined;
    }
    let result = HEX[view.readU8(offset)] ?? '';
    for (let index = 1; index < length; index++) {
      result += `:${HEX[view.readU8(offset + index)]}`;
    }
    return result;
  },
  write(writer, value, field) {
    if (!/^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){0,31}$/.test(value)) {
      throw new CodecError(field, `expected a MAC such as 02:00:0a:00:00:05, got ${JSON.stringify(value)}`);
    }
    for (const byte of value.split(':')) {
      writer.u8(Number.parseInt(byte, 16));
    }
  },
};

/** Payload kept as bytes. */
export const rawBytes: Codec<Uint8Array> = {
  read: (view, offset, length) => view.u8.slice(offset, offset + length),
  write: (writer, value) => writer.bytes(value),
};
