/** A colour or weight of the terminal's own palette: readable on dark and on light backgrounds. */
export type Color = 'red' | 'yellow' | 'green' | 'cyan' | 'dim' | 'bold';

/** Wraps a text into the escape sequences of a colour. Returns it unchanged without colours, or when it is empty. */
export function paint(text: string, color: Color | undefined, isColored: boolean): string {
  if (!isColored || color === undefined || text === '') return text;
  const [on, off] = CODES[color];
  return `\u001b[${on}m${text}\u001b[${off}m`;
}

/** SGR codes that start and end each colour. @see ECMA-48 8.3.117 SGR */
const CODES = {
  red: [31, 39],
  yellow: [33, 39],
  green: [32, 39],
  cyan: [36, 39],
  dim: [2, 22],
  bold: [1, 22],
} as const satisfies Readonly<Record<Color, readonly [number, number]>>;

/** Decides whether to print escape sequences for colour. @see https://no-color.org */
export function usesColor(
  choice: 'auto' | 'always' | 'never',
  isTerminal: boolean,
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  if (choice !== 'auto') return choice === 'always';
  const isRefused = env['NO_COLOR'] !== undefined && env['NO_COLOR'] !== '';
  return isTerminal && !isRefused && env['TERM'] !== 'dumb';
}
