import { showByteText } from '../../runtime/byte-text.ts';

/**
 * Makes a text safe to print in one line. Control characters, which could move the cursor or change the terminal,
 * characters that change the text direction, and bytes that are not UTF-8 are shown as `\x1b`, `\u202e` and `\xff`.
 * Other programs choose the names of links, aliases and Pods.
 */
export function plainText(text: string): string {
  return CONTROL.test(text) ? showByteText(text.replace(CONTROLS, showCharacter)) : text;
}

function showCharacter(character: string): string {
  const code = character.charCodeAt(0);
  return code < 0x80 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** Makes a text of several lines safe to print; line breaks stay. */
export function plainLines(text: string): string {
  return CONTROL.test(text) ? text.split('\n').map(plainText).join('\n') : text;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: to find them is what it is for.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069\udc80-\udcff]/u;
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** Counts the columns of a text, without escape sequences; East Asian wide characters take two. */
export function textWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const char of text.replace(SGR, '')) width += charWidth(char.codePointAt(0) ?? 0);
  return width;
}

/** Cuts a text to a width and ends it with '…' when it was longer. */
export function cutText(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  if (width <= 1) return width === 1 ? '…' : '';
  let cut = '';
  let used = 0;
  for (const char of text) {
    const next = charWidth(char.codePointAt(0) ?? 0);
    if (used + next > width - 1) break;
    cut += char;
    used += next;
  }
  return `${cut}…`;
}

/** Pads a text to a width, by default on the right. */
export function padText(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  const padding = width - textWidth(text);
  if (padding <= 0) return text;
  return align === 'left' ? text + ' '.repeat(padding) : ' '.repeat(padding) + text;
}

const ASCII = /^[\u0020-\u007e]*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character begins each sequence.
const SGR = /\u001b\[[0-9;]*m/g;

/** Returns the number of columns of a character. @see Unicode Standard Annex #11, classes W and F, simplified */
function charWidth(code: number): number {
  if (code >= 0x300 && code <= 0x36f) return 0;
  const isWide =
    (code >= 0x1100 && code <= 0x115f) ||
    (code >= 0x2e80 && code <= 0xa4cf) ||
    (code >= 0xac00 && code <= 0xd7a3) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0xfe30 && code <= 0xfe6f) ||
    (code >= 0xff00 && code <= 0xff60) ||
    (code >= 0xffe0 && code <= 0xffe6) ||
    (code >= 0x1f300 && code <= 0x1faff) ||
    (code >= 0x20000 && code <= 0x3fffd);
  return isWide ? 2 : 1;
}
