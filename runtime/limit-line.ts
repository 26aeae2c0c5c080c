import { limitText, MAX_TEXT } from './limit-text.ts';

/** Most bytes of a log line, its line feed included. */
const MAX_LINE_BYTES = 32_768;
const MAX_KEY = 100;
/** Bytes for one character of JSON: a control character becomes an escape of six. */
const BYTES_PER_CHARACTER = 6;

/**
 * Returns a finished line of JSON that ends with a line feed, or a shorter one in its place: it keeps the level, the
 * time and the message, and the fields that fit; others are cut texts of their JSON. `cut` has the length of the
 * line before, in characters.
 */
export function limitLine(line: string): string {
  if (line.length * 3 <= MAX_LINE_BYTES || Buffer.byteLength(line) <= MAX_LINE_BYTES) return line;
  const { level, time, msg, ...fields }: Record<string, unknown> = JSON.parse(line);
  const shown: Record<string, unknown> = { level, time };
  const ending = { msg: fitting(String(msg), MAX_TEXT.log), cut: line.length };
  let left = MAX_LINE_BYTES - bytesOf({ ...shown, ...ending });
  for (const [name, value] of Object.entries(fields)) {
    const key = limitText(name, MAX_KEY);
    const whole = bytesOf({ [key]: value });
    const part = whole <= left ? value : fitting(JSON.stringify(value), MAX_TEXT.log);
    const size = bytesOf({ [key]: part });
    if (size > left) break;
    shown[key] = part;
    left -= size;
  }
  return `${JSON.stringify({ ...shown, ...ending })}\n`;
}

/** Cuts a text so that its JSON has at most `maxBytes` bytes or a little more. */
function fitting(text: string, maxBytes: number): string {
  const cut = limitText(text, maxBytes);
  return bytesOf(cut) <= 2 * maxBytes ? cut : limitText(text, Math.floor(maxBytes / BYTES_PER_CHARACTER));
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
