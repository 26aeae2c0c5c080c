import { constants } from 'node:os';
import { type BatchItem, type BatchOutcome, executeBatch, executeBatchInBackground } from './batch.ts';
import { type Channel, type RequestContext, receiveBuffer, sendBuffer } from './channel.ts';
import { CodecError } from './codec-error.ts';
import type { MessageCodec } from './message-codec.ts';
import { NetlinkError } from './netlink-error.ts';
import { beginMessage, endMessage } from './nlmsghdr.ts';
import { errnoOf, invalidRequest, refusalOf } from './refusal.ts';
import type { NetlinkSocket } from './socket.ts';
import {
  NLM_F_ACK,
  NLM_F_DUMP,
  NLM_F_DUMP_INTR,
  NLM_F_REQUEST,
  NLMSG_DONE,
  NLMSG_ERROR,
  NLMSG_HDRLEN,
} from './uapi/netlink.ts';

/** Most attempts: an interrupted dump is read again; a table that changes faster will not settle. */
const MAX_DUMP_ATTEMPTS = 5;
/** Most unreadable messages that are described; the others are skipped all the same. */
const MAX_UNREADABLE = 16;

/** A reading request and the form of its answers; these are mostly messages like its own body. */
export type ReadRequest<M, B = M> = RequestContext & {
  readonly type: number;
  readonly answerType: number;
  readonly codec: Pick<MessageCodec<M>, 'read'> & Omit<MessageCodec<B>, 'read' | 'decode'>;
  /** Header and attributes of the request. */
  readonly body: Partial<B>;
  /** Errnos of a dump that mean "no objects". */
  readonly emptyOn?: readonly number[];
};

/** Answer of a dump. */
type Dump<M> = {
  readonly messages: readonly M[];
  /** Number of datagrams that carried messages: with more than one, the table may have changed in between. */
  readonly datagrams: number;
};

/** Exchanges requests with the kernel on one socket, so in one network namespace. Synchronous. */
export class Conn {
  readonly #channel: Channel;
  /** While set, unreadable messages of dumps are described here and skipped. */
  #unreadable: string[] | undefined;

  /** @param channel owned by the connection from here on */
  constructor(channel: Channel) {
    this.#channel = channel;
  }

  get portid(): number {
    return this.#channel.portid;
  }

  get capabilities(): NetlinkSocket['capabilities'] {
    return this.#channel.capabilities;
  }

