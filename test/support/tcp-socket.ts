import { closeSync, readSync, writeSync } from 'node:fs';
import { DataType, define, open } from 'ffi-rs';
import { bind, setsockopt, socket } from '../../netlink/libc.ts';
import { type Netns, withNetns } from '../../netlink/netns.ts';
import { type Endpoint, encodeEndpoint, endpointFamily } from './socket-endpoint.ts';

const SOCK_STREAM = 1;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const SO_LINGER = 13;
const SO_RCVTIMEO = 20;
const SO_SNDTIMEO = 21;

const { I32, U64, U8Array } = DataType;
const LIBRARY = 'tcp-socket-libc';
open({ library: LIBRARY, path: '' });
const libc = define({
  connect: { library: LIBRARY, retType: I32, paramsType: [I32, U8Array, I32] },
  listen: { library: LIBRARY, retType: I32, paramsType: [I32, I32] },
  accept: { library: LIBRARY, retType: I32, paramsType: [I32, U64, U64] },
}) as unknown as {
  connect(args: readonly [number, Uint8Array, number]): number;
  listen(args: readonly [number, number]): number;
  accept(args: readonly [number, number, number]): number;
};

/** Where a connection is from and to. */
type TcpWay = {
  readonly from: Netns;
  readonly to: Netns;
  /** What the server has; `by`: where the client connects to instead, as the address of a Service. */
  readonly server: Endpoint;
  readonly client: Endpoint;
  readonly by?: Endpoint;
};

/**
 * Both ends of one TCP connection, used from this process: on veth pairs the kernel forwards within the send, so connect(2) returns
 * before accept(2) is called. Nothing waits longer than the time limit.
 */
export class TcpPair implements Disposable {
  readonly client: number;
  readonly server: number;
  readonly #open = new Set<number>();

  /** @throws LibcError, Error when the connection is not made in time */
  constructor({ from, to, server, client, by = server }: TcpWay, timeoutMs: number) {
    const listener = openSocket(to, server, timeoutMs);
    try {
      if (libc.listen([listener, 1]) !== 0) throw new Error('no listening TCP socket');
      this.client = openSocket(from, client, timeoutMs);
      this.#open.add(this.client);
      const address = encodeEndpoint(by);
      if (libc.connect([this.client, address, address.length]) !== 0) {
        throw new Error(`no TCP connection to ${by.ip} port ${by.port}`);
      }
      this.server = libc.accept([listener, 0, 0]);
      if (this.server < 0) throw new Error(`no TCP connection from ${client.ip} was accepted`);
      this.#open.add(this.server);
      setTimeouts(this.server, timeoutMs);
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    } finally {
      closeSync(listener);
    }
  }

  /** Sends bytes to the other end and back; says of both ways whether all came. */
  exchange(bytes: number): readonly boolean[] {
    return [this.pass(this.client, this.server, bytes), this.pass(this.server, this.client, bytes)];
  }

  /** Sends bytes one way; tells whether all came in time. */
  pass(from: number, to: number, bytes: number): boolean {
    writeSync(from, Buffer.alloc(bytes, 0x55));
    const buffer = Buffer.alloc(bytes);
    for (let come = 0; come < bytes; ) {
      const count = readIfAny(to, buffer);
      if (count === 0) return false;
      come += count;
    }
    return true;
  }

  /** Closes both ends: `fin` as applications do, `rst` without a farewell. */
  end(how: 'fin' | 'rst'): void {
    // SO_LINGER with 0 s: close(2) sends RST.
    if (how === 'rst') setsockopt(this.client, SOL_SOCKET, SO_LINGER, new Uint8Array(Int32Array.of(1, 0).buffer));
    this[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    for (const fd of this.#open) closeSync(fd);
    this.#open.clear();
  }
}

function openSocket(netns: Netns, local: Endpoint, timeoutMs: number): number {
  const fd = withNetns(netns, () => socket(endpointFamily(local), SOCK_STREAM | SOCK_CLOEXEC, 0));
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, new Uint8Array(Int32Array.of(1).buffer));
  setTimeouts(fd, timeoutMs);
  bind(fd, encodeEndpoint(local));
  return fd;
}

function setTimeouts(fd: number, timeoutMs: number): void {
  const time = Buffer.alloc(16);
  time.writeBigInt64LE(BigInt(Math.floor(timeoutMs / 1_000)), 0);
  time.writeBigInt64LE(BigInt((timeoutMs % 1_000) * 1_000), 8);
  for (const option of [SO_RCVTIMEO, SO_SNDTIMEO]) setsockopt(fd, SOL_SOCKET, option, time);
}

/** Reads what came; 0 when nothing came in time, or the connection is over. */
function readIfAny(fd: number, buffer: Buffer): number {
  for (;;) {
    try {
      return readSync(fd, buffer);
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined;
      if (code === 'EAGAIN' || code === 'ECONNRESET') return 0;
      // As in UdpSocket: a child that ended interrupts the call.
      if (code !== 'EINTR') throw error;
    }
  }
}
