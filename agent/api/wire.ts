/** Reads protobuf's wire format from front to back; never beyond the end of the bytes. */
export class Cursor {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** True when all bytes are read. */
  get atEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** Reads a field's number and wire type. @throws CodecError `BAD_TAG` on number 0 or an unassigned wire type. */
  tag(): { readonly number: number; readonly wireType: WireType } {
    const { low, high } = this.varint();
    const number = low >>> 3;
    const wireType = low & 7;
    if (high !== 0 || number === 0 || !isWireType(wireType)) {
      throw new CodecError('BAD_TAG', `byte ${this.#at}: ${low} is no field tag`);
    }
    return { number, wireType };
  }

  /**
   * Reads a varint as two unsigned halves. Bits above 64 are dropped.
   * @throws CodecError `BAD_VARINT` above ten bytes.
   */
  varint(): { readonly low: number; readonly high: number } {
    let low = 0;
    let high = 0;
    for (let index = 0; index < VARINT_BYTES; index++) {
      const byte = this.#byte();
      const bits = byte & 0x7f;
      const shift = index * 7;
      if (shift < 32) low |= bits << shift;
      // The fifth byte straddles the halves: four bits below, three above.
      if (shift === 28) high |= bits >>> 4;
      else if (shift > 28) high |= bits << (shift - 32);
      if (byte < 0x80) return { low: low >>> 0, high: high >>> 0 };
    }
    throw new CodecError('BAD_VARINT', `byte ${this.#at}: a number of more than ${VARINT_BYTES} bytes`);
  }

  /** Reads a length and that many bytes; a view, no copy. */
  bytes(): Buffer {
    const { low, high } = this.varint();
    return this.#take(high === 0 ? low : Number.POSITIVE_INFINITY);
  }

  /** Reads a length and that many bytes of UTF-8; what is no UTF-8 becomes U+FFFD. */
  string(): string {
    return this.bytes().toString('utf8');
  }

  /** Skips the value of a field that the reader does not have in its table, nested groups included. */
  skip(wireType: WireType, number: number): void {
    // A loop and not a recursion: the sender chooses the depth of nesting, and the stack is limited.
    const groups: number[] = [];
    let current: { readonly number: number; readonly wireType: WireType } = { number, wireType };
    for (;;) {
      if (current.wireType === WIRE.startGroup) groups.push(current.number);
      else if (current.wireType === WIRE.endGroup) {
        if (groups.pop() !== current.number) {
          throw new CodecError('BAD_GROUP', `byte ${this.#at}: group ${current.number} ends without a start`);
        }
      } else this.#skipPlain(current.wireType);
      if (groups.length === 0) return;
      current = this.tag();
    }
  }

  #skipPlain(wireType: WireType): void {
    if (wireType === WIRE.varint) this.varint();
    else if (wireType === WIRE.lengthDelimited) this.bytes();
    else this.#take(wireType === WIRE.fixed64 ? 8 : 4);
  }

  #byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw new CodecError('TRUNCATED', `byte ${this.#at}: the message ends inside a number`);
    this.#at += 1;
    return byte;
  }

  #take(length: number): Buffer {
    const left = this.#bytes.length - this.#at;
    if (length > left) {
      throw new CodecError('TRUNCATED', `byte ${this.#at}: ${length} bytes announced, ${left} left`);
    }
    const start = this.#at;
    this.#at += length;
    return this.#bytes.subarray(start, this.#at);
  }
}

/** Encodes a field's number and wire type. */
export function encodeTag(number: number, wireType: WireType): Uint8Array {
  return encodeVarint(number * 8 + wireType);
}

/** Encodes a safe integer as a varint; a negative one takes ten bytes, as proto3's int32 and enum do. */
export function encodeVarint(value: number): Uint8Array {
  // Two's complement in two halves; Math.floor carries the sign into the upper one.
  let low = value >>> 0;
  let high = Math.floor(value / 0x1_0000_0000) >>> 0;
  const bytes: number[] = [];
  while (high !== 0 || low > 0x7f) {
    bytes.push((low & 0x7f) | 0x80);
    low = ((low >>> 7) | (high << 25)) >>> 0;
    high >>>= 7;
  }
  bytes.push(low);
  return Uint8Array.from(bytes);
}

/** protobuf's wire types. */
export const WIRE = { varint: 0, fixed64: 1, lengthDelimited: 2, startGroup: 3, endGroup: 4, fixed32: 5 } as const;

/** One of protobuf's wire types. */
export type WireType = (typeof WIRE)[keyof typeof WIRE];

/** An error for bytes that are no protobuf, or for a value that does not fit its field. */
export class CodecError extends Error {
  readonly code: 'TRUNCATED' | 'BAD_VARINT' | 'BAD_TAG' | 'BAD_GROUP' | 'RANGE';

  constructor(code: CodecError['code'], message: string) {
    super(message);
    this.name = 'CodecError';
    this.code = code;
  }
}

/** Length of the longest varint, bytes: 64 bits in groups of seven. */
const VARINT_BYTES = 10;

function isWireType(value: number): value is WireType {
  return value <= WIRE.fixed32;
}