  /** Opens another connection in the same namespace, for the caller to close. @throws NetlinkError, LibcError */
  openSibling(context: RequestContext): Conn {
    return new Conn(this.#channel.openSibling(context));
  }

  /** Closes the socket; every later call fails with EBADF. Idempotent. */
  close(): void {
    this.#channel.close();
  }

  /** See `Rtnetlink.skipUnreadable`. */
  skipUnreadable<T>(run: () => T): { readonly result: T; readonly unreadable: readonly string[] } {
    const outer = this.#unreadable;
    const unreadable: string[] = [];
    this.#unreadable = unreadable;
    try {
      return { result: run(), unreadable };
    } finally {
      this.#unreadable = outer;
    }
  }

  /** Executes one change: one write and one read. @throws NetlinkError */
  change(item: BatchItem): void {
    this.#encode(item);
    this.#channel.send(item);
    this.#awaitAck(item);
  }

  /**
   * As `change`, from the thread pool; no other request may be made until the promise settles. Rejects with
   * NetlinkError.
   */
  async changeInBackground(item: BatchItem): Promise<void> {
    this.#encode(item);
    await this.#channel.sendInBackground(item);
    this.#awaitAck(item);
  }

  /** Executes many changes with few writes; see `executeBatch`. @throws NetlinkError when the exchange itself fails */
  execute(items: readonly BatchItem[]): BatchOutcome[] {
    return executeBatch(this.#channel, items);
  }

  /** As `execute`, from the thread pool and in one write; see `executeBatchInBackground`. Rejects with NetlinkError. */
  executeInBackground(items: readonly [BatchItem, ...BatchItem[]]): Promise<BatchOutcome[]> {
    return executeBatchInBackground(this.#channel, items);
  }

  /** Reads one object. @throws NetlinkError */
  get<M, B>(request: ReadRequest<M, B>): M {
    const channel = this.#channel;
    this.#sendRead(request, NLM_F_REQUEST);
    for (;;) {
      channel.next(request);
      if (channel.type === request.answerType) {
        return this.#decode(request);
      }
      if (channel.type === NLMSG_ERROR) {
        this.#throwIfRefused(request);
      }
    }
  }

  /**
   * Reads all objects of a kind; again, up to 5 times, when the kernel reports that they changed meanwhile.
   * @throws NetlinkError; EAGAIN when every attempt was interrupted
   */
  dump<M, B>(request: ReadRequest<M, B>): Dump<M> {
    for (let attempt = 0; attempt < MAX_DUMP_ATTEMPTS; attempt++) {
      const dump = this.#dumpOnce(request);
      if (dump !== undefined) {
        return dump;
      }
    }
    const detail = `interrupted by changes ${MAX_DUMP_ATTEMPTS} times`;
    throw new NetlinkError({ errno: constants.errno.EAGAIN, ...request.fail(), detail });
  }

  /**
   * Reads all objects of a kind, each time those of one datagram: a table of any size takes little memory. Other connections may
   * be used meanwhile, this one not before the end. What changes during it may be missing.
   * @throws NetlinkError
   */
  *pieces<M, B>(request: ReadRequest<M, B>): Generator<readonly M[], void> {
    const channel = this.#channel;
    let piece: M[] = [];
    this.#sendRead(request, NLM_F_REQUEST | NLM_F_DUMP);
    for (;;) {
      channel.next(request);
      if (channel.type === NLMSG_DONE || channel.type === NLMSG_ERROR) break;
      if (channel.type === request.answerType) piece.push(this.#decode(request));
      if (channel.hasMore || piece.length === 0) continue;
      yield piece;
      piece = [];
    }
    this.#throwIfRefused(request);
    if (piece.length > 0) yield piece;
  }

  /** Returns undefined when the dump was interrupted by a change. */
  #dumpOnce<M, B>(request: ReadRequest<M, B>): Dump<M> | undefined {
    const channel = this.#channel;
    const messages: M[] = [];
    const unreadable: string[] = [];
    let isInterrupted = false;
    let datagrams = 0;
    let lastDatagram = 0;
    this.#sendRead(request, NLM_F_REQUEST | NLM_F_DUMP);
    do {
      channel.next(request);
      // The flag is on one message somewhere in the middle, not on the last.
      isInterrupted ||= (receiveBuffer.readU16(channel.start + 6) & NLM_F_DUMP_INTR) !== 0;
      if (channel.type === request.answerType) {
        const read = this.#decodeOrDescribe(request);
        if (typeof read === 'string') unreadable.push(read);
        else messages.push(read.message);
        if (channel.datagrams !== lastDatagram) {
          lastDatagram = channel.datagrams;
          datagrams += 1;
        }
      }
    } while (channel.type !== NLMSG_DONE && channel.type !== NLMSG_ERROR);
    // Errors of a dump come in NLMSG_DONE's integer; before it begins, as an NLMSG_ERROR.
    this.#throwIfRefused(request);
    if (isInterrupted) return undefined;
    this.#unreadable?.push(...unreadable.slice(0, MAX_UNREADABLE - this.#unreadable.length));
    return { messages, datagrams };
  }

  #encode(item: BatchItem): void {
    const seq = this.#channel.begin(1);
    try {
      item.encode(sendBuffer, seq, NLM_F_ACK);
    } catch (error) {
      throw invalidRequest(error, item);
    }
  }

  #awaitAck(item: BatchItem): void {
    const channel = this.#channel;
    do {
      channel.next(item);
    } while (channel.type !== NLMSG_ERROR);
    const errno = errnoOf(channel);
    if (errno !== 0) {
      throw refusalOf(channel, errno, item, { at: 0, shape: item.codec });
    }
  }

  #sendRead<M, B>(request: ReadRequest<M, B>, flags: number): void {
    const seq = this.#channel.begin(1);
    const start = beginMessage(sendBuffer, request.type, flags, seq);
    try {
      request.codec.write(sendBuffer, request.body);
    } catch (error) {
      throw invalidRequest(error, request);
    }
    endMessage(sendBuffer, start);
    this.#channel.send(request);
  }

  #decode<M, B>(request: ReadRequest<M, B>): M {
    const { start, end } = this.#channel;
    try {
      return request.codec.read(receiveBuffer, start + NLMSG_HDRLEN, end);
    } catch (error) {
      if (error instanceof CodecError) {
        throw this.#channel.broken(request, `answer cannot be read: ${error.message}`, error);
      }
      throw error;
    }
  }

  /** Describes a message that cannot be read, where such are skipped. @throws NetlinkError where they are not */
  #decodeOrDescribe<M, B>(request: ReadRequest<M, B>): { readonly message: M } | string {
    if (this.#unreadable === undefined) return { message: this.#decode(request) };
    const { start, end } = this.#channel;
    try {
      return { message: request.codec.read(receiveBuffer, start + NLMSG_HDRLEN, end) };
    } catch (error) {
      if (error instanceof CodecError) return `${request.fail().op}: ${error.message}`;
      throw error;
    }
  }

  #throwIfRefused<M, B>(request: ReadRequest<M, B>): void {
    const errno = errnoOf(this.#channel);
    if (errno !== 0 && !request.emptyOn?.includes(errno)) {
      throw refusalOf(this.#channel, errno, request, { at: 0, shape: request.codec });
    }
  }
}
