import { showByteText } from '../../runtime/byte-text.ts';
import { CodecError, Cursor, encodeTag, encodeVarint, WIRE, type WireType } from './wire.ts';

/**
 * Encodes a message as protobuf, fields in table order, defaults left out: equal messages have equal bytes.
 *
 * @throws CodecError `RANGE` when a number does not fit its field.
 * @see https://protobuf.dev/programming-guides/encoding/
 */
export function encodeMessage<T extends MessageTable>(table: T, message: InitOf<T>): Buffer {
  const chunks: Uint8Array[] = [];
  const values = message as Readonly<Record<string, unknown>>;
  for (const [name, field] of Object.entries(table)) encodeField(chunks, name, field, values[name]);
  return Buffer.concat(chunks);
}

/**
 * Decodes a protobuf message. Fields that the table lacks, or that come with another wire type, are skipped; missing
 * ones get their default (sub-messages: absent); of a oneof the last one wins.
 *
 * @throws CodecError when the bytes end early or are no protobuf; nothing else, whatever the bytes.
 */
export function decodeMessage<T extends MessageTable>(table: T, bytes: Uint8Array): MessageOf<T> {
  const byNumber = new Map(Object.entries(table).map(([name, field]) => [field.number, { name, field }]));
  const message: Record<string, unknown> = defaultsOf(table);
  // A sub-message that comes in pieces is the merge of the pieces, which is what their concatenation decodes to.
  const pieces = new Map<string, Uint8Array[]>();
  const cursor = new Cursor(bytes);
  while (!cursor.atEnd) {
    const { number, wireType } = cursor.tag();
    const known = byNumber.get(number);
    if (known === undefined || !isReadable(known.field, wireType)) {
      cursor.skip(wireType, number);
      continue;
    }
    const { name, field } = known;
    if (field.type === 'message' && field.repeated !== true) {
      if (field.oneof !== undefined) dropSiblings(table, name, field.oneof, pieces);
      const before = pieces.get(name);
      if (before === undefined) pieces.set(name, [cursor.bytes()]);
      else before.push(cursor.bytes());
    } else if (field.repeated === true) {
      readItems(cursor, field, message[name] as unknown[], wireType);
    } else {
      message[name] = readScalar(cursor, field.type);
    }
  }
  for (const [name, list] of pieces) {
    const field = table[name];
    if (field?.type === 'message') message[name] = decodeMessage(field.message, Buffer.concat(list));
  }
  return message as MessageOf<T>;
}

/**
 * The fields of a message: name -> number and type. One table drives the TypeScript type, the encoder and the decoder.
 */
export type MessageTable = { readonly [name: string]: Field };

/** One field of a message. Supports only what our contracts use: no maps, floats or groups. */
export type Field =
  | { readonly number: number; readonly type: keyof ScalarTypes; readonly repeated?: never }
  | { readonly number: number; readonly type: 'string' | PackedType; readonly repeated: true }
  | { readonly number: number; readonly type: 'message'; readonly message: MessageTable; readonly repeated: true }
  | {
      readonly number: number;
      readonly type: 'message';
      readonly message: MessageTable;
      readonly repeated?: never;
      /** Name of the oneof that the field belongs to. */
      readonly oneof?: string;
    };

/** A scalar type that is packed when repeated, as in proto3: one tag, then all values in one run of bytes. */
type PackedType = 'uint32' | 'uint64' | 'enum';

/**
 * The proto3 scalar types and what holds them here. uint64 is a number: exact up to 2^53 - 1, enough for milliseconds.
 */
type ScalarTypes = {
  readonly string: string;
  readonly bytes: Uint8Array;
  readonly bool: boolean;
  readonly uint32: number;
  readonly int32: number;
  readonly uint64: number;
  readonly enum: number;
};

type OptionalNames<T extends MessageTable> = {
  [K in keyof T]: T[K] extends { readonly type: 'message'; readonly repeated: true }
    ? never
    : T[K] extends { readonly type: 'message' }
      ? K
      : never;
}[keyof T];

type ValueOf<F> = F extends { readonly type: 'message'; readonly message: infer M extends MessageTable }
  ? F extends { readonly repeated: true }
    ? readonly MessageOf<M>[]
    : MessageOf<M>
  : F extends { readonly type: infer S extends keyof ScalarTypes }
    ? F extends { readonly repeated: true }
      ? readonly ScalarTypes[S][]
      : ScalarTypes[S]
    : never;

/** The decoded shape of a table: every scalar and list is present, singular sub-messages are optional. */
export type MessageOf<T extends MessageTable> = {
  readonly [K in Exclude<keyof T, OptionalNames<T>>]: ValueOf<T[K]>;
} & { readonly [K in OptionalNames<T>]?: ValueOf<T[K]> | undefined };

type InitValueOf<F> = F extends { readonly type: 'message'; readonly message: infer M extends MessageTable }
  ? F extends { readonly repeated: true }
    ? readonly InitOf<M>[]
    : InitOf<M>
  : ValueOf<F>;

