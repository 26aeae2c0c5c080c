import { ByteCollector } from '../../runtime/byte-collector.ts';

/** The frame types that this client sends or reads. @see RFC 9113 section 6 */
export const FRAME = {
  DATA: 0x0,
  HEADERS: 0x1,
  RST_STREAM: 0x3,
  SETTINGS: 0x4,
  PUSH_PROMISE: 0x5,
  PING: 0x6,
  GOAWAY: 0x7,
  WINDOW_UPDATE: 0x8,
} as const;

/** The flags of frames. The value 1 means ACK on SETTINGS and PING, END_STREAM on DATA and HEADERS. */
export const FLAG = { ACK: 0x1, END_STREAM: 0x1, END_HEADERS: 0x4, PADDED: 0x8 } as const;

/** The settings that this client sends or obeys. @see RFC 9113 section 6.5.2 */
export const SETTING = { HEADER_TABLE_SIZE: 1, ENABLE_PUSH: 2, INITIAL_WINDOW_SIZE: 4 } as const;

/** Largest payload that either side may send unless SETTINGS change it; this client never does. Bytes. */
export const MAX_FRAME_BYTES = 16_384;

/** One frame with its decoded header. */
export type Frame = {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
};

/**
 * Encodes one frame.
 *
 * ```
 * length 24 | type 8 | flags 8 | reserved 1, stream 31 | payload
 * ```
 */
export function encodeFrame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  frame.writeUIntBE(payload.length, 0, 3);
  frame.writeUInt8(type, 3);
  frame.writeUInt8(flags, 4);
  frame.writeUInt32BE(streamId, 5);
  frame.set(payload, HEADER_BYTES);
  return frame;
}

/** Encodes the payload of SETTINGS. */
export function encodeSettings(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(settings.length * SETTING_BYTES);
  settings.forEach(([id, value], index) => {
    payload.writeUInt16BE(id, index * SETTING_BYTES);
    payload.writeUInt32BE(value, index * SETTING_BYTES + 2);
  });
  return payload;
}

/** Decodes the payload of SETTINGS; an incomplete last entry is dropped. */
export function decodeSettings(payload: Buffer): readonly (readonly [id: number, value: number])[] {
  const settings: [number, number][] = [];
  for (let at = 0; at + SETTING_BYTES <= payload.length; at += SETTING_BYTES) {
    settings.push([payload.readUInt16BE(at), payload.readUInt32BE(at + 2)]);
  }
  return settings;
}

/** Encodes a 32-bit number: the payload of WINDOW_UPDATE. */
export function encodeUint32(value: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(value);
  return payload;
}

/** Splits a byte stream into frames, whatever chunks it arrives in. */
export class FrameReader {
  /** The frame that is not complete yet; the pieces of one are as small as they may be. */
  readonly #rest = new ByteCollector(Number.MAX_SAFE_INTEGER);
  /** How many bytes the rest must have until it is looked at. */
  #wanted = HEADER_BYTES;

  /** Adds bytes and returns the frames that are complete now, or 'too-large': then the peer does not speak HTTP/2. */
  push(chunk: Uint8Array): readonly Frame[] | 'too-large' {
    this.#rest.append(chunk);
    if (this.#rest.length < this.#wanted) return [];
    const bytes = this.#rest.take();
    const frames: Frame[] = [];
    let at = 0;
    for (;;) {
      this.#wanted = HEADER_BYTES;
      if (bytes.length - at < this.#wanted) break;
      const length = bytes.readUIntBE(at, 3);
      if (length > MAX_FRAME_BYTES) return 'too-large';
      this.#wanted += length;
      if (bytes.length - at < this.#wanted) break;
      frames.push({
        type: bytes.readUInt8(at + 3),
        flags: bytes.readUInt8(at + 4),
        streamId: bytes.readUInt32BE(at + 5) & 0x7fff_ffff,
        payload: bytes.subarray(at + HEADER_BYTES, at + this.#wanted),
      });
      at += this.#wanted;
    }
    this.#rest.append(bytes.subarray(at));
    return frames;
  }
}

const HEADER_BYTES = 9;
const SETTING_BYTES = 6;

/**
 * Encodes headers as HPACK literals without indexing and without Huffman code: the only form that needs no table on
 * either side. It takes some hundred bytes more a call, and no table can get out of step with the peer.
 *
 * @see RFC 7541 section 6.2.2
 */
export function encodeHeaders(headers: readonly (readonly [name: string, value: string])[]): Buffer {
  const chunks: Uint8Array[] = [];
  for (const [name, value] of headers) chunks.push(LITERAL_WITH_NEW_NAME, encodeText(name), encodeText(value));
  return Buffer.concat(chunks);
}

/** 0000: literal without indexing; 0000: the name follows as text. */
const LITERAL_WITH_NEW_NAME = Uint8Array.of(0);

/** Encodes the length with a 7-bit prefix, Huffman bit 0, then the bytes. @see RFC 7541 sections 5.1 and 5.2 */
function encodeText(text: string): Uint8Array {
  const bytes = Buffer.from(text, 'latin1');
  const length: number[] = [];
  if (bytes.length < 127) {
    length.push(bytes.length);
  } else {
    length.push(127);
    let left = bytes.length - 127;
    for (; left >= 128; left = Math.floor(left / 128)) length.push((left % 128) + 128);
    length.push(left);
  }
  return Buffer.concat([Uint8Array.from(length), bytes]);
}
