import { formatIp } from '../runtime/ip-text.ts';
import { type Codec, writeIp } from './codec.ts';
import { CodecError } from './codec-error.ts';
import type { Field } from './message-codec.ts';
import { NLA_F_NESTED } from './uapi/netlink.ts';

function headerInteger(offset: number, bytes: 1 | 2 | 4): Field<number, true> {
  const limit = 2 ** (8 * bytes);
  return {
    required: true,
    readHeader(view, start) {
      const at = start + offset;
      return bytes === 1 ? view.readU8(at) : bytes === 2 ? view.readU16(at) : view.readU32(at);
    },
    writeHeader(writer, start, value, field) {
      if (!Number.isInteger(value) || value < 0 || value >= limit) {
        throw new CodecError(field, `expected an integer below ${limit}, got ${String(value)}`);
      }
      const at = start + offset;
      if (bytes === 1) {
        writer.view.u8[at] = value;
      } else if (bytes === 2) {
        writer.view.u16[at >> 1] = value;
      } else {
        writer.view.u32[at >> 2] = value;
      }
    },
  };
}

/** 8-bit number at `offset` of the fixed header. */
export const headerU8 = (offset: number): Field<number, true> => headerInteger(offset, 1);
/** 16-bit number at `offset` (even) of the fixed header. */
export const headerU16 = (offset: number): Field<number, true> => headerInteger(offset, 2);
/** 32-bit number at `offset` (a multiple of 4) of the fixed header. */
export const headerU32 = (offset: number): Field<number, true> => headerInteger(offset, 4);

/** 16-bit number in network order at `offset` (even) of the fixed header: a port. */
export function headerBe16(offset: number): Field<number, true> {
  const { readHeader, writeHeader } = headerU16(offset);
  const turned = (value: number): number => ((value & 0xff) << 8) | (value >> 8);
  return {
    required: true,
    readHeader: (view, start) => turned(readHeader?.(view, start) ?? 0),
    writeHeader(writer, start, value, field) {
      // Checked before it is turned: a value that is too large would be a port after it.
      writeHeader?.(writer, start, value, field);
      writeHeader?.(writer, start, turned(value), field);
    },
  };
}

/** Optional attribute. */
export function attribute<T>(type: number, codec: Codec<T>): Field<T, false> {
  return {
    required: false,
    attribute: type,
    ...(codec.names === undefined ? {} : { names: codec.names }),
    readAttribute: (view, offset, length) => codec.read(view, offset, length),
    writeAttribute(writer, _start, value, field) {
      const begin = writer.beginAttribute(type);
      codec.write(writer, value, field);
      writer.endAttribute(begin);
    },
  };
}

/** Optional attribute with others in it, written with NLA_F_NESTED as netfilter does. */
export function nestedAttribute<T>(type: number, codec: Codec<T>): Field<T, false> {
  return {
    ...attribute(type, codec),
    writeAttribute(writer, _start, value, field) {
      const begin = writer.beginAttribute(type | NLA_F_NESTED);
      codec.write(writer, value, field);
      writer.endAttribute(begin);
    },
  };
}

/** Optional attribute that the kernel always sends; the value `unset` means that it was never set. */
export function attributeUnless(type: number, codec: Codec<number>, unset: number): Field<number, false> {
  return {
    ...attribute(type, codec),
    readAttribute(view, offset, length) {
      const value = codec.read(view, offset, length);
      return value === unset ? null : value;
    },
  };
}

/** Attribute that reads as `initial` when the kernel omits it; always written. */
export function attributeOr<T>(type: number, codec: Codec<T>, initial: T): Field<T, true> {
  return { ...attribute(type, codec), required: true, initial };
}

/** Attribute that every such message has. When it is missing it reads as `initial`, which is never written. */
export function requiredAttribute<T>(type: number, codec: Codec<T>, initial: T): Field<T, true> {
  const field = attributeOr(type, codec, initial);
  return {
    ...field,
    writeAttribute(writer, start, value, name) {
      if (value !== initial) {
        field.writeAttribute?.(writer, start, value, name);
      }
    },
  };
}

/**
 * Address prefix 'address/length': an attribute for the address and a byte of the header for the length.
 * Absent when the attribute is: a default route, a rule for all sources.
 */
export function prefix(type: number, lengthOffset: number): Field<string, false> {
  return {
    required: false,
    attribute: type,
    readAttribute(view, offset, length, start) {
      const bits = view.readU8(start + lengthOffset);
      // An address with length 0 has no meaning; senders omit it.
      return (length === 4 || length === 16) && bits > 0 && bits <= length * 8
        ? `${formatIp(view.u8, offset, length)}/${bits}`
        : undefined;
    },
    writeAttribute(writer, start, value, field) {
      const slash = value.indexOf('/');
      const begin = writer.beginAttribute(type);
      const bytes = writeIp(writer, value, slash < 0 ? value.length : slash);
      const bits = slash < 0 ? bytes * 8 : prefixBits(value, slash + 1);
      if (bytes === 0 || bits < 0 || bits > bytes * 8) {
        throw new CodecError(field, `expected a prefix such as 10.0.0.0/8 or fd00::/64, got ${JSON.stringify(value)}`);
      }
      writer.view.u8[start + lengthOffset] = bits;
      if (bits > 0) {
        writer.endAttribute(begin);
      } else {
        // With strict checking the kernel accepts a zero-length prefix only without its attribute; iproute2 omits it
        // too.
        writer.position = begin;
      }
    },
  };
}

/** Reads the digits from `at` to the end; -1 when they are no number up to 128. */
function prefixBits(value: string, at: number): number {
  let bits = 0;
  const digits = value.length - at;
  if (digits < 1 || digits > 3 || (digits > 1 && value.charCodeAt(at) === 48)) {
    return -1;
  }
  for (let index = at; index < value.length; index++) {
    const digit = value.charCodeAt(index) - 48;
    if (digit < 0 || digit > 9) {
      return -1;
    }
    bits = bits * 10 + digit;
  }
  return bits;
}

/**
 * Number that outgrew its byte in the header. Up to 255 it is written there; a larger one goes into the attribute and
 * leaves 0 in the byte, as iproute2 writes routing tables and address flags. The kernel answers with both; the
 * attribute takes precedence.
 */
export function outgrownU8(type: number, headerOffset: number): Field<number, true> {
  return {
    required: true,
    attribute: type,
    readHeader: (view, start) => view.readU8(start + headerOffset),
    readAttribute: (view, offset, length) => (length === 4 ? view.readU32(offset) : undefined),
    writeHeader(writer, start, value, field) {
      if (!Number.isInteger(value) || value < 0 || value > 0xffffffff) {
        throw new CodecError(field, `expected an integer from 0 to 4294967295, got ${String(value)}`);
      }
      writer.view.u8[start + headerOffset] = value < 256 ? value : 0;
    },
    writeAttribute(writer, _start, value) {
      if (value > 255) {
        const begin = writer.beginAttribute(type);
        writer.u32(value);
        writer.endAttribute(begin);
      }
    },
  };
}
