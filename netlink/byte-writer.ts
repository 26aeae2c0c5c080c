import { ByteView } from './byte-view.ts';
import { NLA_HDRLEN } from './uapi/netlink.ts';

/**
 * Appends netlink structures to one reusable buffer. Padding is written explicitly, because the buffer contains the
 * bytes of earlier messages.
 */
export class ByteWriter {
  readonly view: ByteView;
  readonly capacity: number;
  position = 0;

  /** @param capacity bytes; a multiple of 4 */
  constructor(capacity: number) {
    this.view = new ByteView(new ArrayBuffer(capacity), capacity);
    this.capacity = capacity;
  }

  /** Starts again; earlier content is discarded. */
  reset(): void {
    this.position = 0;
  }

  /** Returns the bytes written since `start`; valid until the next reset. */
  written(start = 0): Uint8Array {
    return this.view.u8.subarray(start, this.position);
  }

  /** Appends `count` bytes that the caller will write; returns where. @throws RangeError when the buffer is full */
  reserve(count: number): number {
    const start = this.position;
    if (start + count > this.capacity) {
      throw new RangeError(`netlink message does not fit into ${this.capacity} bytes`);
    }
    this.position = start + count;
    return start;
  }

  /** Appends `count` zero bytes and returns where they begin. @throws RangeError when the buffer is full */
  zeros(count: number): number {
    const start = this.reserve(count);
    const { u8 } = this.view;
    // A loop, because `fill` costs more than it for a dozen bytes.
    for (let at = start; at < start + count; at++) {
      u8[at] = 0;
    }
    return start;
  }

  u8(value: number): void {
    this.view.u8[this.reserve(1)] = value;
  }

  /** Appends a 16-bit integer in host order; the position must be even. */
  u16(value: number): void {
    this.view.u16[this.reserve(2) >> 1] = value;
  }

  /** Appends a 32-bit integer in host order; the position must be a multiple of 4. */
  u32(value: number): void {
    this.view.u32[this.reserve(4) >> 2] = value;
  }

  bytes(bytes: Uint8Array): void {
    const at = this.reserve(bytes.length);
    this.view.u8.set(bytes, at);
  }

  /** Opens an attribute; its length is filled in by `endAttribute`. @returns where the attribute begins */
  beginAttribute(type: number): number {
    const start = this.reserve(NLA_HDRLEN);
    this.view.u16[(start >> 1) + 1] = type;
    return start;
  }

  /** Closes the attribute that began at `start`: writes its length and the padding. */
  endAttribute(start: number): void {
    this.view.u16[start >> 1] = this.position - start;
    const rest = this.position & 3;
    if (rest !== 0) {
      this.zeros(4 - rest);
    }
  }
}
