import { constants } from 'node:os';
import { ByteView } from './byte-view.ts';
import { ByteWriter } from './byte-writer.ts';
import { CodecError } from './codec-error.ts';
import { LibcError } from './errno.ts';
import { readExtack, type SentMessage } from './extack.ts';
import type { MessageCodec } from './message-codec.ts';
import { NetlinkError } from './netlink-error.ts';
import { beginMessage, endMessage } from './nlmsghdr.ts';
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

/** More messages in one write are not faster; all acknowledgements of 200 would still fit into the receive buffer. */
const MAX_BATCH_MESSAGES = 128;
/** A new message is begun below this fill only; the largest one (a multipath route) is far smaller than the rest. */
const MAX_BATCH_BYTES = 96 * 1024;
const SEND_BUFFER_BYTES = 256 * 1024;
/** Dumps come in pieces of at most 32 KiB; a read with too small a buffer would lose the rest without a word. */
const RECEIVE_BUFFER_BYTES = 256 * 1024;
/** An interrupted dump is read again; a table that changes faster than this is not worth waiting for. */
const MAX_DUMP_ATTEMPTS = 5;
/** Datagrams to skip while waiting for one answer: leftovers of an aborted exchange, never many. */
const MAX_STALE_DATAGRAMS = 4096;
const LAST_SEQ = 0xffff_0000;

/** Shared by all connections of the process: the core is synchronous, nothing interleaves between fill and use. */
const sendBuffer = new ByteWriter(SEND_BUFFER_BYTES);
const receiveBuffer = new ByteView(new ArrayBuffer(RECEIVE_BUFFER_BYTES), RECEIVE_BUFFER_BYTES);

/** One message of a batch. */
export type BatchItem = {
  /** Appends the whole message. @throws CodecError */
  encode(writer: ByteWriter, seq: number): void;
  /** Names this message in an error. */
  fail(): ReturnType<Failure>;
  readonly codec: SentMessage['names'] & { readonly headerBytes: number };
};

/** Says which request an error belongs to; rendered only when one occurs. */
export type Failure = () => { readonly op: string; readonly request: string };

/** Result of one message of a batch. */
export type BatchOutcome =
  | { readonly kind: 'ok'; readonly ifindex?: number }
  | { readonly kind: 'error'; readonly error: NetlinkError };

/** What a reading request asks, and how its answers read. */
export type Question<M> = {
  readonly type: number;
  readonly answerType: number;
  readonly codec: MessageCodec<M>;
  /** Header and attributes of the request. */
  readonly body: Partial<M>;
  readonly fail: Failure;
  /** Errnos of a dump that mean "nothing there". */
  readonly emptyOn?: readonly number[];
};

/** Answer of a dump. */
export type Dump<M> = {
  readonly messages: readonly M[];
  /** Datagrams that carried messages: with more than one, the table may have changed in between. */
  readonly datagrams: number;
};

const OK: BatchOutcome = Object.freeze({ kind: 'ok' });

/** Talks request by request with the kernel on one socket, so in one network namespace. Synchronous. */
export class Conn {
  #socket: NetlinkSocket;
  #state: 'open' | 'dead' | 'closed' = 'open';
  #seq = 0;

  constructor(socket: NetlinkSocket) {
    this.#socket = socket;
  }

  get portid(): number {
    return this.#socket.portid;
  }

  get capabilities(): NetlinkSocket['capabilities'] {
    return this.#socket.capabilities;
  }

