import { plainText } from '../../../runtime/plain-text.ts';

/**
 * Matches what a line of `ip -batch` cannot contain: control characters, bytes that are not UTF-8, '#', which begins a
 * comment even inside quotes, and a '\' at the end, which joins the next line.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: to find them is what it is for.
const NOT_REPRESENTABLE = /[\u0000-\u001f\u007f-\u009f#\udc80-\udcff]|\\$/u;

/**
 * Renders one line for `ip -batch`. Other programs choose names, labels and aliases; inside a Pod the Pod's own
 * programs do. A line that `ip` would read as another line, or that would end the here-document, becomes a comment.
 * @see ip(8) -batch
 */
export function renderBatchLine(text: string): string {
  if (text.startsWith('#')) return plainText(text);
  return isRepresentable(text) ? text : `# left out, ip -batch cannot express it: ${plainText(text)}`;
}

/** Reports whether a text can be part of a line of `ip -batch`, in quotes if needed. */
export function isRepresentable(text: string): boolean {
  return !NOT_REPRESENTABLE.test(text);
}

/**
 * Quotes a text as one word of `ip -batch`, which supports quotes around a word and no escapes. A text that no quotes
 * can hold gets the comment sign in front, so that its line is left out.
 */
export function batchWord(text: string): string {
  if (text !== '' && !/\s|^['"]/.test(text)) return text;
  if (!text.includes('"')) return `"${text}"`;
  return text.includes("'") ? `#${text}` : `'${text}'`;
}
