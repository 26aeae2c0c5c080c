/** One HTTP/2 frame. @see RFC 9113 section 4.1 */
type Http2Frame = {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
};

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const HEADER_BYTES = 9;
const DATA = 0;
const HEADERS = 1;
/** gRPC's prefix of a message: one byte "compressed", four of length. */
const PREFIX_BYTES = 5;

/** Cuts what a client or a server sent into its frames; an incomplete last one is left out. */
export function framesOf(bytes: Buffer): readonly Http2Frame[] {
  const start = bytes.toString('latin1', 0, PREFACE.length) === PREFACE ? PREFACE.length : 0;
  const frames: Http2Frame[] = [];
  for (let at = start; at + HEADER_BYTES <= bytes.length; ) {
    const end = at + HEADER_BYTES + bytes.readUIntBE(at, 3);
    if (end > bytes.length) break;
    frames.push({
      type: bytes.readUInt8(at + 3),
      flags: bytes.readUInt8(at + 4),
      streamId: bytes.readUInt32BE(at + 5),
      payload: bytes.subarray(at + HEADER_BYTES, end),
    });
    at = end;
  }
  return frames;
}

/** Returns the first gRPC message in the DATA frames; undefined while it is not whole. */
export function messageIn(bytes: Buffer): Buffer | undefined {
  const data = Buffer.concat(framesOf(bytes).flatMap(({ type, payload }) => (type === DATA ? [payload] : [])));
  if (data.length < PREFIX_BYTES) return undefined;
  const end = PREFIX_BYTES + data.readUInt32BE(1);
  return data.length < end ? undefined : data.subarray(PREFIX_BYTES, end);
}

/** Reads headers that are literals without an index and without Huffman code. @see RFC 7541 section 6.2.2 */
export function plainHeadersIn(bytes: Buffer): readonly (readonly [name: string, value: string])[] {
  const [frame] = framesOf(bytes).filter(({ type }) => type === HEADERS);
  const block = frame?.payload ?? Buffer.alloc(0);
  const headers: [string, string][] = [];
  let at = 0;
  const text = (): string => {
    const length = block.readUInt8(at++);
    if (length >= 127) throw new Error('longer than these headers are');
    at += length;
    return block.toString('latin1', at - length, at);
  };
  while (at < block.length) {
    if (block.readUInt8(at++) !== 0) throw new Error('no literal without an index');
    headers.push([text(), text()]);
  }
  return headers;
}
