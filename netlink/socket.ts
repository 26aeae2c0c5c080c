import { closeSync, readSync, write, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { LibcError } from './errno.ts';
import { bind, getsockname, setsockopt, socket } from './libc.ts';
import { AF_NETLINK, NETLINK_CAP_ACK, NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK, SOL_NETLINK } from './uapi/netlink.ts';

const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
const SOCK_NONBLOCK = 0o4000;
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
const SO_RCVTIMEO = 20;
const SO_SNDBUFFORCE = 32;
const SO_RCVBUFFORCE = 33;
const SOCKADDR_NL_BYTES = 12;
/** Size of the send buffer. A write must fit into it as a whole, else EMSGSIZE. */
const SEND_BUFFER_BYTES = 1 << 20;
/** Most interruptions of one read: one signal a millisecond for the whole timeout stays below. */
const MAX_INTERRUPTIONS = 10_000;

/** Capabilities of the kernel; each is probed when the socket opens. */
export type NetlinkCapabilities = {
  /** Errors carry a text and the offending attribute (4.12). */
  readonly extendedAck: boolean;
  /** Acknowledgements omit the request (4.3); else they echo it. */
  readonly cappedAck: boolean;
  /** Dumps are filtered in the kernel (4.20); else here, after reading everything. */
  readonly strictDump: boolean;
};

/** Moves bytes to and from the kernel. Tests replace this type by a script. */
export type NetlinkSocket = {
  /** Address of the socket; answers to it carry this. */
  readonly portid: number;
  readonly capabilities: NetlinkCapabilities;
  /** Sends one datagram of whole messages: the first `length` bytes. @throws LibcError */
  write(bytes: Uint8Array, length: number): void;
  /** Sends one datagram from the thread pool: for requests that keep the kernel busy. Rejects with LibcError. */
  writeInBackground(bytes: Uint8Array): Promise<void>;
  /** Receives one datagram; returns its length. @throws LibcError EAGAIN after the timeout, ENOBUFS on overrun */
  read(buffer: Uint8Array): number;
  /** Opens another socket like this one, in the same network namespace. @throws LibcError */
  reopen(): NetlinkSocket;
  close(): void;
};

/** Options of a socket. */
export type SocketOptions = {
  /** NETLINK_ROUTE or NETLINK_NETFILTER. */
  readonly protocol: number;
  /** Longest wait for an answer, milliseconds; a lost answer must not block the caller forever. Default 5000. */
  readonly receiveTimeoutMs?: number;
  readonly isNonblocking?: boolean;
  /** Receive buffer, bytes. */
  readonly receiveBufferBytes?: number;
};

/**
 * Creates and binds a descriptor in the current network namespace. @returns it, owned by the caller. @throws LibcError
 */
export function openNetlinkFd(options: SocketOptions): { fd: number; portid: number } {
  const fd = socket(
    AF_NETLINK,
    SOCK_RAW | SOCK_CLOEXEC | (options.isNonblocking ? SOCK_NONBLOCK : 0),
    options.protocol,
  );
  try {
    const address = new Uint8Array(SOCKADDR_NL_BYTES);
    new Uint16Array(address.buffer)[0] = AF_NETLINK;
    bind(fd, address);
    getsockname(fd, address);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, timeval(options.receiveTimeoutMs ?? 5000));
    trySetsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, int32(SEND_BUFFER_BYTES));
    if (options.receiveBufferBytes !== undefined) {
      setReceiveBuffer(fd, options.receiveBufferBytes);
    }
    return { fd, portid: new Uint32Array(address.buffer)[1] ?? 0 };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Enables the options that the kernel knows and returns which of them took effect. */
export function probeCapabilities(fd: number): NetlinkCapabilities {
  const on = int32(1);
  return {
    extendedAck: trySetsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, on),
    cappedAck: trySetsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, on),
    strictDump: trySetsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, on),
  };
}

/** Sends the first `length` bytes as one datagram. @throws LibcError */
export function writeDatagram(fd: number, bytes: Uint8Array, length: number): void {
  for (let attempt = 0; ; attempt++) {
    try {
      writeSync(fd, bytes, 0, length);
      return;
    } catch (error) {
      throwUnlessInterrupted('write', error, attempt);
    }
  }
}

/**
 * Receives one datagram. A buffer of at least 64 KiB is always large enough: the kernel makes dumps of 32 KiB at most.
 */
export function readDatagram(fd: number, buffer: Uint8Array): number {
  for (let attempt = 0; ; attempt++) {
    try {
      return readSync(fd, buffer, 0, buffer.length, null);
    } catch (error) {
      throwUnlessInterrupted('read', error, attempt);
    }
  }
}

/** Sends one datagram from the thread pool. Rejects with LibcError. */
export function writeDatagramInBackground(fd: number, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    write(fd, bytes, 0, bytes.length, null, (error) => {
      if (error === null) {
        resolve();
      } else {
        reject(asLibcError('write', error));
      }
    });
  });
}

/** Returns the four bytes of an int in host order. */
export function int32(value: number): Uint8Array {
  return new Uint8Array(Int32Array.of(value).buffer);
}

function setReceiveBuffer(fd: number, bytes: number): void {
  // FORCE needs CAP_NET_ADMIN; without it the limit of net.core.rmem_max applies.
  if (!trySetsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, int32(bytes))) {
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, int32(bytes));
  }
}

function trySetsockopt(fd: number, level: number, option: number, value: Uint8Array): boolean {
  try {
    setsockopt(fd, level, option, value);
    return true;
  } catch (error) {
    if (error instanceof LibcError) {
      return false;
    }
    throw error;
  }
}

/** struct timeval of 64-bit systems: seconds, microseconds. */
function timeval(ms: number): Uint8Array {
  return new Uint8Array(BigInt64Array.of(BigInt(Math.floor(ms / 1000)), BigInt((ms % 1000) * 1000)).buffer);
}

/**
 * Throws any error but EINTR. A socket with a timeout is interrupted by every signal, with SA_RESTART or without, and
 * monitors use SIGIO.
 */
function throwUnlessInterrupted(syscall: string, error: unknown, attempt: number): void {
  const failure = asLibcError(syscall, error);
  if (failure.code !== 'EINTR' || attempt >= MAX_INTERRUPTIONS) {
    throw failure;
  }
}

function asLibcError(syscall: string, error: unknown): LibcError {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') {
    const errno = 'errno' in error && typeof error.errno === 'number' ? Math.abs(error.errno) : constants.errno.EIO;
    return new LibcError(syscall, errno, 'netlink socket');
  }
  throw error;
}
