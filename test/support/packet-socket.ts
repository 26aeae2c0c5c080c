import { closeSync, readSync, writeSync } from 'node:fs';
import { bind, setsockopt, socket } from '../../netlink/libc.ts';
import { type Netns, withNetns } from '../../netlink/netns.ts';

const AF_PACKET = 17;
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
const SOCK_NONBLOCK = 0o4000;
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
const ETH_P_ALL = 3;

/** A packet socket on one link: sends whole frames, with whatever source, and reads the frames that the link's owner gets. */
export class PacketSocket implements Disposable {
  readonly #fd: number;
  readonly #buffer = Buffer.alloc(2_048);

  /** @throws LibcError */
  constructor(netns: Netns, ifindex: number) {
    this.#fd = withNetns(netns, () => socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    setsockopt(this.#fd, SOL_SOCKET, SO_RCVBUF, new Uint8Array(Int32Array.of(1 << 20).buffer));
    const address = Buffer.alloc(20);
    address.writeUInt16LE(AF_PACKET, 0);
    address.writeUInt16BE(ETH_P_ALL, 2);
    address.writeInt32LE(ifindex, 4);
    bind(this.#fd, address);
  }

  send(frame: Uint8Array): void {
    writeSync(this.#fd, frame);
  }

  /** Returns the frames that are there, both those that came in and those that went out. */
  read(): readonly Buffer[] {
    const frames: Buffer[] = [];
    for (;;) {
      try {
        frames.push(Buffer.from(this.#buffer.subarray(0, readSync(this.#fd, this.#buffer))));
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return frames;
        throw error;
      }
    }
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }
}
