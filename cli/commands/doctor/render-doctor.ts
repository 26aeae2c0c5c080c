import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { plainText } from '../../../runtime/plain-text.ts';
import { cutText, textWidth } from '../../output/cell-text.ts';
import { type Color, paint } from '../../output/color.ts';
import { plural } from '../../output/plural.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import { type CheckResult, countFindings, type Diagnosis } from './evaluate-checks.ts';

/** Layout of the output. */
type DoctorLayout = {
  readonly width: number;
  readonly isColored: boolean;
  /** True to print each check with its notes too. */
  readonly isWide: boolean;
};

const COLORS: Readonly<Record<Finding['severity'], Color>> = { error: 'red', warning: 'yellow', info: 'cyan' };
/** Width of the severity column, with a gap. */
const INDENT = 9;
/** Number of findings of one kind that are printed in full. */
const SHOWN_ALIKE = 3;

/**
 * Renders the results as text: each finding with its effect and its fix, then skipped checks, then the totals. Prose is
 * wrapped to the width; commands are not, so that they can be pasted.
 */
export function renderDoctor({ results, findings }: Diagnosis, layout: DoctorLayout): string {
  const blocks = [...Map.groupBy(findings, ({ id, severity }) => `${severity} ${id}`).values()].map((alike) =>
    renderAlike(alike, layout),
  );
  const skips = results.filter(({ verdict }) => verdict.kind === 'skipped');
  const list = layout.isWide
    ? `${renderChecks(results, layout)}\n`
    : skips.map((skip) => renderSkip(skip, layout)).join('');
  return `${blocks.join('')}${list}${renderSum({ results, findings }, skips.length, layout)}`;
}

/** Renders findings of one kind. A large failure causes hundreds of them; the first ones are enough. */
function renderAlike(findings: readonly Finding[], layout: DoctorLayout): string {
  const shown = findings.slice(0, layout.isWide ? findings.length : SHOWN_ALIKE);
  const more = findings.length - shown.length;
  const rest =
    more === 0 ? '' : `${' '.repeat(INDENT)}${findings[0]?.id}: ${more} more; -o wide and -o json have all\n\n`;
  return `${shown.map((finding) => `${renderFinding(finding, layout)}\n`).join('')}${rest}`;
}

function renderFinding({ severity, id, what, why, fix }: Finding, { width, isColored }: DoctorLayout): string {
  // Names of links and Pods are untrusted text.
  const title = wrap(plainText(`${id}: ${what}`), width - INDENT);
  const head = paint(severity.padEnd(INDENT), COLORS[severity], isColored);
  const prose = wrap(why, width - INDENT).map((line) => paint(line, 'dim', isColored));
  const [first = '', ...rest] = [...title, ...prose];
  const margin = ' '.repeat(INDENT);
  const lines = [
    `${head}${first}`,
    ...rest.map((line) => `${margin}${line}`),
    ...fix.map((line) => `${margin}  ${plainText(line)}`),
  ];
  return `${lines.join('\n')}\n`;
}

/** Wraps a text at blanks; a word that is longer than the width stays whole. */
function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && textWidth(line) + 1 + textWidth(word) > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

function renderSkip({ check, verdict }: CheckResult, { width, isColored }: DoctorLayout): string {
  const why = verdict.kind === 'skipped' ? verdict.why : '';
  return `${paint(cutText(plainText(`skipped  ${check.id}: ${why}`), width), 'dim', isColored)}\n`;
}

function renderChecks(results: readonly CheckResult[], { isColored }: DoctorLayout): string {
  const columns: readonly Column<CheckResult>[] = [
    { title: 'CHECK', text: ({ check }) => check.id },
    { title: 'RESULT', text: resultOf, color: colorOf },
    { title: 'LOOKS AT', text: ({ check }) => check.scope },
    { title: 'SEEN', text: ({ verdict }) => (verdict.kind === 'skipped' ? verdict.why : verdict.notes.join('; ')) },
  ];
  return renderTable(results, columns, { isColored });
}

/** Returns the result of a check: one word, or the number of findings by severity. */
function resultOf({ verdict }: CheckResult): string {
  if (verdict.kind === 'skipped') return 'skipped';
  return verdict.findings.length === 0 ? 'ok' : countsText(countFindings(verdict.findings)).join(', ');
}

function colorOf({ verdict }: CheckResult): Color | undefined {
  if (verdict.kind === 'skipped') return 'dim';
  const { error, warning } = countFindings(verdict.findings);
  if (error > 0) return 'red';
  return warning > 0 ? 'yellow' : 'green';
}

function countsText({ error, warning, info }: ReturnType<typeof countFindings>): readonly string[] {
  return [
    ...(error > 0 ? [plural(error, 'error')] : []),
    ...(warning > 0 ? [plural(warning, 'warning')] : []),
    ...(info > 0 ? [`${info} worth knowing`] : []),
  ];
}

function renderSum({ results, findings }: Diagnosis, skips: number, { isColored }: DoctorLayout): string {
  const counts = countFindings(findings);
  const isFine = counts.error === 0 && counts.warning === 0;
  const color: Color = counts.error > 0 ? 'red' : counts.warning > 0 ? 'yellow' : 'green';
  const made = results.length - skips;
  const segments = [
    ...(made === 0 ? ['nothing could be looked at'] : [plural(made, 'check'), ...(isFine ? ['nothing wrong'] : [])]),
    ...countsText(counts),
    ...(skips > 0 ? [`${skips} skipped`] : []),
  ];
  return `${paint(segments.join(', '), made === 0 ? 'yellow' : color, isColored)}\n`;
}

/** Builds the document of `-o json` and `-o yaml`. */
export function doctorDocument({ results, findings }: Diagnosis): object {
  const { error, warning, info } = countFindings(findings);
  return {
    summary: {
      checks: results.length,
      errors: error,
      warnings: warning,
      infos: info,
      skipped: results.filter(({ verdict }) => verdict.kind === 'skipped').length,
    },
    findings,
    checks: results.map(({ check, verdict }) => ({
      id: check.id,
      looksAt: check.scope,
      ...(verdict.kind === 'skipped'
        ? { result: 'skipped', why: verdict.why }
        : {
            result: verdict.findings.length === 0 ? 'ok' : 'found',
            seen: verdict.notes,
            findings: verdict.findings.map(({ id }) => id),
          }),
    })),
  };
}
