import {
  decodeSettings,
  encodeFrame,
  encodeSettings,
  encodeUint32,
  FLAG,
  FRAME,
  type Frame,
  FrameReader,
  MAX_FRAME_BYTES,
  SETTING,
} from './frames.ts';
import { encodeHeaders } from './hpack.ts';

/**
 * Holds one gRPC call over one HTTP/2 connection of its own, as bytes in and bytes out.
 *
 * Header blocks of the answer are skipped, never decoded: every reply of the agent carries its outcome in the message,
 * so `grpc-status` has nothing to add. An answer without a message is a failure, whatever its headers say.
 *
 * ```
 * start() ──> waiting ──message complete──> answered ──END_STREAM, close──> done
 *                └──RST_STREAM, GOAWAY, END_STREAM, close, no HTTP/2──> failed
 * ```
 */
export class Exchange {
  readonly #call: Call;
  readonly #reader = new FrameReader();
  readonly #reply: Buffer[] = [];
  #replyBytes = 0;
  /** What of the request the peer's windows have not let through yet. */
  #unsent: Buffer;
  #connectionWindow = DEFAULT_WINDOW_BYTES;
  #streamWindow = DEFAULT_WINDOW_BYTES;
  #initialWindow = DEFAULT_WINDOW_BYTES;
  #outcome: Outcome | undefined;

  constructor(call: Call) {
    this.#call = call;
    const prefix = Buffer.alloc(PREFIX_BYTES);
    prefix.writeUInt32BE(call.request.length, 1);
    this.#unsent = Buffer.concat([prefix, call.request]);
  }

  /** Is set once the call is over; bytes that come later change nothing. */
  get outcome(): Outcome | undefined {
    return this.#outcome;
  }

