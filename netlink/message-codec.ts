/**
 * One table per message drives encoding, decoding and the TypeScript type.
 *
 *   const RULE = messageCodec('rule', 12, {
 *     family: headerU8(0),                        // a number in the fixed header: required
 *     src: prefix(FRA_SRC, 2),                    // attribute plus its length in the header: optional
 *     fwmark: attribute(FRA_FWMARK, u32),         // attribute: optional
 *     priority: attributeOr(FRA_PRIORITY, u32, 0) // attribute the kernel leaves out when it is 0: required
 *   });
 *   type RuleMessage = MessageOf<typeof RULE>;
 *
 * The order of the table is the order on the wire, so equal messages give equal bytes.
 */
import { type ByteView, viewOf } from './byte-view.ts';
import type { ByteWriter } from './byte-writer.ts';
import type { AttributeNames, Codec } from './codec.ts';
import { CodecError } from './codec-error.ts';
import { NO_ATTRIBUTES, type Rtattr, walkAttributes, writeAttributes } from './rtattr.ts';
import { NLA_TYPE_MASK } from './uapi/netlink.ts';

/** Describes one field of a message. `start` is where the fixed header begins. */
export type Field<T, Required extends boolean> = {
  readonly required: Required;
  /** Value of a required field when its attribute is missing. */
  readonly initial?: T;
  /** Number of the attribute that holds the field. */
  readonly attribute?: number;
  /** Names of the attributes inside that attribute. */
  readonly names?: AttributeNames;
  readHeader?(view: ByteView, start: number): T;
  /** Returns undefined for a payload of another form, null for one that means "not set". */
  readAttribute?(view: ByteView, offset: number, length: number, start: number): T | undefined | null;
  writeHeader?(writer: ByteWriter, start: number, value: T, field: string): void;
  writeAttribute?(writer: ByteWriter, start: number, value: T, field: string): void;
};

/** Maps field names to their description. */
export type Fields = Readonly<Record<string, Field<unknown, boolean>>>;

type ValueOf<F> = F extends Field<infer T, boolean> ? T : never;
type RequiredName<F extends Fields> = { [K in keyof F]: F[K] extends Field<unknown, true> ? K : never }[keyof F];

/** Derives the message type of a field table. */
type MessageOfFields<F extends Fields> = {
  readonly [K in RequiredName<F>]: ValueOf<F[K]>;
} & {
  readonly [K in Exclude<keyof F, RequiredName<F>>]?: ValueOf<F[K]>;
} & {
  /** Attributes that the table does not know; written back unchanged. */
  readonly unknown: readonly Rtattr[];
} extends infer M
  ? { [K in keyof M]: M[K] }
  : never;

/** Encodes and decodes one kind of message. */
export type MessageCodec<M> = AttributeNames & {
  readonly name: string;
  readonly headerBytes: number;
  /** Reads header and attributes in `[start, end)`. @throws CodecError for a short header or a broken attribute */
  read(view: ByteView, start: number, end: number): M;
  /** Appends header and attributes; absent fields are not written. @throws CodecError */
  write(writer: ByteWriter, message: Partial<M>): void;
  /** Reads a message that stands alone (no nlmsghdr). @throws CodecError */
  decode(bytes: Uint8Array): M;
};

/** Derives the message type of a codec. */
export type MessageOf<C> = C extends MessageCodec<infer M> ? M : never;

/**
 * A field with its name. All slots have the same shape, whatever the field has, so that the loop over them stays fast.
 */
type Slot = {
  readonly name: string;
  readonly path: string;
  readonly field: Field<unknown, boolean>;
  readonly writeHeader: Field<unknown, boolean>['writeHeader'] | undefined;
  readonly writeAttribute: Field<unknown, boolean>['writeAttribute'] | undefined;
};
type Draft = Record<string, unknown>;

