import { showByteText } from './byte-text.ts';

/**
 * Makes a text safe to show in one line. Control characters, which could move the cursor or change the terminal, format
 * characters, which are invisible or change the text direction, and bytes that are not UTF-8 are shown as `\x1b`,
 * `\u202e` and `\xff`. Other programs and people choose the names of links, aliases, Pods and hosts.
 * @see Unicode, general categories Cc, Cf, Zl and Zp
 */
export function plainText(text: string): string {
  return SPECIAL.test(text) ? showByteText(text.replace(SPECIALS, showCharacter)) : text;
}

/** Makes a text of several lines safe to show; line breaks stay. */
export function plainLines(text: string): string {
  return SPECIAL.test(text) ? text.split('\n').map(plainText).join('\n') : text;
}

const SPECIAL = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\udc80-\udcff]/u;
const SPECIALS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

function showCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  if (code < 0x80) return `\\x${digits.padStart(2, '0')}`;
  return code > 0xffff ? `\\u{${digits}}` : `\\u${digits.padStart(4, '0')}`;
}
