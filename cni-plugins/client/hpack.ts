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
