import { cutText, plainText } from '../output/cell-text.ts';
import { paint } from '../output/color.ts';
import type { Column } from '../output/render-table.ts';
import { renderTable } from '../output/render-table.ts';
import { countUses, type EniView, type PoolView, type UseCounts } from './pool-view.ts';
import { eniState, type RenderOptions } from './render-pool.ts';

/** One ENI with how its addresses are used. */
export type EniRow = EniView & { readonly counts: UseCounts };

/** Joins ENIs with their addresses. Pure. */
export function eniRows({ enis, addresses }: PoolView): readonly EniRow[] {
  return enis.map((eni) => ({
    ...eni,
    counts: countUses(addresses.filter(({ eniId }) => eniId === eni.eniId)),
  }));
}

/** Renders the ENIs, a line each, then what is wrong with them. Pure. */
export function renderEnis(rows: readonly EniRow[], options: RenderOptions): string {
  const problems = rows
    .filter(({ problem }) => problem !== '')
    .map(({ eniId, problem }) => cutText(plainText(`${eniId}: ${problem}`), options.width))
    .map((text) => `${paint(text, 'yellow', options.isColored)}\n`);
  return [renderTable(rows, COLUMNS, options), ...(problems.length === 0 ? [] : ['\n', ...problems])].join('');
}

const isFine = (eni: EniView): boolean => eni.attached && eni.ready !== false && eni.problem === '';

const COLUMNS: readonly Column<EniRow>[] = [
  { title: 'ENI', text: ({ eniId }) => eniId },
  { title: 'LINK', text: ({ ifname }) => ifname ?? '-' },
  { title: 'TABLE', text: ({ table }) => `${table ?? '-'}`, align: 'right' },
  { title: 'SLOT', text: ({ slot }) => `${slot ?? '-'}`, align: 'right', priority: 2 },
  { title: 'MAC', text: ({ mac }) => mac, priority: 4 },
  { title: 'PRIMARY', text: ({ primary }) => primary.map(({ ip }) => ip).join(',') || '-', priority: 5 },
  {
    title: 'SUBNET',
    text: ({ primary }) => primary.flatMap(({ subnetCidr }) => subnetCidr || []).join(',') || '-',
    priority: 3,
  },
  { title: 'IN USE', text: ({ counts }) => `${counts['in-use']}`, align: 'right' },
  { title: 'FREE', text: ({ counts }) => `${counts.free}`, align: 'right' },
  { title: 'TOTAL', text: ({ counts }) => `${counts.total}`, align: 'right' },
  { title: 'STATE', text: eniState, color: (eni) => (isFine(eni) ? 'green' : 'yellow') },
];
