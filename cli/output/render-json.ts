import { showBytesInJson } from '../../runtime/byte-text.ts';

/**
 * Renders one JSON document: indented for people, compact for programs; ends with a newline. For a terminal, control
 * characters that JSON allows are escaped, since some terminals interpret them.
 */
export function renderJson(value: unknown, isTerminal: boolean): string {
  if (!isTerminal) return `${jsonText(value)}\n`;
  return `${jsonText(value, 2).replace(CONTROLS, escapeUnits)}\n`;
}

/** As JSON.stringify; a byte of a name that is not UTF-8 is shown as `\xff`. @param indent columns; 0: one line */
export function jsonText(value: unknown, indent = 0): string {
  return showBytesInJson(JSON.stringify(value, null, indent));
}

/**
 * Matches DEL, the C1 set, and format characters, some of which change the text direction; JSON.stringify escapes the others.
 * @see RFC 8259, section 7
 */
const CONTROLS = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;

/** JSON has escapes of UTF-16 units: a character beyond them takes two. */
function escapeUnits(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}
