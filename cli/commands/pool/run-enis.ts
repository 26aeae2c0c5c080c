import { plainText } from '../../../runtime/plain-text.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { cutText } from '../../output/cell-text.ts';
import { paint } from '../../output/color.ts';
import { renderWarning } from '../../output/render-error.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import type { ViewArgs } from './arguments.ts';
import { findPoolStays } from './find-pool-stays.ts';
import { countUses, type PoolEniView, type PoolReading, type UseCounts } from './pool-view.ts';
import { printView } from './print-view.ts';
import { readPool } from './read-pool.ts';
import { eniState, type RenderOptions, sourceNotice } from './render-pool.ts';
import type { Stay } from './why-eni-stays.ts';

/** Shows the ENIs. @throws UserError NO_AGENT, FORBIDDEN */
export async function run({ output }: ViewArgs, context: CommandContext): Promise<ExitCode> {
  const reading = await readPool(context);
  const notice = sourceNotice(reading.view);
  if (notice !== undefined) context.stderr.write(renderWarning(notice, context.stderr.isColored));
  const rows = eniRows(reading);
  await printView(output, context, rows, (options) => renderEnis(rows, options));
  return EXIT.ok;
}

/** One ENI with the numbers of its addresses by state, and why it is not returned to the cloud. */
export type EniRow = PoolEniView & { readonly counts: UseCounts; readonly stays: readonly Stay[] };

/** Joins ENIs with their addresses. */
function eniRows(reading: PoolReading): readonly EniRow[] {
  const { enis, addresses } = reading.view;
  const stays = findPoolStays(reading);
  return enis.map((eni) => ({
    ...eni,
    counts: countUses(addresses.filter(({ eniId }) => eniId === eni.eniId)),
    stays: stays.get(eni.eniId) ?? [],
  }));
}

/** Renders the ENIs, one line each, then their problems, then a line for each reason that an ENI stays. */
export function renderEnis(rows: readonly EniRow[], options: RenderOptions): string {
  const problems = rows
    .filter(({ problem }) => problem !== '')
    .map(({ eniId, problem }) => cutText(plainText(`${eniId}: ${problem}`), options.width))
    .map((text) => `${paint(text, 'yellow', options.isColored)}\n`);
  const stays = rows.flatMap((row) => row.stays.map((stay): StayRow => ({ eniId: row.eniId, ...stay })));
  return [
    renderTable(rows, COLUMNS, options),
    ...(problems.length === 0 ? [] : ['\n', ...problems]),
    ...(stays.length === 0 ? [] : ['\n', renderTable(stays, STAY_COLUMNS, options)]),
  ].join('');
}

type StayRow = Stay & { readonly eniId: string };

const isFine = (eni: PoolEniView): boolean => eni.attached && eni.ready !== false && eni.problem === '';

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

const STAY_COLUMNS: readonly Column<StayRow>[] = [
  { title: 'ENI', text: ({ eniId }) => eniId },
  { title: 'STAYS', text: ({ reason }) => reason },
  { title: 'WHY', text: ({ text }) => text },
];
