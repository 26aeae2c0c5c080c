import type { Explanation, Hop, Path } from '../../../inspection/explain/explanation.ts';
import { plainText } from '../../../runtime/plain-text.ts';
import { textWidth } from '../../output/cell-text.ts';
import { type Color, paint } from '../../output/color.ts';
import { plural } from '../../output/plural.ts';
import { wrapText } from '../../output/render-text.ts';

/** How an explanation is laid out. */
type ExplanationOptions = { readonly width: number; readonly isColored: boolean };

/** Widths of the columns: state, kind, text. */
const STATE_WIDTH = 8;
const KIND_WIDTH = 8;
const INDENT = 2 + STATE_WIDTH + KIND_WIDTH;

/**
 * Renders an explanation from top to bottom: a block for each path, a line for each hop with its evidence below, cause
 * and cure at each broken hop, and a conclusion of one line at the end. Cures are never wrapped, so that they can be
 * pasted.
 */
export function renderExplanation(explanation: Explanation, options: ExplanationOptions): string {
  const { isColored } = options;
  const blocks = explanation.paths.map((path) => renderPath(path, options));
  const head = paint(plainText(explanation.subject), 'bold', isColored);
  return `${[head, ...blocks.map((block) => block.join('\n')), renderVerdict(explanation, options)].join('\n\n')}\n`;
}

function renderPath(path: Path, options: ExplanationOptions): readonly string[] {
  const title = `${plainText(path.from)} -> ${plainText(path.to)}`;
  const broken = path.hops.findIndex(({ verdict }) => verdict === 'broken');
  return [
    paint(title, 'bold', options.isColored),
    ...path.hops.flatMap((hop, index) => renderHop(hop, broken >= 0 && index > broken, options)),
  ];
}

type VerdictStyle = { readonly text: string; readonly color: Color };

const VERDICT_STYLES: Readonly<Record<Hop['verdict'], VerdictStyle>> = {
  ok: { text: 'ok', color: 'green' },
  broken: { text: 'BROKEN', color: 'red' },
  warning: { text: 'warning', color: 'yellow' },
  unknown: { text: 'unknown', color: 'cyan' },
};

/** Label of the hops after a broken one, unless they have a fault of their own. */
const AFTER_BROKEN: VerdictStyle = { text: 'then', color: 'dim' };

function renderHop(hop: Hop, isAfter: boolean, { width, isColored }: ExplanationOptions): readonly string[] {
  const style = isAfter && hop.verdict === 'ok' ? AFTER_BROKEN : VERDICT_STYLES[hop.verdict];
  const label = paint(style.text, style.color, isColored) + ' '.repeat(STATE_WIDTH - textWidth(style.text));
  const kind = hop.kind.padEnd(KIND_WIDTH);
  const titleColor = style.text === 'BROKEN' ? 'red' : style === AFTER_BROKEN ? 'dim' : undefined;
  const [first = '', ...rest] = wrapText(plainText(titleOf(hop)), width, INDENT);
  return [
    `  ${label}${paint(kind, style === AFTER_BROKEN ? 'dim' : undefined, isColored)}${paint(first.trimStart(), titleColor, isColored)}`,
    ...rest.map((line) => paint(line, titleColor, isColored)),
    ...hop.details.flatMap((line) => hanging(plainText(line), width)).map((line) => paint(line, 'dim', isColored)),
    ...renderFinding(hop, width, isColored),
  ];
}

/** Removes the kind from the title: it already has its own column. */
function titleOf({ kind, title }: Hop): string {
  return title.startsWith(`${kind} `) ? title.slice(kind.length + 1) : title;
}

/** Wraps a detail; its further lines are indented by two more columns. */
function hanging(text: string, width: number): readonly string[] {
  const [first = '', ...rest] = wrapText(text, width - 2, INDENT);
  return [first, ...rest.map((line) => `  ${line}`)];
}

function renderFinding({ finding, verdict }: Hop, width: number, isColored: boolean): readonly string[] {
  if (finding === undefined) return [];
  const color = verdict === 'broken' ? 'red' : 'yellow';
  return [
    ...labelled('cause', `${finding.what} (${finding.id})`, { width, color, isColored }),
    ...labelled('why', finding.why, { width, isColored }),
    ...finding.fix.map((line, index) => {
      const label = index === 0 ? `${paint('cure', 'green', isColored)}    ` : '        ';
      return `${' '.repeat(2 + STATE_WIDTH)}${label}${plainText(line)}`;
    }),
  ];
}

type Labelled = { readonly width: number; readonly color?: Color; readonly isColored: boolean };

function labelled(label: string, text: string, { width, color, isColored }: Labelled): readonly string[] {
  const [first = '', ...rest] = wrapText(plainText(text), width, INDENT);
  const head = ' '.repeat(2 + STATE_WIDTH) + paint(label, color, isColored) + ' '.repeat(KIND_WIDTH - label.length);
  return [head + first.trimStart(), ...rest];
}

function renderVerdict({ paths }: Explanation, { width, isColored }: ExplanationOptions): string {
  const broken = paths.flatMap((path) => {
    const hop = path.hops.find(({ verdict }) => verdict === 'broken');
    return hop === undefined ? [] : [{ path, hop }];
  });
  const [first] = broken;
  if (first !== undefined) {
    const { hop } = first;
    const count =
      paths.length === 1 ? 'The packet does not arrive' : `${broken.length} of ${paths.length} packets do not arrive`;
    const what = plainText(hop.finding?.what ?? hop.title);
    return wrapText(`${count}: ${what}${hop.finding === undefined ? '' : ` (${hop.finding.id})`}`, width)
      .map((line) => paint(line, 'red', isColored))
      .join('\n');
  }
  const count = (verdict: Hop['verdict']) =>
    paths.flatMap(({ hops }) => hops).filter((hop) => hop.verdict === verdict).length;
  const unknown = count('unknown');
  const warnings = count('warning');
  const notes = [
    ...(warnings === 0 ? [] : [plural(warnings, 'warning')]),
    ...(unknown === 0 ? [] : [`${plural(unknown, 'hop')} could not be looked at`]),
  ];
  const text = unknown === 0 ? 'Every hop is in order: the packets arrive' : 'No broken hop was found';
  const color = notes.length === 0 ? 'green' : 'yellow';
  return paint([text, ...notes].join('; '), color, isColored);
}
