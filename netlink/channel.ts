import { constants } from 'node:os';
import { ByteView } from './byte-view.ts';
import { ByteWriter } from './byte-writer.ts';
import type { CodecError } from './codec-error.ts';
import { LibcError } from './errno.ts';
import { NetlinkError } from './netlink-error.ts';
import type { NetlinkSocket } from './socket.ts';
import { NLMSG_HDRLEN } from './uapi/netlink.ts';

const SEND_BUFFER_BYTES = 256 * 1024;
/** Dumps come in pieces of at most 32 KiB; a read into a smaller buffer would silently lose the rest. */
const RECEIVE_BUFFER_BYTES = 256 * 1024;
/** Most datagrams to skip during the wait for one answer: leftovers of an aborted exchange, never many. */
const MAX_STALE_DATAGRAMS = 4096;
const MAX_SEQ = 0xffff_0000;

/** Shared by all connections of the process: the core is synchronous, nothing interleaves between fill and use. */
export const sendBuffer = new ByteWriter(SEND_BUFFER_BYTES);
/** Shared like `sendBuffer`; its content is valid until the next read of any connection. */
export const receiveBuffer = new ByteView(new ArrayBuffer(RECEIVE_BUFFER_BYTES), RECEIVE_BUFFER_BYTES);

/** The request that an exchange is for. */
export type RequestContext = {
  /** Names the operation and the request of an error; called only when one occurs. */
  fail(): { readonly op: string; readonly request: string };
};

/**
 * Runs one exchange after another on one socket: `begin`, fill `sendBuffer`, `send`, then `next` for each answer. After
 * a failure the socket is replaced, so that late answers cannot be mistaken for others.
 */
export class Channel {
  /** Type of the message that `next` read. */
  type = 0;
  /** Where that message begins in `receiveBuffer`. */
  start = 0;
  /** Where that message ends, padding not included. */
  end = 0;
  /** Index of the request of this exchange that it answers: 0 for the first. */
  index = 0;
  /** Datagrams read in this exchange. */
  datagrams = 0;
  #socket: NetlinkSocket;
  #state: 'open' | 'dead' | 'closed' = 'open';
  #firstSeq = 0;
  #lastSeq = 0;
  /** What is left of the datagram in `receiveBuffer`. */
  #next = 0;
  #length = 0;

  constructor(socket: NetlinkSocket) {
    this.#socket = socket;
  }

  get portid(): number {
    return this.#socket.portid;
  }

  get capabilities(): NetlinkSocket['capabilities'] {
    return this.#socket.capabilities;
  }

  /** Opens another channel in the same namespace, for the caller to close. @throws NetlinkError, LibcError */
  openSibling(context: RequestContext): Channel {
    this.#assertOpen(context);
    return new Channel(this.#socket.reopen());
  }

  /** Closes the socket; every later exchange fails with EBADF. Idempotent. */
  close(): void {
    if (this.#state !== 'closed') {
      this.#state = 'closed';
      this.#socket.close();
    }
  }

  /**
   * Begins an exchange of up to `count` requests and empties the send buffer. @returns the sequence number of the first
   */
  begin(count: number): number {
    const first = this.#lastSeq >= MAX_SEQ ? 1 : this.#lastSeq + 1;
    this.#firstSeq = first;
    this.#lastSeq = first + count - 1;
    this.#next = 0;
    this.#length = 0;
    this.datagrams = 0;
    sendBuffer.reset();
    return first;
  }

  /** Sends what is in the send buffer. @throws NetlinkError */
  send(context: RequestContext): void {
    this.#assertOpen(context);
    try {
      this.#socket.write(sendBuffer.view.u8, sendBuffer.position);
    } catch (error) {
      throw this.#brokenBy(error, context);
    }
  }

  /**
   * Sends the content of the send buffer from the thread pool: the kernel does its work inside the write. No other
   * exchange may begin here until the promise settles; the send buffer then has the request again. Rejects with
   * NetlinkError.
   */
  async sendInBackground(context: RequestContext): Promise<void> {
    this.#assertOpen(context);
    const bytes = sendBuffer.written().slice();
    try {
      await this.#socket.writeInBackground(bytes);
    } catch (error) {
      throw this.#brokenBy(error, context);
    }
    // Others have used the buffer meanwhile; errors are explained with the request that was sent.
    sendBuffer.reset();
    sendBuffer.bytes(bytes);
  }

  /** Whether what was received has another message. While it has none others may use `receiveBuffer` before `next`. */
  get hasMore(): boolean {
    return this.#next + NLMSG_HDRLEN <= this.#length;
  }

  /** Advances to the next message of this exchange, and waits for it if necessary. @throws NetlinkError */
  next(context: RequestContext): void {
    for (let stale = 0; stale <= MAX_STALE_DATAGRAMS; stale++) {
      while (this.#next + NLMSG_HDRLEN <= this.#length) {
        if (this.#step(context)) {
          return;
        }
      }
      this.#length = this.#read(context);
      this.#next = 0;
      this.datagrams += 1;
    }
    throw this.broken(context, 'no answer among many');
  }

  /**
   * Skips one message. @returns whether it belongs to this exchange: not to another socket, nor to an abandoned request
   */
  #step(context: RequestContext): boolean {
    const start = this.#next;
    const length = receiveBuffer.readU32(start);
    if (length < NLMSG_HDRLEN || start + length > this.#length) {
      throw this.broken(context, 'answer with a broken length');
    }
    this.#next = start + ((length + 3) & ~3);
    const seq = receiveBuffer.readU32(start + 8);
    if (receiveBuffer.readU32(start + 12) !== this.#socket.portid || seq < this.#firstSeq || seq > this.#lastSeq) {
      return false;
    }
    this.type = receiveBuffer.readU16(start + 4);
    this.start = start;
    this.end = start + length;
    this.index = seq - this.#firstSeq;
    return true;
  }

  #read(context: RequestContext): number {
    try {
      const length = this.#socket.read(receiveBuffer.u8);
      receiveBuffer.length = length;
      return length;
    } catch (error) {
      if (error instanceof LibcError && error.code === 'EAGAIN') {
        throw this.#fail(context, constants.errno.ETIMEDOUT, 'the kernel did not answer in time', error);
      }
      throw this.#brokenBy(error, context);
    }
  }

  /** Ends the exchange after a malformed answer, and builds the error to throw. */
  broken(context: RequestContext, detail: string, cause?: CodecError): NetlinkError {
    return this.#fail(context, constants.errno.EBADMSG, detail, cause);
  }

  #brokenBy(cause: unknown, context: RequestContext): NetlinkError {
    if (cause instanceof LibcError) {
      return this.#fail(context, cause.errno, cause.message, cause);
    }
    throw cause;
  }

  /** Replaces the socket, on which answers of the failed exchange may still arrive, and builds the error to throw. */
  #fail(context: RequestContext, errno: number, detail: string, cause?: Error): NetlinkError {
    try {
      const fresh = this.#socket.reopen();
      this.#socket.close();
      this.#socket = fresh;
    } catch {
      // Without a new socket no answer could be trusted any more. The cause is reported, and the connection is
      // unusable.
      this.#state = 'dead';
      this.#socket.close();
    }
    return new NetlinkError({ errno, ...context.fail(), detail, ...(cause === undefined ? {} : { cause }) });
  }

  #assertOpen(context: RequestContext): void {
    if (this.#state !== 'open') {
      const detail = this.#state === 'closed' ? 'the connection is closed' : 'the connection broke; open a new one';
      throw new NetlinkError({ errno: constants.errno.EBADF, ...context.fail(), detail });
    }
  }
}