  /** Returns what to send first. Call once. */
  start(): Buffer {
    // The reply's bound as window: the peer never has to wait for an update of ours, so we never send one.
    const settings = encodeSettings([
      [SETTING.HEADER_TABLE_SIZE, 0],
      [SETTING.ENABLE_PUSH, 0],
      [SETTING.INITIAL_WINDOW_SIZE, MAX_REPLY_BYTES],
    ]);
    const headers = encodeHeaders([
      [':method', 'POST'],
      [':scheme', 'http'],
      [':path', this.#call.path],
      [':authority', 'localhost'],
      ['te', 'trailers'],
      ['content-type', 'application/grpc+proto'],
      ['user-agent', this.#call.userAgent],
      // At most eight digits, says gRPC; our bounds are far below.
      ['grpc-timeout', `${Math.min(this.#call.timeoutMs, 99_999_999)}m`],
    ]);
    return Buffer.concat([
      PREFACE,
      encodeFrame(FRAME.SETTINGS, 0, 0, settings),
      encodeFrame(FRAME.WINDOW_UPDATE, 0, 0, encodeUint32(MAX_REPLY_BYTES)),
      encodeFrame(FRAME.HEADERS, FLAG.END_HEADERS, STREAM_ID, headers),
      this.#flush(),
    ]);
  }

  /** Takes bytes of the peer; returns what to send back, possibly nothing. */
  receive(chunk: Uint8Array): Buffer {
    const answers: Uint8Array[] = [];
    const frames = this.#reader.push(chunk);
    if (frames === 'too-large') {
      this.#fail('PROTOCOL', 'what answers there speaks no HTTP/2');
      return EMPTY;
    }
    for (const frame of frames) {
      if (this.#outcome !== undefined) break;
      answers.push(this.#onFrame(frame));
    }
    return Buffer.concat(answers);
  }

  /** Takes note that no more bytes will come. A reply that is complete by then counts: the outcome is in it. */
  end(failure: FailureKind, reason: string): void {
    const message = this.#message();
    if (message === undefined) this.#fail(failure, reason);
    else this.#outcome ??= { kind: 'message', message };
  }

  #onFrame(frame: Frame): Buffer {
    const { type, flags, streamId, payload } = frame;
    const isAck = (flags & FLAG.ACK) !== 0;
    switch (type) {
      case FRAME.SETTINGS:
        return isAck ? EMPTY : this.#onSettings(payload);
      case FRAME.PING:
        return isAck ? EMPTY : encodeFrame(FRAME.PING, FLAG.ACK, 0, payload);
      case FRAME.WINDOW_UPDATE:
        return this.#onWindowUpdate(streamId, payload);
      case FRAME.GOAWAY:
        return this.#onGoaway(payload);
      case FRAME.RST_STREAM:
        if (streamId === STREAM_ID)
          this.end('CLOSED', `the agent reset the call (HTTP/2 error ${readUint32(payload, 0)})`);
        return EMPTY;
      case FRAME.PUSH_PROMISE:
        this.#fail('PROTOCOL', 'it pushes, although we forbade it');
        return EMPTY;
      case FRAME.DATA:
        if (streamId === STREAM_ID) this.#onData(flags, payload);
        break;
      default:
        // HEADERS, CONTINUATION, PRIORITY and frames not yet invented: nothing in them concerns us but the end.
        break;
    }
    const ends = (type === FRAME.DATA || type === FRAME.HEADERS) && (flags & FLAG.END_STREAM) !== 0;
    if (ends && streamId === STREAM_ID) this.#onEndStream();
    return EMPTY;
  }

  #onData(flags: number, payload: Buffer): void {
    const isPadded = (flags & FLAG.PADDED) !== 0;
    const padding = isPadded ? 1 + (payload[0] ?? 0) : 0;
    if (padding > payload.length) {
      this.#fail('PROTOCOL', 'a frame of padding alone');
      return;
    }
    const data = payload.subarray(isPadded ? 1 : 0, payload.length - (isPadded ? padding - 1 : 0));
    if (data.length === 0) return;
    this.#replyBytes += data.length;
    this.#reply.push(data);
    // The first byte says whether the message is compressed, which we did not offer to take.
    if (this.#reply[0]?.[0] !== 0) this.#fail('PROTOCOL', 'the answer is no plain gRPC message');
    else if (this.#replyBytes > MAX_REPLY_BYTES) this.#fail('PROTOCOL', `an answer above ${MAX_REPLY_BYTES} bytes`);
  }

  #onEndStream(): void {
    this.end('NO_MESSAGE', 'it answered without a message: it is stopping, or of a release without this call');
  }

  #onSettings(payload: Buffer): Buffer {
    for (const [id, value] of decodeSettings(payload)) {
      if (id !== SETTING.INITIAL_WINDOW_SIZE) continue;
      // What is already sent stays counted, so the window may become negative. RFC 9113 section 6.9.2.
      this.#streamWindow += value - this.#initialWindow;
      this.#initialWindow = value;
    }
    return Buffer.concat([encodeFrame(FRAME.SETTINGS, FLAG.ACK, 0, EMPTY), this.#flush()]);
  }

  #onWindowUpdate(streamId: number, payload: Buffer): Buffer {
    const increment = readUint32(payload, 0) & 0x7fff_ffff;
    if (streamId === 0) this.#connectionWindow += increment;
    else if (streamId === STREAM_ID) this.#streamWindow += increment;
    return this.#flush();
  }

  #onGoaway(payload: Buffer): Buffer {
    const lastStreamId = readUint32(payload, 0) & 0x7fff_ffff;
    // An agent that drains announces it and still answers what it has begun.
    if (lastStreamId < STREAM_ID) this.end('CLOSED', `the agent is closing (HTTP/2 error ${readUint32(payload, 4)})`);
    return EMPTY;
  }

  /** Returns DATA frames for as much of the request as the windows allow. */
  #flush(): Buffer {
    const frames: Buffer[] = [];
    for (;;) {
      const bytes = Math.min(this.#unsent.length, this.#connectionWindow, this.#streamWindow, MAX_FRAME_BYTES);
      if (bytes <= 0) return Buffer.concat(frames);
      const data = this.#unsent.subarray(0, bytes);
      this.#unsent = this.#unsent.subarray(bytes);
      this.#connectionWindow -= bytes;
      this.#streamWindow -= bytes;
      frames.push(encodeFrame(FRAME.DATA, this.#unsent.length === 0 ? FLAG.END_STREAM : 0, STREAM_ID, data));
    }
  }

  /** Returns the reply once all of it is there. */
  #message(): Buffer | undefined {
    const reply = Buffer.concat(this.#reply);
    if (reply.length < PREFIX_BYTES || reply[0] !== 0) return undefined;
    const end = PREFIX_BYTES + reply.readUInt32BE(1);
    return reply.length < end ? undefined : reply.subarray(PREFIX_BYTES, end);
  }

  #fail(kind: FailureKind, reason: string): void {
    this.#outcome ??= { kind: 'failure', failure: kind, reason };
  }
}

/** Describes a call. */
export type Call = {
  /** `/package.Service/Method`. */
  readonly path: string;
  /** The encoded message. */
  readonly request: Uint8Array;
  /** What the server is told; the caller keeps the time itself. */
  readonly timeoutMs: number;
  readonly userAgent: string;
};

/** Says how a call went: the encoded reply, or why there is none. */
export type Outcome =
  | { readonly kind: 'message'; readonly message: Buffer }
  | { readonly kind: 'failure'; readonly failure: FailureKind; readonly reason: string };

/**
 * Names the ways to get no answer. UNREACHABLE: nothing was sent. DEADLINE: the agent took the call and was silent.
 * CLOSED: it hung up. NO_MESSAGE: it ended the call without a message. PROTOCOL: what answers is no agent.
 */
export type FailureKind = 'UNREACHABLE' | 'DEADLINE' | 'CLOSED' | 'NO_MESSAGE' | 'PROTOCOL';

/** Bytes of the longest reply that we take: a CHECK of a thousand differences fits many times over. */
export const MAX_REPLY_BYTES = 4 * 1024 * 1024;

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
/** The first stream that a client may open, and our only one. */
const STREAM_ID = 1;
/** gRPC's message prefix: one byte "compressed", four of length. */
const PREFIX_BYTES = 5;
/** RFC 9113 section 6.9.2. */
const DEFAULT_WINDOW_BYTES = 65_535;
const EMPTY = Buffer.alloc(0);

/** Reads a number that a malformed frame may lack. */
function readUint32(payload: Buffer, offset: number): number {
  return payload.length >= offset + 4 ? payload.readUInt32BE(offset) : 0;
}
