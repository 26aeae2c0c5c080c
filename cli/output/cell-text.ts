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
