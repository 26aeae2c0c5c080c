import { renderChange } from '../../../inspection/judge/change.ts';
import type { Difference, NodeDifferences } from '../../../inspection/judge/difference.ts';
import { plainText } from '../../../runtime/plain-text.ts';
import { textWidth } from '../../output/cell-text.ts';
import { paint } from '../../output/color.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import { wrapText } from '../../output/render-text.ts';

/** Layout of text output. */
export type TextLayout = { readonly width: number; readonly isColored: boolean };

const COLORS = { error: 'red', warning: 'yellow', info: 'cyan' } as const;
/** Blanks between the columns of a table. */
const COLUMN_GAP = 2;
const TEXT_INDENT = 4;
/** Indentation of lines below a heading. */
const SECTION_INDENT = 2;

const COLUMNS: readonly Column<Difference>[] = [
  {
    title: 'FINDING',
    text: ({ id }) => id,
    color: ({ severity }) => COLORS[severity],
  },
  { title: 'WHOSE', text: ({ whose }) => whose },
  { title: 'WHAT', text: ({ what }) => what },
];

/**
 * Renders a comparison as text: the differences, the commands that repair them, and the differences that are not ours.
 */
export function renderDifferences(found: NodeDifferences, equalText: string, layout: TextLayout): string {
  const { differences } = found;
  return [
    differences.length === 0 ? `${paint('equal', 'green', layout.isColored)}  ${equalText}\n` : '',
    renderList(differences, layout),
    renderRepairLines(found, layout),
    renderForeign(differences, layout, true),
    renderUnjudged(found, layout),
  ].join('');
}

/**
 * Renders one table row per difference where the rows fit. Where they do not, the text stands below its heading, uncut.
 */
function renderList(differences: readonly Difference[], layout: TextLayout): string {
  if (differences.length === 0) return '';
  const widest = COLUMNS.reduce((sum, { title, text }) => {
    const cells = differences.map((difference) => textWidth(text(difference)));
    return sum + Math.max(textWidth(title), ...cells) + COLUMN_GAP;
  }, -COLUMN_GAP);
  if (widest <= layout.width) return renderTable(differences, COLUMNS, layout);
  return differences
    .map(({ id, severity, whose, what }) => {
      const head = `${paint(id, COLORS[severity], layout.isColored)}  ${plainText(whose)}`;
      return `${[head, ...wrapText(plainText(what), layout.width, TEXT_INDENT)].join('\n')}\n`;
    })
    .join('');
}

/**
 * Renders the changes as a script with the commands that `tke-eni repair` would run, one per line; other differences
 * become comments.
 */
export function renderScript(found: NodeDifferences): string {
  const foreign = found.differences.filter(({ changes }) => changes.length === 0);
  return [
    ...found.changes.map(renderChange),
    ...foreign.map(({ id, whose, what }) => plainText(`# left alone: ${id} (${whose}): ${what}`)),
    ...found.unjudged.map(({ what, why }) => plainText(`# not checked: ${what}: ${why}`)),
  ]
    .map((line) => `${line}\n`)
    .join('');
}

/** Builds the document for JSON and YAML output. */
export function differencesDocument(found: NodeDifferences, isEqual: boolean): object {
  return {
    equal: isEqual,
    differences: found.differences.map(({ owner: _owner, family: _family, readKey: _key, changes, ...difference }) => ({
      ...difference,
      mend: changes.map(renderChange),
    })),
    changes: found.changes.map(renderChange),
    unjudged: found.unjudged,
  };
}

function renderRepairLines({ changes }: NodeDifferences, { isColored }: TextLayout): string {
  if (changes.length === 0) return '';
  return section(`tke-eni repair would do (${changes.length})`, changes.map(renderChange), isColored);
}

/** Renders the differences that are not ours, with steps for the user. `isListed`: their text was printed before. */
export function renderForeign(differences: readonly Difference[], layout: TextLayout, isListed = false): string {
  const foreign = differences.filter(({ changes }) => changes.length === 0);
  if (foreign.length === 0) return '';
  const lines = foreign.flatMap(({ id, whose, what, fix }) => [
    plainText(`${id}  ${whose}`),
    ...(isListed ? [] : wrapText(plainText(what), layout.width - SECTION_INDENT, TEXT_INDENT)),
    ...fix.map((step) => plainText(`${' '.repeat(TEXT_INDENT)}- ${step}`)),
  ]);
  return section(`not ours to change, left alone (${foreign.length})`, lines, layout.isColored);
}

/** Renders what could not be compared, with the reasons. */
export function renderUnjudged({ unjudged }: Pick<NodeDifferences, 'unjudged'>, { isColored }: TextLayout): string {
  if (unjudged.length === 0) return '';
  const lines = unjudged.map(({ what, why, next }) => plainText(`${what}: ${why}; ${next}`));
  return section(`not checked (${unjudged.length})`, lines, isColored);
}

/** Renders a heading with indented lines below it. */
export function section(title: string, lines: readonly string[], isColored: boolean): string {
  const body = lines
    .flatMap((line) => line.trimEnd().split('\n'))
    .map((line) => `${' '.repeat(SECTION_INDENT)}${plainText(line)}\n`);
  return `\n${paint(title, 'bold', isColored)}:\n${body.join('')}`;
}
