import { plainText } from '../../../runtime/plain-text.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { cutText } from '../../output/cell-text.ts';
import { paint } from '../../output/color.ts';
import { renderWarning } from '../../output/render-error.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import type { ViewArgs } from './arguments.ts';
import { type AddressView, countUses, type PoolEniView, type PoolReading, type UseCounts } from './pool-view.ts';
import { printView } from './print-view.ts';
import { readPool } from './read-pool.ts';
import { eniState, type RenderOptions, sourceNotice } from './render-pool.ts';
import { type Stay, type StayAddress, UNKNOWN_STAY, usesOf } from './stays.ts';

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
export function eniRows(reading: PoolReading): readonly EniRow[] {
  const { enis, addresses } = reading.view;
  return enis.map((eni) => ({
    ...eni,
    counts: countUses(addresses.filter(({ eniId }) => eniId === eni.eniId)),
    stays: staysOf(eni, reading),
  }));
}

/** Lists why an ENI is not returned: what its addresses show, and what the agent says of those that are free. */
function staysOf({ eniId, attached, draining }: PoolEniView, { view, agentStays }: PoolReading): readonly Stay[] {
  if (view.role === 'uplinks') return [OF_OTHERS];
  const family = view.addresses.some((address) => address.family === 4) ? 4 : 6;
  // An IPv6 address comes and goes with its IPv4 address; it counts only where it holds the ENI.
  const own = view.addresses.filter((one) => one.eniId === eniId && (one.family === family || HELD.includes(one.use)));
  const found = [
    ...usesOf(own.map(stayAddressOf)),
    ...(attached ? [] : [{ reason: 'not-attached', text: 'it is not attached: ipamd attaches or detaches it' }]),
    ...(draining ? [{ reason: 'draining', text: 'it drains: it is returned once no Pod uses it' }] : []),
    ...(view.source === 'agent' ? [] : [silentStay(view.whyNoAgent)]),
    ...(agentStays.get(eniId) ?? []),
  ];
  return found.length === 0 ? [UNKNOWN_STAY] : found;
}

const OF_OTHERS: Stay = {
  reason: 'uplinks',
  text: 'another program gives its addresses to Pods (--role=uplinks): ipamd takes back what that lets go',
};

/** Uses that hold an ENI: it is not returned before they end. */
const HELD: readonly AddressView['use'][] = ['in-use', 'cooling', 'registered'];

function silentStay(why = 'no agent was asked'): Stay {
  return { reason: 'agent-silent', text: `no agent answers, so that nothing more is offered: ${why}` };
}

function stayAddressOf({ use, owner, keptFor, coolRemainingMs }: AddressView): StayAddress {
  if (use === 'in-use') return { use, owner: owner === undefined ? 'an unknown Pod' : podText(owner) };
  if (use === 'releasing') return { use };
  if (keptFor !== undefined) return { use: 'static', owner: keptFor.pods };
  if (use === 'cooling') return { use, ...(coolRemainingMs === undefined ? {} : { coolRemainingMs }) };
  return { use: use === 'offered' || use === 'registered' ? use : 'idle' };
}

function podText({ podNamespace, podName, containerId }: NonNullable<AddressView['owner']>): string {
  return podName === '' ? containerId.slice(0, 12) : `${podNamespace}/${podName}`;
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
