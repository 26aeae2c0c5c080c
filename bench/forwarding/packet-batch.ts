import { DataType, define, open } from 'ffi-rs';
import { ForeignMemory } from '../../bpf/foreign-memory.ts';

/** Bytes of struct mmsghdr and struct iovec on 64-bit machines. @see sendmmsg(2) */
const MMSGHDR_BYTES = 64;
const IOVEC_BYTES = 16;
/** Offsets of msg_iov and msg_iovlen in struct mmsghdr. */
const MSG_IOV = 16;
const MSG_IOVLEN = 24;

const { I32, U32, U64 } = DataType;
const LIBRARY = 'bench-libc';
open({ library: LIBRARY, path: '' });
const libc = define({
  sendmmsg: { library: LIBRARY, retType: I32, paramsType: [I32, U64, U32, I32] },
}) as unknown as { sendmmsg(args: readonly [number, number, number, number]): number };

/**
 * Packets that one sendmmsg(2) sends to a socket's peer. The message headers, which contain addresses, are in memory outside of
 * the heap of V8. They are built once; a send passes three numbers.
 */
export class PacketBatch implements Disposable {
  readonly #count: number;
  readonly #memory: ForeignMemory;
  readonly #headers: number;

  constructor(payload: Uint8Array, count: number) {
    this.#count = count;
    this.#memory = new ForeignMemory(count * MMSGHDR_BYTES + IOVEC_BYTES + payload.byteLength + 16);
    const iovec = this.#memory.put(iovecOf(this.#memory.put(payload), payload.byteLength));
    this.#headers = this.#memory.put(headersOf(iovec, count));
  }

  /** Returns how many packets the kernel took; the connected peer of `fd` gets them. @throws Error when it took none */
  send(fd: number): number {
    const sent = libc.sendmmsg([fd, this.#headers, this.#count, 0]);
    if (sent <= 0) throw new Error(`sendmmsg on descriptor ${fd} sent nothing; is its socket connected?`);
    return sent;
  }

  [Symbol.dispose](): void {
    this.#memory.close();
  }
}

function iovecOf(address: number, bytes: number): Buffer {
  const iovec = Buffer.alloc(IOVEC_BYTES);
  iovec.writeBigUInt64LE(BigInt(address), 0);
  iovec.writeBigUInt64LE(BigInt(bytes), 8);
  return iovec;
}

/** All messages have the same one iovec: the kernel only reads it. */
function headersOf(iovec: number, count: number): Buffer {
  const headers = Buffer.alloc(count * MMSGHDR_BYTES);
  for (let at = 0; at < headers.length; at += MMSGHDR_BYTES) {
    headers.writeBigUInt64LE(BigInt(iovec), at + MSG_IOV);
    headers.writeBigUInt64LE(1n, at + MSG_IOVLEN);
  }
  return headers;
}
