/**
 * Renders one JSON document: indented for people, compact for programs; ends with a newline. For a terminal, control
 * characters that JSON allows are escaped, since some terminals interpret them.
 */
export function renderJson(value: unknown, isTerminal: boolean): string {
  if (!isTerminal) return `${JSON.stringify(value)}\n`;
  return `${JSON.stringify(value, null, 2).replace(CONTROLS, escapeUnit)}\n`;
}

/**
 * Matches DEL, the C1 set, and characters that change the text direction; JSON.stringify escapes the others.
 * @see RFC 8259, section 7
 */
const CONTROLS = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

function escapeUnit(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
