import { mapMemory, readMemory, unmapMemory, writeMemory } from '../netlink/libc.ts';

/**
 * Memory outside of the heap of V8, for structures of the kernel that point to others: a buffer of V8 has no address that may
 * be kept. The owner must close it.
 */
export class ForeignMemory implements Disposable {
  readonly #start: number;
  readonly #bytes: number;
  #used = 0;
  #isOpen = true;

  /** @param bytes how much all of it takes. @throws LibcError */
  constructor(bytes: number) {
    this.#bytes = bytes;
    this.#start = mapMemory(bytes);
  }

  /** Sets `bytes` of zeroed memory apart, at a multiple of 8. @returns their address. @throws RangeError when it is full */
  reserve(bytes: number): number {
    const at = (this.#used + 7) & ~7;
    if (bytes <= 0 || at + bytes > this.#bytes) throw new RangeError(`bpf: ${bytes} bytes do not fit after ${at}`);
    this.#used = at + bytes;
    return this.#start + at;
  }

  /** Copies bytes there. @returns their address. @throws RangeError when it is full */
  put(bytes: Uint8Array): number {
    const address = this.reserve(bytes.byteLength);
    writeMemory(address, bytes);
    return address;
  }

  /** Copies bytes from there. @param address what `reserve` or `put` returned. @throws RangeError outside of it */
  get(address: number, bytes: number): Uint8Array {
    if (!this.#isOpen || address < this.#start || address + bytes > this.#start + this.#bytes) {
      throw new RangeError('bpf: an address outside of the memory');
    }
    const copy = new Uint8Array(bytes);
    readMemory(address, copy);
    return copy;
  }

  /** Returns it to the kernel. Idempotent. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    unmapMemory(this.#start, this.#bytes);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
