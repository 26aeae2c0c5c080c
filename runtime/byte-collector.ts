import type { Readable } from 'node:stream';
import { finished } from 'node:stream';

/** Why a collector takes no more: too many bytes, or too many pieces for so few bytes. */
type Overflow = 'too-many-bytes' | 'too-many-pieces';

/** Pieces that cost nothing: what a slow sender of a small message may need. */
const FREE_PIECES = 16_384;
/** Least bytes of a further piece, on average. Each costs some microseconds, however small it is. */
const PIECE_BYTES = 256;

/** Counts the pieces in which a message comes. */
export class PieceCounter {
  readonly #free: number;
  #pieces = 0;
  #bytes = 0;

  /** @param free pieces that are not held against their size */
  constructor(free = FREE_PIECES) {
    this.#free = free;
  }

  /** Counts one more; returns true when they are too many for their bytes. */
  add(bytes: number): boolean {
    this.#pieces += 1;
    this.#bytes += bytes;
    return this.#pieces > this.#free + this.#bytes / PIECE_BYTES;
  }
}

/**
 * Collects bytes that come in pieces into one buffer, which doubles when it is full. The sender chooses the pieces: a buffer
 * kept for each would take a hundred bytes or more for one byte, and hold the memory that the piece was read into.
 */
export class ByteCollector {
  readonly #maxBytes: number;
  #buffer: Buffer<ArrayBuffer>;
  #length = 0;
  #pieces = new PieceCounter();

  /**
   * @param maxBytes most bytes that it takes
   * @param spare where it collects as long as that is large enough; `take` may return a part of it
   */
  constructor(maxBytes: number, spare: Buffer<ArrayBuffer> = EMPTY) {
    this.#maxBytes = maxBytes;
    this.#buffer = spare;
  }

  /** Bytes collected. */
  get length(): number {
    return this.#length;
  }

  /** Returns by how many bytes the buffer will grow for a piece of so many bytes. */
  growthFor(bytes: number): number {
    const needed = this.#length + bytes;
    if (needed <= this.#buffer.length) return 0;
    return Math.max(needed, Math.min(2 * this.#buffer.length, this.#maxBytes)) - this.#buffer.length;
  }

  /** Copies a piece; returns why it does not, else undefined. */
  append(piece: Uint8Array): Overflow | undefined {
    if (this.#length + piece.length > this.#maxBytes) return 'too-many-bytes';
    if (this.#pieces.add(piece.length)) return 'too-many-pieces';
    const growth = this.growthFor(piece.length);
    if (growth > 0) {
      const grown = Buffer.allocUnsafeSlow(this.#buffer.length + growth);
      grown.set(this.#buffer.subarray(0, this.#length));
      this.#buffer = grown;
    }
    this.#buffer.set(piece, this.#length);
    this.#length += piece.length;
    return undefined;
  }

  /** Returns the bytes and begins again. */
  take(): Buffer<ArrayBuffer> {
    const bytes = this.#buffer.subarray(0, this.#length);
    this.#buffer = EMPTY;
    this.#length = 0;
    this.#pieces = new PieceCounter();
    return bytes;
  }
}

const EMPTY = Buffer.alloc(0);

/**
 * Buffers that were read and are used again. One made for each message, and doubled until it is large enough, leaves holes in
 * the memory of the process that are never given back: 80 MiB of a scheduler extender with 5,000 nodes.
 */
export class SpareBuffers {
  readonly #maxCount: number;
  readonly #maxBytes: number;
  readonly #spare: Buffer<ArrayBuffer>[] = [];

  /** @param maxBytes most bytes of one that is kept */
  constructor(maxCount: number, maxBytes: number) {
    this.#maxCount = maxCount;
    this.#maxBytes = maxBytes;
  }

  /** Returns one that was given back, else an empty one. */
  take(): Buffer<ArrayBuffer> {
    return this.#spare.pop() ?? EMPTY;
  }

  /** Gives one back, or a part of it. Nobody may read it afterwards. */
  giveBack(part: Buffer<ArrayBuffer>): void {
    const { buffer } = part;
    const isUseful = buffer.byteLength > 0 && buffer.byteLength <= this.#maxBytes;
    if (isUseful && this.#spare.length < this.#maxCount) this.#spare.push(Buffer.from(buffer));
  }
}

/**
 * Collects a stream until its end. Resolves with why it was not read further, else with undefined; what is unread stays in
 * the stream.
 * @param mayGrow asked before the buffer grows, in bytes
 * @throws the error of the stream, and of one that ends before its end
 */
export function collectStream(
  stream: Readable,
  into: ByteCollector,
  mayGrow: (bytes: number) => boolean = () => true,
): Promise<Overflow | 'refused' | undefined> {
  return new Promise((resolve, reject) => {
    const stopWatching = finished(stream, { writable: false }, (error) => (error ? reject(error) : resolve(undefined)));
    // Not by `for await`, which takes ten times as long for a piece.
    const take = (piece: Buffer): void => {
      const growth = into.growthFor(piece.length);
      const why = growth > 0 && !mayGrow(growth) ? 'refused' : into.append(piece);
      if (why === undefined) return;
      stream.off('data', take).pause();
      stopWatching();
      resolve(why);
    };
    stream.on('data', take);
  });
}
