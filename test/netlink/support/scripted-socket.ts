import { constants } from 'node:os';
import { LibcError } from '../../../netlink/errno.ts';
import type { NetlinkSocket } from '../../../netlink/socket.ts';

/** Port of every scripted socket. */
const PORTID = 4242;
const NLMSG_HDRLEN = 16;

/** One message that the script sends; `seq` is that of the latest request unless given. */
export type ScriptedMessage = {
  readonly type: number;
  readonly flags?: number;
  readonly seq?: number;
  readonly portid?: number;
  readonly payload?: Uint8Array;
};

/** Datagrams that answer one write; an errno instead of one fails the read. */
export type Answer = readonly (readonly ScriptedMessage[] | Uint8Array | number)[];

/** Stands for the kernel: each write takes the next answer, each read one of its datagrams. */
export class ScriptedSocket implements NetlinkSocket {
  readonly portid = PORTID;
  readonly capabilities = { extendedAck: true, cappedAck: true, strictDump: true };
  /** What was written, shared with the sockets that were opened in its place. */
  readonly written: Buffer[];
  readonly events: string[];
  readonly #answers: Answer[];
  #pending: Uint8Array[] = [];
  #errors = new Map<Uint8Array, number>();

  constructor(answers: readonly Answer[], shared?: { written: Buffer[]; events: string[] }) {
    this.#answers = [...answers];
    this.written = shared?.written ?? [];
    this.events = shared?.events ?? [];
  }

  write(bytes: Uint8Array, length: number): void {
    const request = Buffer.from(bytes.slice(0, length));
    this.written.push(request);
    const answer = this.#answers.shift() ?? [];
    for (const datagram of answer) {
      if (typeof datagram === 'number') {
        const marker = new Uint8Array(0);
        this.#errors.set(marker, datagram);
        this.#pending.push(marker);
      } else {
        this.#pending.push(datagram instanceof Uint8Array ? datagram : encodeDatagram(datagram, lastSeq(request)));
      }
    }
  }

  writeInBackground(bytes: Uint8Array): Promise<void> {
    this.write(bytes, bytes.length);
    return Promise.resolve();
  }

  read(buffer: Uint8Array): number {
    const datagram = this.#pending.shift();
    const errno = datagram === undefined ? constants.errno.EAGAIN : this.#errors.get(datagram);
    if (errno !== undefined || datagram === undefined) {
      throw new LibcError('read', errno ?? constants.errno.EAGAIN);
    }
    buffer.set(datagram);
    return datagram.length;
  }

  /** Answers that were not read stay behind, as they do in the kernel. */
  reopen(): NetlinkSocket {
    this.events.push('reopen');
    return new ScriptedSocket(this.#answers, this);
  }

  close(): void {
    this.events.push('close');
  }
}

/** Builds a message; the length is filled in. */
function encodeMessage(message: ScriptedMessage, seq: number): Buffer {
  const payload = message.payload ?? new Uint8Array(0);
  const bytes = Buffer.alloc((NLMSG_HDRLEN + payload.length + 3) & ~3);
  bytes.writeUInt32LE(NLMSG_HDRLEN + payload.length, 0);
  bytes.writeUInt16LE(message.type, 4);
  bytes.writeUInt16LE(message.flags ?? 0, 6);
  bytes.writeUInt32LE(message.seq ?? seq, 8);
  bytes.writeUInt32LE(message.portid ?? PORTID, 12);
  bytes.set(payload, NLMSG_HDRLEN);
  return bytes;
}

/** 32-bit integers as bytes. */
export function int32s(...values: readonly number[]): Uint8Array {
  return new Uint8Array(Int32Array.from(values).buffer);
}

/** An attribute as bytes, padded. */
export function attr(type: number, payload: Uint8Array): Uint8Array {
  const bytes = Buffer.alloc((4 + payload.length + 3) & ~3);
  bytes.writeUInt16LE(4 + payload.length, 0);
  bytes.writeUInt16LE(type, 2);
  bytes.set(payload, 4);
  return bytes;
}

function encodeDatagram(messages: readonly ScriptedMessage[], seq: number): Uint8Array {
  return Buffer.concat(messages.map((message) => encodeMessage(message, seq)));
}

/** Sequence number of the last message of a write. */
function lastSeq(request: Buffer): number {
  let seq = 0;
  for (let at = 0; at + NLMSG_HDRLEN <= request.length; at += (request.readUInt32LE(at) + 3) & ~3) {
    seq = request.readUInt32LE(at + 8);
  }
  return seq;
}
