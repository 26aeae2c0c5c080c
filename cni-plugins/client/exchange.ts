import { ByteCollector } from '../../runtime/byte-collector.ts';
import {
  decodeSettings,
  encodeFrame,
  encodeHeaders,
  encodeSettings,
  encodeUint32,
  FLAG,
  FRAME,
  type Frame,
  FrameReader,
  MAX_FRAME_BYTES,
  SETTING,
} from './frames.ts';

/**
 * One gRPC call over an HTTP/2 connection of its own, as bytes in and bytes out.
 *
 * Header blocks of the answer are skipped, never decoded. Every reply of the agent contains its outcome in the message,
 * so `grpc-status` adds nothing. An answer without a message is a failure, whatever its headers contain.
 *
 * ```
 * start() ──> waiting ──message complete──> answered ──END_STREAM, close──> done
 *                └──RST_STREAM, GOAWAY, END_STREAM, close, no HTTP/2──> failed
 * ```
 */
export class Exchange {
  readonly #call: Call;
  readonly #reader = new FrameReader();
  readonly #reply = new ByteCollector(MAX_REPLY_BYTES);
  /** Frames received that are no part of the reply. */
  #controlFrames = 0;
  /** The part of the request that the peer's flow-control windows do not allow yet. */
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

  /** The outcome, set when the call has ended; later bytes do not change it. */
  get outcome(): Outcome | undefined {
    return this.#outcome;
  }