  /** Opens another connection in the same namespace, for the caller to close. @throws NetlinkError, LibcError */
  openSibling(fail: Failure): Conn {
    this.#assertOpen(fail);
    return new Conn(this.#socket.reopen());
  }

  /** Closes the socket; every later call fails with EBADF. Idempotent. */
  close(): void {
    if (this.#state !== 'closed') {
      this.#state = 'closed';
      this.#socket.close();
    }
  }

  /**
   * Sends messages, many to a write, with an acknowledgement for the last of each write: the kernel reports errors
   * of all the others anyway, and goes on after them. Nothing is undone.
   * @throws NetlinkError when the exchange itself fails; what was done is then unknown
   */
  execute(items: readonly BatchItem[]): BatchOutcome[] {
    const outcomes: BatchOutcome[] = [];
    for (let next = 0; next < items.length; ) {
      next = this.#executeWrite(items, next, outcomes);
    }
    return outcomes;
  }

  /**
   * Sends one message from the thread pool: the kernel does its work inside the write. The connection must not be
   * used until the promise settles. Rejects with NetlinkError.
   */
  async executeInBackground(item: BatchItem): Promise<void> {
    const fail = () => item.fail();
    this.#assertOpen(fail);
    const seq = this.#takeSeqs(1);
    sendBuffer.reset();
    const error = encodeItem(item, seq);
    if (error !== undefined) {
      throw error;
    }
    sendBuffer.view.u16[3] = (sendBuffer.view.u16[3] ?? 0) | NLM_F_ACK;
    const bytes = sendBuffer.written().slice();
    await this.#socket.writeInBackground(bytes).catch((cause: unknown) => {
      throw this.#broken(fail, undefined, undefined, cause);
    });
    // Others have used the buffer meanwhile; an error is explained with what was sent.
    sendBuffer.reset();
    sendBuffer.bytes(bytes);
    const outcomes: BatchOutcome[] = [OK];
    this.#receiveOutcomes({ items: [item], first: 0, base: seq, lastSeq: seq, starts: [0], outcomes }, fail);
    const [outcome] = outcomes;
    if (outcome?.kind === 'error') {
      throw outcome.error;
    }
  }

  #executeWrite(items: readonly BatchItem[], first: number, outcomes: BatchOutcome[]): number {
    const base = this.#takeSeqs(MAX_BATCH_MESSAGES);
    const starts: number[] = [];
    let lastStart = -1;
    let next = first;
    sendBuffer.reset();
    for (; next < items.length && starts.length < MAX_BATCH_MESSAGES && sendBuffer.position < MAX_BATCH_BYTES; next++) {
      const item = items[next];
      const start = sendBuffer.position;
      starts.push(start);
      const error = item === undefined ? undefined : encodeItem(item, base + next - first);
      if (error === undefined) {
        lastStart = start;
        outcomes.push(OK);
      } else {
        outcomes.push({ kind: 'error', error });
      }
    }
    if (lastStart >= 0) {
      sendBuffer.view.u16[(lastStart >> 1) + 3] = (sendBuffer.view.u16[(lastStart >> 1) + 3] ?? 0) | NLM_F_ACK;
      const lastSeq = sendBuffer.view.readU32(lastStart + 8);
      const fail = () => (items[first] as BatchItem).fail();
      this.#send(fail);
      this.#receiveOutcomes({ items, first, base, lastSeq, starts, outcomes }, fail);
    }
    return next;
  }

  #receiveOutcomes(batch: SentBatch, fail: Failure): void {
    let isAcknowledged = false;
    this.#receiveUntil(fail, (type, start, end, seq) => {
      const index = seq - batch.base;
      if (index < 0 || index >= batch.starts.length) {
        return false;
      }
      const at = batch.first + index;
      if (type !== NLMSG_ERROR) {
        // The echo of a new link: struct ifinfomsg has its index.
        const ifindex = end - start >= NLMSG_HDRLEN + 8 ? receiveBuffer.readU32(start + NLMSG_HDRLEN + 4) : 0;
        if (batch.outcomes[at] === OK && ifindex > 0) {
          batch.outcomes[at] = { kind: 'ok', ifindex };
        }
        return false;
      }
      const errno = -(receiveBuffer.readU32(start + NLMSG_HDRLEN) | 0);
      const item = batch.items[at];
      if (errno !== 0 && item !== undefined) {
        const extack = readExtack(receiveBuffer, start, end, sentMessage(batch.starts[index] ?? 0, item.codec));
        const error = new NetlinkError({ errno, ...item.fail(), ...(extack === undefined ? {} : { extack }) });
        batch.outcomes[at] = { kind: 'error', error };
      }
      isAcknowledged ||= seq === batch.lastSeq;
      return isAcknowledged;
    });
  }

  /** Asks for one object. @throws NetlinkError */
  ask<M>(question: Question<M>): M {
    const seq = this.#sendQuestion(question, NLM_F_REQUEST);
    let answer: M | undefined;
    this.#receiveUntil(question.fail, (type, start, end, answerSeq) => {
      if (answerSeq !== seq) {
        return false;
      }
      if (type === NLMSG_ERROR) {
        this.#throwIfError(question, start, end);
      }
      if (type !== question.answerType) {
        return false;
      }
      answer = this.#decode(question, start, end);
      return true;
    });
    if (answer === undefined) {
      throw this.#broken(question.fail, 'no answer', constants.errno.EBADMSG);
    }
    return answer;
  }

  /**
   * Reads all objects of a kind; again, up to 5 times, when the kernel says that they changed meanwhile.
   * @throws NetlinkError; EAGAIN when they never stand still
   */
  dump<M>(question: Question<M>): Dump<M> {
    for (let attempt = 0; attempt < MAX_DUMP_ATTEMPTS; attempt++) {
      const dump = this.#dumpOnce(question);
      if (dump !== undefined) {
        return dump;
      }
    }
    const detail = `interrupted by changes ${MAX_DUMP_ATTEMPTS} times`;
    throw new NetlinkError({ errno: constants.errno.EAGAIN, ...question.fail(), detail });
  }

  /** Returns undefined when the dump was interrupted by a change. */
  #dumpOnce<M>(question: Question<M>): Dump<M> | undefined {
    const seq = this.#sendQuestion(question, NLM_F_REQUEST | NLM_F_DUMP);
    const messages: M[] = [];
    let isInterrupted = false;
    let datagrams = 0;
    let lastDatagram = -1;
    this.#receiveUntil(question.fail, (type, start, end, answerSeq, datagram) => {
      if (answerSeq !== seq) {
        return false;
      }
      // The flag is on one message somewhere in the middle, not on the last.
      isInterrupted ||= (receiveBuffer.readU16(start + 6) & NLM_F_DUMP_INTR) !== 0;
      if (type === NLMSG_DONE || type === NLMSG_ERROR) {
        // Errors of a dump come in NLMSG_DONE's integer; before it begins, as an NLMSG_ERROR.
        this.#throwIfError(question, start, end);
        return true;
      }
      if (type === question.answerType) {
        messages.push(this.#decode(question, start, end));
        if (datagram !== lastDatagram) {
          lastDatagram = datagram;
          datagrams += 1;
        }
      }
      return false;
    });
    return isInterrupted ? undefined : { messages, datagrams };
  }

  #sendQuestion<M>(question: Question<M>, flags: number): number {
    const seq = this.#takeSeqs(1);
    sendBuffer.reset();
    const start = beginMessage(sendBuffer, question.type, flags, seq);
    try {
      question.codec.write(sendBuffer, question.body);
    } catch (error) {
      throw invalidRequest(error, question.fail);
    }
    endMessage(sendBuffer, start);
    this.#send(question.fail);
    return seq;
  }

  #decode<M>(question: Question<M>, start: number, end: number): M {
    try {
      return question.codec.read(receiveBuffer, start + NLMSG_HDRLEN, end);
    } catch (error) {
      if (error instanceof CodecError) {
        throw this.#broken(question.fail, `answer cannot be read: ${error.message}`, constants.errno.EBADMSG, error);
      }
      throw error;
    }
  }

  #throwIfError<M>(question: Question<M>, start: number, end: number): void {
    const errno = end - start < NLMSG_HDRLEN + 4 ? 0 : -(receiveBuffer.readU32(start + NLMSG_HDRLEN) | 0);
    if (errno !== 0 && !question.emptyOn?.includes(errno)) {
      const extack = readExtack(receiveBuffer, start, end, sentMessage(0, question.codec));
      throw new NetlinkError({ errno, ...question.fail(), ...(extack === undefined ? {} : { extack }) });
    }
  }

  #send(fail: Failure): void {
    this.#assertOpen(fail);
    try {
      this.#socket.write(sendBuffer.view.u8, sendBuffer.position);
    } catch (error) {
      throw this.#broken(fail, undefined, undefined, error);
    }
  }

  /** Reads datagrams and visits each message for us, until `visit` says that the last one has come. */
  #receiveUntil(
    fail: Failure,
    visit: (type: number, start: number, end: number, seq: number, datagram: number) => boolean,
  ): void {
    for (let datagram = 0, stale = 0; stale < MAX_STALE_DATAGRAMS; datagram++) {
      const length = this.#read(fail);
      let isDone = false;
      let isOurs = false;
      for (let start = 0; start + NLMSG_HDRLEN <= length; ) {
        const messageLength = receiveBuffer.readU32(start);
        if (messageLength < NLMSG_HDRLEN || start + messageLength > length) {
          throw this.#broken(fail, 'answer with a broken length', constants.errno.EBADMSG);
        }
        // Answers to others, or to a request that was given up, are not ours.
        if (receiveBuffer.readU32(start + 12) === this.#socket.portid) {
          const type = receiveBuffer.readU16(start + 4);
          const seq = receiveBuffer.readU32(start + 8);
          isOurs = true;
          isDone = visit(type, start, start + messageLength, seq, datagram) || isDone;
        }
        start += (messageLength + 3) & ~3;
      }
      if (isDone) {
        return;
      }
      stale = isOurs ? stale : stale + 1;
    }
    throw this.#broken(fail, 'no answer among many', constants.errno.EBADMSG);
  }

  #read(fail: Failure): number {
    try {
      const length = this.#socket.read(receiveBuffer.u8);
      receiveBuffer.length = length;
      return length;
    } catch (error) {
      if (error instanceof LibcError && error.code === 'EAGAIN') {
        throw this.#broken(fail, 'the kernel did not answer in time', constants.errno.ETIMEDOUT, error);
      }
      throw this.#broken(fail, undefined, undefined, error);
    }
  }

  /** Replaces the socket, on which answers of the failed exchange may still come, and makes the error to throw. */
  #broken(fail: Failure, detail: string | undefined, errno: number | undefined, cause?: unknown): NetlinkError {
    if (cause !== undefined && !(cause instanceof LibcError) && !(cause instanceof CodecError)) {
      throw cause;
    }
    try {
      const fresh = this.#socket.reopen();
      this.#socket.close();
      this.#socket = fresh;
    } catch {
      // Without a fresh socket no answer could be trusted any more; the cause is reported, the connection is over.
      this.#state = 'dead';
      this.#socket.close();
    }
    const number = errno ?? (cause instanceof LibcError ? cause.errno : constants.errno.EIO);
    const text = detail ?? (cause instanceof Error ? cause.message : undefined);
    return new NetlinkError({
      errno: number,
      ...fail(),
      ...(text === undefined ? {} : { detail: text }),
      ...(cause === undefined ? {} : { cause }),
    });
  }

  #assertOpen(fail: Failure): void {
    if (this.#state !== 'open') {
      const detail = this.#state === 'closed' ? 'the connection is closed' : 'the connection broke; open a new one';
      throw new NetlinkError({ errno: constants.errno.EBADF, ...fail(), detail });
    }
  }

  #takeSeqs(count: number): number {
    const first = this.#seq >= LAST_SEQ ? 1 : this.#seq + 1;
    this.#seq = first + count - 1;
    return first;
  }
}

type SentBatch = {
  readonly items: readonly BatchItem[];
  readonly first: number;
  readonly base: number;
  readonly lastSeq: number;
  readonly starts: readonly number[];
  readonly outcomes: BatchOutcome[];
};

function encodeItem(item: BatchItem, seq: number): NetlinkError | undefined {
  const start = sendBuffer.position;
  try {
    item.encode(sendBuffer, seq);
    return undefined;
  } catch (error) {
    sendBuffer.position = start;
    return invalidRequest(error, () => item.fail());
  }
}

function invalidRequest(error: unknown, fail: Failure): NetlinkError {
  if (error instanceof CodecError || error instanceof RangeError) {
    return new NetlinkError({ errno: constants.errno.EINVAL, ...fail(), detail: error.message, cause: error });
  }
  throw error;
}

function sentMessage(start: number, codec: BatchItem['codec']): SentMessage {
  const end = start + sendBuffer.view.readU32(start);
  const copy = sendBuffer.view.u8.slice(start, end);
  return { bytes: new ByteView(copy.buffer, copy.length), headerBytes: codec.headerBytes, names: codec };
}
