/**
 * Decodes bytes as UTF-8 without loss: each byte 0x80 to 0xff that is not part of valid UTF-8 becomes the lone surrogate
 * U+DC80 to U+DCFF. The kernel takes names of interfaces, aliases and labels as bytes; so two different names are two
 * different texts, and `encodeByteText` returns the same bytes.
 * @see PEP 383, "surrogateescape"
 */
export function decodeByteText(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    return decodeRuns(bytes);
  }
}

/** Encodes a text of `decodeByteText` as its bytes. Another lone surrogate becomes U+FFFD. */
export function encodeByteText(text: string): Uint8Array {
  if (!hasRawBytes(text)) return ENCODER.encode(text);
  const parts: Uint8Array[] = [];
  for (const part of text.split(RAW_BYTES)) {
    parts.push(RAW_BYTE.test(part) ? Uint8Array.from(part, (unit) => unit.charCodeAt(0) & 0xff) : ENCODER.encode(part));
  }
  return Buffer.concat(parts);
}

/** Reports whether a text has bytes that are not UTF-8. */
export function hasRawBytes(text: string): boolean {
  return RAW_BYTE.test(text);
}

/**
 * Renders a text of `decodeByteText` as valid Unicode: a byte that is not UTF-8 is shown as `\xff`. For logs, documents,
 * messages and answers of the API. A name that has these four characters literally looks the same.
 */
export function showByteText(text: string): string {
  return RAW_BYTE.test(text) ? text.replace(RAW_BYTE_EACH, (unit) => `\\x${hexOf(unit.charCodeAt(0) & 0xff)}`) : text;
}

/**
 * As `showByteText`, for a text that JSON.stringify made. It writes a lone surrogate as `\udcff`, which many readers
 * refuse or replace.
 */
export function showBytesInJson(json: string): string {
  return json.includes('\\udc') ? json.replace(ESCAPED_BYTE, '$1\\\\x$2') : json;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const ENCODER = new TextEncoder();
/** With the flag `u` a surrogate of a pair does not match: it is half of a character, not a byte. */
const RAW_BYTE = /[\udc80-\udcff]/u;
const RAW_BYTE_EACH = /[\udc80-\udcff]/gu;
const RAW_BYTES = /([\udc80-\udcff]+)/u;
/** JSON escapes a backslash by a second one: an even number of them in front of `\u` belongs to the text. */
const ESCAPED_BYTE = /(?<!\\)((?:\\\\)*)\\udc([89a-f][0-9a-f])/g;

function hexOf(byte: number): string {
  return byte.toString(16).padStart(2, '0');
}

function decodeRuns(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; ) {
    const size = sequenceLength(bytes, at);
    text += size === 0 ? String.fromCharCode(0xdc00 | (bytes[at] ?? 0)) : UTF8.decode(bytes.subarray(at, at + size));
    at += Math.max(size, 1);
  }
  return text;
}

/** Returns how many bytes the character at `at` has; 0 when no valid character begins there. */
function sequenceLength(bytes: Uint8Array, at: number): number {
  const first = bytes[at] ?? 0;
  const size = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  try {
    return [...UTF8.decode(bytes.subarray(at, at + size))].length === 1 ? size : 0;
  } catch {
    return 0;
  }
}
