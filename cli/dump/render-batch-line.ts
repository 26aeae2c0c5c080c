import { plainText } from '../output/cell-text.ts';

/** What cannot stand in a line of `ip -batch`: control characters, the sign that begins a comment even in quotes, a joined line. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: to find them is what it is for.
const UNSAYABLE = /[\u0000-\u001f\u007f-\u009f#]|\\$/;

/**
 * Renders one line for `ip -batch`. Names, labels and aliases are written by others, those inside of a Pod by whoever is in
 * it: a line that would be read as another one, or end the here-document, becomes a comment. Pure. @see ip(8) -batch
 */
export function renderBatchLine(text: string): string {
  if (text.startsWith('#')) return plainText(text);
  return isSayable(text) ? text : `# left out, no line of ip can say it: ${plainText(text)}`;
}

/** Tells whether a text can stand in a line of `ip -batch`, in quotes if need be. Pure. */
export function isSayable(text: string): boolean {
  return !UNSAYABLE.test(text);
}

/**
 * Spells a text as one word of `ip -batch`, which knows quotes around a word and no escapes. One that no quotes can hold gets
 * the sign of a comment, so that its line is left out. Pure.
 */
export function batchWord(text: string): string {
  if (text !== '' && !/\s|^['"]/.test(text)) return text;
  if (!text.includes('"')) return `"${text}"`;
  return text.includes("'") ? `#${text}` : `'${text}'`;
}
