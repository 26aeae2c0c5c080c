import { textWidth } from './cell-text.ts';

/** Breaks a text at blanks into lines of at most `width` columns, each indented; a longer word gets its own line. */
export function wrapText(text: string, width: number, indent = 0): readonly string[] {
  const margin = ' '.repeat(indent);
  const maxWidth = Math.max(1, width - indent);
  const lines: string[] = [];
  for (const paragraph of text.split('\n')) {
    let line = '';
    for (const word of paragraph.split(' ')) {
      if (line !== '' && textWidth(line) + 1 + textWidth(word) > maxWidth) {
        lines.push(margin + line);
        line = word;
      } else {
        line = line === '' ? word : `${line} ${word}`;
      }
    }
    lines.push(line === '' ? '' : margin + line);
  }
  return lines;
}

/** Splits a text into its paragraphs. Blank lines separate them; other line breaks are those of the source. */
export function paragraphsOf(text: string): readonly string[] {
  return text
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.trim().replace(/\s*\n\s*/g, ' '))
    .filter((paragraph) => paragraph !== '');
}

/** Renders terms with their explanations in two columns, as help does; a term that is too long gets its own line. */
export function renderTerms(terms: readonly Term[], width: number): readonly string[] {
  const maxTermWidth = Math.max(0, ...terms.map(([term]) => textWidth(term)));
  const column = Math.min(maxTermWidth, Math.floor(width / 3)) + INDENT + GAP;
  return terms.flatMap(([term, text]) => {
    const lines = wrapText(text, width, column);
    const head = ' '.repeat(INDENT) + term;
    if (textWidth(head) + GAP > column) return [head, ...lines];
    const [first = '', ...others] = lines;
    return [(head.padEnd(column) + first.slice(column)).trimEnd(), ...others];
  });
}

/** A term and its explanation. */
export type Term = readonly [term: string, text: string];

const INDENT = 2;
const GAP = 2;
