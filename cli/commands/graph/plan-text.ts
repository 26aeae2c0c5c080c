import { showByteText } from '../../../runtime/byte-text.ts';

/**
 * Returns an upper bound of the width of a text in pixels: a layout is planned without access to fonts. The numbers are
 * those of DejaVu Sans and DejaVu Sans Mono, the widest fonts that browsers commonly use for `sans-serif` and
 * `monospace`.
 */
function textWidth(text: string, font: TextFont): number {
  const em = [...text].reduce((sum, character) => sum + emOf(character, font.kind), 0);
  return em * font.px * (font.isBold && font.kind === 'sans' ? 1.13 : 1);
}

/** A font and its size in pixels. */
export type TextFont = { readonly kind: 'sans' | 'mono'; readonly px: number; readonly isBold?: boolean };

/** Cuts a text to `width` pixels and marks the cut with an ellipsis. Control characters and line ends become spaces. */
export function fitText(text: string, width: number, font: TextFont): string {
  const clean = oneLine(text);
  if (textWidth(clean, font) <= width) return clean;
  const kept: string[] = [];
  let used = textWidth('…', font);
  for (const character of clean) {
    used += textWidth(character, font);
    if (used > width) break;
    kept.push(character);
  }
  return `${kept.join('').trimEnd()}…`;
}

/**
 * Makes one visible line of any text. Characters that break a line, are invisible or change the text direction become
 * replacement characters.
 */
function oneLine(text: string): string {
  return showByteText(text).replace(/\s+/gu, ' ').replace(INVISIBLE, '\ufffd').trim();
}

/** Breaks a text into lines of at most `width` pixels, between words where it can. */
export function wrapText(text: string, width: number, font: TextFont): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of oneLine(text).split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (textWidth(longer, font) <= width) {
      line = longer;
      continue;
    }
    if (line !== '') lines.push(line);
    line = word;
    while (textWidth(line, font) > width) {
      const head = fitText(line, width, font).slice(0, -1);
      if (head === '') break;
      lines.push(head);
      line = line.slice(head.length);
    }
  }
  return line === '' ? lines : [...lines, line];
}

/**
 * Matches control and format characters, bidirectional overrides and lone surrogates.
 * @see Unicode, general category C
 */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}]/gu;

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u;

function emOf(character: string, kind: 'sans' | 'mono'): number {
  if (WIDE.test(character)) return 1.3;
  if (kind === 'mono') return 0.603;
  if (/[\x20-\x7e]/.test(character)) return SANS_EM[character] ?? 0.64;
  return 0.9;
}

/** Widths of characters, in em, where they differ much from that of most letters. */
const SANS_EM: Readonly<Record<string, number>> = Object.fromEntries(
  Object.entries({
    0.28: "ijl'",
    0.34: ' .,:;|/\\I',
    0.4: '-()[]ftr"`!J',
    0.6: 'csxyvzk_?*LT',
    0.7: 'ABCEFKPRSVXYZ',
    0.79: 'DGHNOQU&',
    0.84: '+<>=~^#w',
    1.01: 'mMW@%',
  }).flatMap(([em, characters]) => [...characters].map((character) => [character, Number(em)])),
);
