import { closeSync } from 'node:fs';
import { bpf } from '../netlink/libc.ts';
import { BpfError } from './bpf-error.ts';
import { ForeignMemory } from './foreign-memory.ts';
import { BPF_OBJ_GET_INFO_BY_FD, BPF_OBJ_NAME_LEN } from './uapi/bpf.ts';

/** Writes fields of union bpf_attr at their offsets; the rest is zero. */
export class BpfAttr {
  readonly bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: number) {
    this.bytes = new Uint8Array(bytes);
    this.#view = new DataView(this.bytes.buffer);
  }

  u32(offset: number, ...values: readonly number[]): this {
    for (const [at, value] of values.entries()) this.#view.setUint32(offset + 4 * at, value, true);
    return this;
  }

  /** An address, or 64 bits. */
  u64(offset: number, value: number): this {
    this.#view.setBigUint64(offset, BigInt(value), true);
    return this;
  }

  /** A name, which the kernel takes up to its 15th byte: ASCII letters, digits, `_` and `.`. */
  name(offset: number, value: string): this {
    this.bytes.set(new TextEncoder().encode(value).subarray(0, BPF_OBJ_NAME_LEN - 1), offset);
    return this;
  }
}

/** Calls bpf(2). @param what for the message, as "load the program tke_fast". @throws BpfError */
export function callBpf(command: number, attr: BpfAttr, what: string): number {
  try {
    return bpf(command, attr.bytes);
  } catch (error) {
    throw new BpfError(what, error);
  }
}

/** Reads struct bpf_prog_info or bpf_map_info of a descriptor. @param fill fields that the kernel reads. @throws BpfError */
export function readInfo(fd: number, bytes: number, fill: (info: BpfAttr) => void = () => {}): DataView {
  using memory = new ForeignMemory(bytes);
  const info = new BpfAttr(bytes);
  fill(info);
  const address = memory.put(info.bytes);
  callBpf(BPF_OBJ_GET_INFO_BY_FD, new BpfAttr(16).u32(0, fd, bytes).u64(8, address), 'read about a bpf object');
  return new DataView(memory.get(address, bytes).buffer);
}

/** Reads a text of a fixed size that ends with a NUL. */
export function textAt(view: DataView, offset: number, bytes: number): string {
  const raw = new Uint8Array(view.buffer, view.byteOffset + offset, bytes);
  const end = raw.indexOf(0);
  return new TextDecoder().decode(end < 0 ? raw : raw.subarray(0, end));
}

/** A descriptor of a bpf object. The owner must close it; the object lives on while a link or another object uses it. */
export class BpfDescriptor implements Disposable {
  readonly fd: number;
  #isOpen = true;

  constructor(fd: number) {
    this.fd = fd;
  }

  /** Idempotent. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    closeSync(this.fd);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
