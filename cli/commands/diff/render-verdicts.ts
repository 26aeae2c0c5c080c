import type { Unjudged } from '../../../inspection/desired/desired-of.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import type { Verdict } from './build-verdicts.ts';
import type { TextLayout } from './render-differences.ts';

const COLUMNS: readonly Column<Verdict>[] = [
  { title: '', text: ({ isOk }) => (isOk ? 'ok' : 'wrong'), color: ({ isOk }) => (isOk ? 'green' : 'red') },
  { title: '', text: ({ subject }) => subject },
  { title: '', text: whatOf },
];

/** Renders one table row for each part of the node. */
export function renderVerdicts(verdicts: readonly Verdict[], layout: TextLayout): string {
  return renderTable(verdicts, COLUMNS, { ...layout, hasTitles: false });
}

/** Builds the document for JSON and YAML output. */
export function verdictsDocument(verdicts: readonly Verdict[], isOk: boolean, unjudged: readonly Unjudged[]): object {
  return {
    ok: isOk,
    verdicts: verdicts.map(({ subject, isOk: isFine, differences }) => ({
      subject,
      ok: isFine,
      findings: differences.map(({ id, severity, what }) => ({ id, severity, what })),
    })),
    unjudged,
  };
}

function whatOf({ differences }: Verdict): string {
  const [first, ...more] = differences;
  if (first === undefined) return '';
  const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
  return `${first.id}: ${first.what}${rest}`;
}