/** Builds the codec of a message from its table. @param headerBytes size of the fixed header, a multiple of 4 */
export function messageCodec<const F extends Fields>(
  name: string,
  headerBytes: number,
  fields: F,
): MessageCodec<MessageOfFields<F>> {
  type M = MessageOfFields<F>;
  const slots: readonly Slot[] = Object.entries(fields).map(([key, field]) => ({
    name: key,
    path: `${name}.${key}`,
    field,
    writeHeader: field.writeHeader,
    writeAttribute: field.writeAttribute,
  }));
  // One list of values serves all calls of `write`: no message contains one of its own kind.
  const indexes = new Map(slots.map((slot, index) => [slot.name, index]));
  const values: unknown[] = slots.map(() => undefined);
  const required = slots.filter((slot) => slot.field.required);
  const byAttribute: (Slot | undefined)[] = [];
  for (const slot of slots) {
    if (slot.field.attribute !== undefined) {
      byAttribute[slot.field.attribute] = slot;
    }
  }

  function read(view: ByteView, start: number, end: number): M {
    if (end - start < headerBytes) {
      throw new CodecError(name, `header of ${end - start} bytes, expected ${headerBytes}`);
    }
    const draft: Draft = {};
    for (const { name: key, field } of required) {
      draft[key] = field.readHeader === undefined ? field.initial : field.readHeader(view, start);
    }
    let unknown: Rtattr[] | undefined;
    let copy: Uint8Array | undefined;
    const isComplete = walkAttributes(view, start + headerBytes, end, (type, offset, length) => {
      const slot = byAttribute[type & NLA_TYPE_MASK];
      // The first of two equal attributes is used; the other is preserved, so that nothing is lost.
      const isRepeated = slot !== undefined && !slot.field.required && draft[slot.name] !== undefined;
      const value = isRepeated ? undefined : slot?.field.readAttribute?.(view, offset, length, start);
      if (slot === undefined || value === undefined) {
        // One copy of the message serves all of them: the receive buffer is overwritten later.
        copy ??= view.u8.slice(start, end);
        unknown ??= [];
        unknown.push({ type, payload: copy.subarray(offset - start, offset - start + length) });
      } else if (value !== null) {
        draft[slot.name] = value;
      }
    });
    if (!isComplete) {
      throw new CodecError(name, 'an attribute is shorter than its header or reaches beyond the message');
    }
    draft['unknown'] = unknown ?? NO_ATTRIBUTES;
    return draft as M;
  }

  function write(writer: ByteWriter, message: Partial<M>): void {
    const start = writer.zeros(headerBytes);
    const draft: Readonly<Draft> = message;
    // Visits only the present fields: a check of each of 30, most of them absent, costs twice as much.
    for (let index = 0; index < values.length; index++) {
      values[index] = undefined;
    }
    for (const key in draft) {
      const index = indexes.get(key);
      if (index !== undefined) {
        values[index] = draft[key];
      }
    }
    for (let index = 0; index < slots.length; index++) {
      const value = values[index];
      const slot = slots[index];
      if (value !== undefined && slot !== undefined) {
        slot.writeHeader?.(writer, start, value, slot.path);
        slot.writeAttribute?.(writer, start, value, slot.path);
      }
    }
    const { unknown } = message as { readonly unknown?: readonly Rtattr[] };
    if (unknown !== undefined) {
      writeAttributes(writer, unknown);
    }
  }

  return {
    name,
    headerBytes,
    attributeName: (type) => byAttribute[type & NLA_TYPE_MASK]?.name,
    within: (type) => byAttribute[type & NLA_TYPE_MASK]?.field.names,
    read,
    write,
    decode: (bytes) => read(viewOf(bytes), 0, bytes.length),
  };
}

/** Fields of a nested attribute: as those of a message, each optional; `unknown` is present only if it is not empty. */
export type NestedOf<M> = Partial<Omit<M, 'unknown'>> & { readonly unknown?: readonly Rtattr[] };

/** Makes the codec of a nested attribute from a message codec, which may have a header (as VETH_INFO_PEER has). */
export function nested<M extends { readonly unknown: readonly Rtattr[] }>(codec: MessageCodec<M>): Codec<NestedOf<M>> {
  return {
    read(view, offset, length) {
      try {
        return withoutEmptyUnknown(codec.read(view, offset, offset + length));
      } catch (error) {
        if (error instanceof CodecError) {
          return undefined;
        }
        throw error;
      }
    },
    write: (writer, value) => codec.write(writer, value as Partial<M>),
    names: codec,
  };
}

/** Removes an empty `unknown`, so that a read message equals its request. */
export function withoutEmptyUnknown<M extends { readonly unknown: readonly Rtattr[] }>(message: M): NestedOf<M> {
  const { unknown, ...known } = message;
  return unknown.length === 0 ? (known as NestedOf<M>) : (message as NestedOf<M>);
}
