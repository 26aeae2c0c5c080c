/**
 * Bytes read as host-endian integers. Netlink is host-endian and 4-aligned, and so are typed arrays, so no byte order
 * appears in the code. Only addresses and ports are big-endian; they are read byte by byte.
 */
export class ByteView {
  readonly u8: Uint8Array;
  readonly u16: Uint16Array;
  readonly u32: Uint32Array;
  /** Number of valid bytes; the arrays may be longer. */
  length: number;

  constructor(buffer: ArrayBufferLike, length: number) {
    this.u8 = new Uint8Array(buffer);
    this.u16 = new Uint16Array(buffer);
    this.u32 = new Uint32Array(buffer);
    this.length = length;
  }

  readU8(offset: number): number {
    return this.u8[offset] ?? 0;
  }

  readU16(offset: number): number {
    return this.u16[offset >> 1] ?? 0;
  }

  readU32(offset: number): number {
    return this.u32[offset >> 2] ?? 0;
  }
}

/** Copies bytes of any alignment into a view. */
export function viewOf(bytes: Uint8Array): ByteView {
  const copy = new ArrayBuffer((bytes.length + 3) & ~3);
  new Uint8Array(copy).set(bytes);
  return new ByteView(copy, bytes.length);
}