/** What `encodeMessage` accepts: every field is optional, a missing one gets its default. */
export type InitOf<T extends MessageTable> = { readonly [K in keyof T]?: InitValueOf<T[K]> | undefined };

function encodeField(chunks: Uint8Array[], name: string, field: Field, value: unknown): void {
  if (value === undefined) return;
  if (field.repeated === true && isPacked(field.type)) {
    const { type } = field;
    const items = (value as readonly unknown[]).map((item) => encodeVarint(inRange(name, type, item)));
    if (items.length > 0) pushLengthDelimited(chunks, field.number, Buffer.concat(items));
  } else if (field.repeated === true) {
    for (const item of value as readonly unknown[]) pushLengthDelimited(chunks, field.number, payloadOf(field, item));
  } else if (field.type === 'message') {
    pushLengthDelimited(chunks, field.number, payloadOf(field, value));
  } else if (field.type === 'string' || field.type === 'bytes') {
    const payload = payloadOf(field, value);
    if (payload.length > 0) pushLengthDelimited(chunks, field.number, payload);
  } else {
    const number = inRange(name, field.type, value);
    if (number !== 0) chunks.push(encodeTag(field.number, WIRE.varint), encodeVarint(number));
  }
}

/** @throws CodecError RANGE */
function inRange(name: string, type: keyof typeof RANGES, value: unknown): number {
  const number = Number(value);
  const [least, most] = RANGES[type];
  if (Number.isSafeInteger(number) && number >= least && number <= most) return number;
  throw new CodecError('RANGE', `field ${name}: ${String(value)} is no ${type}`);
}

function isPacked(type: Field['type']): type is PackedType {
  return type === 'uint32' || type === 'uint64' || type === 'enum';
}

function payloadOf(field: Field, value: unknown): Uint8Array {
  if (field.type === 'message') return encodeMessage(field.message, value as InitOf<MessageTable>);
  return field.type === 'bytes' ? (value as Uint8Array) : Buffer.from(showByteText(value as string), 'utf8');
}

function pushLengthDelimited(chunks: Uint8Array[], number: number, payload: Uint8Array): void {
  chunks.push(encodeTag(number, WIRE.lengthDelimited), encodeVarint(payload.length), payload);
}

const RANGES = {
  bool: [0, 1],
  uint32: [0, 0xffff_ffff],
  int32: [-0x8000_0000, 0x7fff_ffff],
  uint64: [0, Number.MAX_SAFE_INTEGER],
  enum: [-0x8000_0000, 0x7fff_ffff],
} as const;

const DEFAULTS = {
  string: '',
  bytes: new Uint8Array(0),
  bool: false,
  uint32: 0,
  int32: 0,
  uint64: 0,
  enum: 0,
} as const;

function defaultsOf(table: MessageTable): Record<string, unknown> {
  const message: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(table)) {
    if (field.repeated === true) message[name] = [];
    else if (field.type !== 'message') message[name] = DEFAULTS[field.type];
  }
  return message;
}

/** Reports whether a field may come with this wire type. Repeated numbers may come packed or one by one. */
function isReadable(field: Field, wireType: WireType): boolean {
  return wireType === wireTypeOf(field) || (field.repeated === true && wireType === scalarWireType(field.type));
}

/** Reads the bytes after one tag of a repeated field: one item, or a packed run of them. */
function readItems(
  cursor: Cursor,
  field: Field & { readonly repeated: true },
  items: unknown[],
  wireType: WireType,
): void {
  if (field.type === 'message') items.push(decodeMessage(field.message, cursor.bytes()));
  else if (!isPacked(field.type)) items.push(cursor.string());
  else if (wireType === WIRE.varint) items.push(readScalar(cursor, field.type));
  else for (const packed = new Cursor(cursor.bytes()); !packed.atEnd; ) items.push(readScalar(packed, field.type));
}

function wireTypeOf(field: Field): WireType {
  return field.repeated === true ? WIRE.lengthDelimited : scalarWireType(field.type);
}

function scalarWireType(type: Field['type']): WireType {
  return type === 'message' || type === 'string' || type === 'bytes' ? WIRE.lengthDelimited : WIRE.varint;
}

function readScalar(cursor: Cursor, type: keyof ScalarTypes): string | Uint8Array | boolean | number {
  if (type === 'string') return cursor.string();
  if (type === 'bytes') return cursor.bytes();
  const { low, high } = cursor.varint();
  if (type === 'bool') return low !== 0 || high !== 0;
  if (type === 'uint64') return high * 0x1_0000_0000 + low;
  // int32 and enum are sign-extended to 64 bits on the wire; their lower half is the value.
  return type === 'uint32' ? low : low | 0;
}

function dropSiblings(table: MessageTable, name: string, oneof: string, pieces: Map<string, Uint8Array[]>): void {
  for (const [other, field] of Object.entries(table)) {
    if (other !== name && field.type === 'message' && field.repeated !== true && field.oneof === oneof)
      pieces.delete(other);
  }
}
