import type { Codec } from './codec.ts';
import { CodecError } from './codec-error.ts';
import { formatIp, parseIp } from './ip-text.ts';
import type { Field } from './message-codec.ts';

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

/** Optional attribute which the kernel always sends: `unset` is how it says that it was never set. */
export function attributeUnless(type: number, codec: Codec<number>, unset: number): Field<number, false> {
  return {
    ...attribute(type, codec),
    readAttribute(view, offset, length) {
      const value = codec.read(view, offset, length);
      return value === unset ? null : value;
    },
  };
}

/** Attribute that reads as `initial` when the kernel leaves it out; always written. */
export function attributeOr<T>(type: number, codec: Codec<T>, initial: T): Field<T, true> {
  return { ...attribute(type, codec), required: true, initial };
}

/** Attribute that every such message has; should one come without, it reads as `initial`, which is never written. */
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
      return (length === 4 || length === 16) && bits <= length * 8
        ? `${formatIp(view.u8, offset, length)}/${bits}`
        : undefined;
    },
    writeAttribute(writer, start, value, field) {
      const parsed = parsePrefix(value);
      if (parsed === undefined) {
        throw new CodecError(field, `expected a prefix such as 10.0.0.0/8 or fd00::/64, got ${JSON.stringify(value)}`);
      }
      writer.view.u8[start + lengthOffset] = parsed.bits;
      // The kernel takes a zero-length prefix only without its attribute (strict checking), as iproute2 sends it.
      if (parsed.bits > 0) {
        const begin = writer.beginAttribute(type);
        writer.bytes(parsed.address);
        writer.endAttribute(begin);
      }
    },
  };
}

/** Splits 'address/length'; a bare address is a host prefix. Undefined when it is neither. */
export function parsePrefix(value: string): { readonly address: Uint8Array; readonly bits: number } | undefined {
  const slash = value.indexOf('/');
  const address = parseIp(slash < 0 ? value : value.slice(0, slash));
  if (address === undefined) {
    return undefined;
  }
  const max = address.length * 8;
  const digits = slash < 0 ? String(max) : value.slice(slash + 1);
  const bits = Number(digits);
  return /^(0|[1-9][0-9]{0,2})$/.test(digits) && bits <= max ? { address, bits } : undefined;
}

/**
 * Number that outgrew its byte in the header: up to 255 it is written there, a larger one goes into the attribute and
 * leaves 0 behind, as iproute2 writes routing tables and address flags. The kernel answers with both; the attribute
 * counts.
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