  /** Returns the first bytes to send. Call once. */
  start(): Buffer {
    return Buffer.concat([encodeOpening(this.#call), this.#flush()]);
  }

  /** Processes received bytes; returns the bytes to send back, possibly none. */
  receive(chunk: Uint8Array): Buffer {
    const answers: Uint8Array[] = [];
    const frames = this.#reader.push(chunk);
    if (frames === 'too-large') {
      this.#fail('PROTOCOL', 'what answers there does not use HTTP/2');
      return EMPTY;
    }
    for (const frame of frames) {
      if (this.#outcome !== undefined) break;
      answers.push(this.#onFrame(frame));
    }
    return Buffer.concat(answers);
  }

  /** Processes the end of the stream. A reply that is complete by then is valid: it contains the outcome. */
  end(failure: FailureKind, reason: string): void {
    const message = this.#message();
    if (message === undefined) this.#fail(failure, reason);
    else this.#outcome ??= { kind: 'message', message };
  }

  #onFrame(frame: Frame): Buffer {
    const { type, flags, streamId, payload } = frame;
    const isAck = (flags & FLAG.ACK) !== 0;
    const isReply = type === FRAME.DATA && streamId === STREAM_ID && payload.length > 0;
    if (!isReply && ++this.#controlFrames > MAX_CONTROL_FRAMES) {
      this.#fail('PROTOCOL', `more than ${MAX_CONTROL_FRAMES} frames that are no answer`);
      return EMPTY;
    }
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
        // HEADERS, CONTINUATION, PRIORITY and unknown frames: only the END_STREAM flag in them matters.
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
    // The first byte tells whether the message is compressed. This client does not offer compression.
    if (this.#reply.length === 0 && data[0] !== 0) this.#fail('PROTOCOL', 'the answer is no plain gRPC message');
    const why = this.#reply.append(data);
    if (why === 'too-many-bytes') this.#fail('PROTOCOL', `an answer above ${MAX_REPLY_BYTES} bytes`);
    if (why === 'too-many-pieces') this.#fail('PROTOCOL', 'an answer in too many pieces');
  }

  #onEndStream(): void {
    this.end('NO_MESSAGE', 'it answered without a message: it is stopping, or of a release without this call');
  }

  #onSettings(payload: Buffer): Buffer {
    for (const [id, value] of decodeSettings(payload)) {
      if (id !== SETTING.INITIAL_WINDOW_SIZE) continue;
      // Bytes that are already sent still count, so the window may become negative. RFC 9113 section 6.9.2.
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
    // A draining agent announces the end and still answers the calls that it has begun.
    if (lastStreamId < STREAM_ID) this.end('CLOSED', `the agent is closing (HTTP/2 error ${readUint32(payload, 4)})`);
    return EMPTY;
  }

  /** Returns DATA frames with as much of the request as the windows allow. */
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

  /** Returns the reply when it is complete. */
  #message(): Buffer | undefined {
    const reply = this.#reply.take();
    if (reply.length < PREFIX_BYTES || reply[0] !== 0) return undefined;
    const end = PREFIX_BYTES + reply.readUInt32BE(1);
    return reply.length < end ? undefined : reply.subarray(PREFIX_BYTES, end);
  }

  #fail(kind: FailureKind, reason: string): void {
    this.#outcome ??= { kind: 'failure', failure: kind, reason };
  }
}

/** A call to make. */
export type Call = {
  /** `/package.Service/Method`. */
  readonly path: string;
  /** The encoded request message. */
  readonly request: Uint8Array;
  /** The time limit that the server is given; the caller enforces it itself. */
  readonly timeoutMs: number;
  readonly userAgent: string;
};

/** The outcome of a call: the encoded reply, or the kind of failure and its reason. */
type Outcome =
  | { readonly kind: 'message'; readonly message: Buffer }
  | { readonly kind: 'failure'; readonly failure: FailureKind; readonly reason: string };

/**
 * The kinds of failure. UNREACHABLE: nothing was sent. DEADLINE: the agent accepted the call and did not answer in
 * time. CLOSED: it closed the connection. NO_MESSAGE: it ended the call without a message. PROTOCOL: the peer is not an
 * agent.
 */
export type FailureKind = 'UNREACHABLE' | 'DEADLINE' | 'CLOSED' | 'NO_MESSAGE' | 'PROTOCOL';

/**
 * Encodes what a client sends before its message: the connection preface, SETTINGS and the headers of the call. The
 * launcher, a program in C, gets these bytes when it is built.
 */
export function encodeOpening({ path, userAgent, timeoutMs }: Omit<Call, 'request'>): Buffer {
  // The window equals the size limit of a reply. The peer never waits for a window update, so none is ever sent.
  const settings = encodeSettings([
    [SETTING.HEADER_TABLE_SIZE, 0],
    [SETTING.ENABLE_PUSH, 0],
    [SETTING.INITIAL_WINDOW_SIZE, MAX_REPLY_BYTES],
  ]);
  const headers = encodeHeaders([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    [':authority', 'localhost'],
    ['te', 'trailers'],
    ['content-type', 'application/grpc+proto'],
    ['user-agent', userAgent],
    // gRPC allows at most eight digits; the time limits are far below.
    ['grpc-timeout', `${Math.min(timeoutMs, 99_999_999)}m`],
  ]);
  return Buffer.concat([
    PREFACE,
    encodeFrame(FRAME.SETTINGS, 0, 0, settings),
    encodeFrame(FRAME.WINDOW_UPDATE, 0, 0, encodeUint32(MAX_REPLY_BYTES)),
    encodeFrame(FRAME.HEADERS, FLAG.END_HEADERS, STREAM_ID, headers),
  ]);
}

/** Longest reply that is accepted, bytes: many times a CHECK with a thousand differences. */
export const MAX_REPLY_BYTES = 4 * 1024 * 1024;

/**
 * Most frames beside the reply: SETTINGS, PING, WINDOW_UPDATE, headers. A request of 16 MiB takes a thousand; a peer that sends
 * more would keep the call busy until its deadline.
 */
const MAX_CONTROL_FRAMES = 10_000;
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
/** The first stream that a client may open, and the only one here. */
const STREAM_ID = 1;
/** Bytes of gRPC's message prefix: one byte "compressed", four of length. */
const PREFIX_BYTES = 5;
/** Initial window by RFC 9113 section 6.9.2. */
const DEFAULT_WINDOW_BYTES = 65_535;
const EMPTY = Buffer.alloc(0);

/** Reads a number at an offset; 0 when a malformed frame is too short. */
function readUint32(payload: Buffer, offset: number): number {
  return payload.length >= offset + 4 ? payload.readUInt32BE(offset) : 0;
}
