import { closeSync, readSync, writeSync } from 'node:fs';
import { DataType, define, open } from 'ffi-rs';
import { bind, getsockname, setsockopt, socket } from '../../netlink/libc.ts';
import { type Netns, withNetns } from '../../netlink/netns.ts';
import { decodeEndpoint, ENDPOINT_BYTES, type Endpoint, encodeEndpoint, endpointFamily } from './socket-endpoint.ts';

const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_RCVTIMEO = 20;
/** Longest wait for a packet, milliseconds: on these paths it is there when the send returns, or it was lost. */
const RECEIVE_TIMEOUT_MS = 50;

const { I32, U8Array } = DataType;
const LIBRARY = 'udp-socket-libc';
open({ library: LIBRARY, path: '' });
const libc = define({
  connect: { library: LIBRARY, retType: I32, paramsType: [I32, U8Array, I32] },
}) as unknown as { connect(args: readonly [number, Uint8Array, number]): number };

/**
 * One UDP socket of a namespace, used from this process: on veth pairs the kernel forwards a packet within the send, so a
 * thread that has both ends needs no other process and no scheduler. Node's own sockets do not give their descriptor.
 */
export class UdpSocket implements Disposable {
  readonly fd: number;
  readonly #buffer = Buffer.alloc(64);

  /** @throws LibcError, also when the port of `local` is in use */
  constructor(netns: Netns, local: Endpoint = { ip: '0.0.0.0', port: 0 }, receiveTimeoutMs = RECEIVE_TIMEOUT_MS) {
    this.fd = withNetns(netns, () => socket(endpointFamily(local), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    bind(this.fd, encodeEndpoint(local));
    const timeout = Buffer.alloc(16);
    timeout.writeBigInt64LE(BigInt(receiveTimeoutMs * 1_000), 8);
    setsockopt(this.fd, SOL_SOCKET, SO_RCVTIMEO, timeout);
  }

  get local(): Endpoint {
    const address = new Uint8Array(ENDPOINT_BYTES);
    getsockname(this.fd, address);
    return decodeEndpoint(address);
  }

  /** @throws Error when no route leads there */
  connect(peer: Endpoint): void {
    const address = encodeEndpoint(peer);
    if (libc.connect([this.fd, address, address.length]) !== 0) {
      throw new Error(`no UDP connection to ${peer.ip} port ${peer.port}: the namespace has no route to it`);
    }
  }

  /** Sends one packet to the connected peer, as an application does: one write(2). */
  send(payload: Uint8Array): void {
    writeSync(this.fd, payload);
  }

  /** Reads one packet; false when none came in time. */
  receive(): boolean {
    for (;;) {
      try {
        readSync(this.fd, this.#buffer);
        return true;
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? error.code : undefined;
        if (code === 'EAGAIN') return false;
        // With a timeout the kernel does not restart the call after a signal, as that of a child which ended.
        if (code !== 'EINTR') throw error;
      }
    }
  }

  [Symbol.dispose](): void {
    closeSync(this.fd);
  }
}
