import { plainText } from '../../../runtime/plain-text.ts';
import { cutText } from '../../output/cell-text.ts';
import type { Color } from '../../output/color.ts';
import { paint } from '../../output/color.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import { addressesOfEnis } from './build-blocks.ts';
import {
  type AddressUse,
  type AddressView,
  type BlockView,
  countUses,
  type PoolEniView,
  type PoolView,
  type UseCounts,
} from './pool-view.ts';

/** Width in columns, and whether to use colours. */
export type RenderOptions = { readonly width: number; readonly isColored: boolean };

/** Renders the pool: a summary of a few lines, then one line for each ENI and family. */
export function renderPool(view: PoolView, options: RenderOptions): string {
  const rows = poolRows(view);
  const head = poolHead(view).map(
    ({ text, color }) => `${paint(cutText(plainText(text), options.width), color, options.isColored)}\n`,
  );
  const staticAddresses = view.addresses.filter(({ keptFor }) => keptFor !== undefined);
  const hasRegistered = view.addresses.some(({ use }) => use === 'registered');
  const columns = COLUMNS.filter(
    ({ title }) => (title !== 'KEPT' || staticAddresses.length > 0) && (title !== 'REGISTERED' || hasRegistered),
  );
  const staticTable = staticAddresses.length === 0 ? [] : ['\n', renderTable(staticAddresses, STATIC_COLUMNS, options)];
  const blocks = view.blocks ?? [];
  const blockTable = blocks.length === 0 ? [] : ['\n', renderTable(blocks, blockColumns(blocks), options)];
  // A node of GlobalRoute Pods alone has no ENI.
  const eniTable = rows.length === 0 && blocks.length > 0 ? [] : ['\n', renderTable(rows, columns, options)];
  return [...head, ...eniTable, ...blockTable, ...staticTable].join('');
}

/** Returns where a view comes from; undefined when it comes from the running agent. */
export function sourceNotice(
  view: Pick<PoolView, 'source' | 'whyNoAgent' | 'isAgentOld' | 'isAgentSilent'>,
): string | undefined {
  if (view.source === 'agent') return undefined;
  const others = view.isAgentSilent === true ? 'no answer of the agent' : 'agent not running';
  const state = view.isAgentOld === true ? 'agent too old' : others;
  return `from the journal, ${state}: ${view.whyNoAgent ?? 'no agent was asked'}`;
}

type Line = { readonly text: string; readonly color?: Color | undefined };

/** Returns a summary of the pool, one line or more. */
export function poolHead(view: PoolView): readonly Line[] {
  const lines: Line[] = [];
  const notice = sourceNotice(view);
  if (notice !== undefined) lines.push({ text: notice, color: 'yellow' });
  const counts = countUses(addressesOfEnis(view.addresses));
  const node = view.nodeName === '' ? '' : ` of ${view.nodeName}`;
  const uses = usesText(counts, ['in-use', 'free', 'kept', 'cooling', 'registered']);
  // Of the role uplinks only Pods from before it are known.
  const known = view.role === 'uplinks' && counts['in-use'] === 0 ? '' : `: ${uses}`;
  lines.push({ text: `${counts.total} addresses${node}${known}` });
  const rest = usesText(counts, ['unready', 'offered', 'releasing']);
  if (rest !== '') lines.push({ text: `not available: ${rest}` });
  lines.push({ text: demandText(view) });
  const waiting = view.waiting ?? [];
  if (waiting.length > 0) {
    lines.push({
      text: `${waiting.length === 1 ? '1 ADD waits' : `${waiting.length} ADDs wait`} for an address: ${waiting.join(', ')}`,
      color: 'red',
    });
  }
  if (view.supplyProblem !== '') lines.push({ text: `supply: ${view.supplyProblem}`, color: 'yellow' });
  for (const { eniId, problem } of view.enis) {
    if (problem !== '') lines.push({ text: `${eniId}: ${problem}`, color: 'yellow' });
  }
  return lines;
}

/** Sums up a block of GlobalRoute Pods in a line. */
export function blockLine({ cidr, isCurrent, total, inUse, cooling, held, free }: BlockView): Line {
  const cools = `${cooling === 0 ? '' : `, ${cooling} cooling`}${held === 0 ? '' : `, ${held} held`}`;
  if (!isCurrent) return { text: `former podCIDR ${cidr}: ${inUse} in use${cools}`, color: 'yellow' };
  const color = free === 0 && cooling === 0 ? 'yellow' : undefined;
  return { text: `podCIDR ${cidr}: ${inUse} of ${total} in use, ${free} free${cools}`, color };
}

/** Formats numbers of addresses by state; zeros are left out, except for those in use and free. */
function usesText(counts: UseCounts, uses: readonly AddressUse[]): string {
  return uses
    .filter((use) => counts[use] > 0 || use === 'in-use' || use === 'free')
    .map((use) => `${counts[use]} ${use === 'in-use' ? 'in use' : use}`)
    .join(', ');
}

function demandText({ role, warm, demand, asked, supplyEpoch }: PoolView): string {
  const epoch = supplyEpoch === undefined ? 'no supply' : `supply epoch ${supplyEpoch}`;
  if (role === 'uplinks') return `role uplinks: another program gives them to Pods, the CiliumNode has which; ${epoch}`;
  const texts: string[] = [];
  if (warm !== undefined) texts.push(`kept warm: ${warm.min} to ${warm.max}`);
  if (warm?.limit !== undefined) texts.push(`at most ${warm.limit}`);
  if (demand !== undefined) texts.push(requestText(demand, asked));
  texts.push(epoch);
  return texts.join('; ');
}

/** Writes what the node wants; as asked for only what its object at the API server has. */
function requestText(demand: number, asked = demand): string {
  return asked === demand ? `asked for: ${demand}` : `wanted: ${demand}, asked for: ${asked}`;
}

type PoolRow = {
  readonly eni: string;
  readonly family: string;
  readonly counts: UseCounts;
  readonly state: string;
};

function poolRows({ enis, addresses: all }: PoolView): readonly PoolRow[] {
  const addresses = addressesOfEnis(all);
  const known = new Map(enis.map((eni) => [eni.eniId, eni]));
  const ids = [...new Set([...known.keys(), ...addresses.map(({ eniId }) => eniId)])];
  const rows = ids.flatMap((eniId) => rowsOf(eniId, known.get(eniId), addresses));
  return rows.length < 2 ? rows : [...rows, { eni: 'all', family: '', counts: countUses(addresses), state: '' }];
}

function rowsOf(eniId: string, eni: PoolEniView | undefined, addresses: readonly AddressView[]): readonly PoolRow[] {
  const ofEni = addresses.filter((address) => address.eniId === eniId);
  const state = eniState(eni);
  const families = ([4, 6] as const).filter((family) => ofEni.some((address) => address.family === family));
  if (families.length === 0) return [{ eni: eniId, family: '-', counts: countUses([]), state }];
  return families.map((family) => ({
    eni: eniId,
    family: `IPv${family}`,
    counts: countUses(ofEni.filter((address) => address.family === family)),
    state,
  }));
}

/** Describes the state of an ENI in one or two words. */
export function eniState(eni: PoolEniView | undefined): string {
  if (eni === undefined) return 'gone';
  if (!eni.attached) return 'not attached';
  if (eni.draining) return 'draining';
  if (eni.ready === undefined) return 'attached';
  return eni.ready ? 'ready' : 'not ready';
}

function number(title: string, of: (counts: UseCounts) => number, priority?: number): Column<PoolRow> {
  const column: Column<PoolRow> = { title, text: ({ counts }) => `${of(counts)}`, align: 'right' };
  return priority === undefined ? column : { ...column, priority };
}

const COLUMNS: readonly Column<PoolRow>[] = [
  { title: 'ENI', text: ({ eni }) => eni },
  { title: 'FAMILY', text: ({ family }) => family },
  number('TOTAL', ({ total }) => total),
  number('IN USE', (counts) => counts['in-use']),
  { ...number('FREE', ({ free }) => free), color: ({ counts }) => (counts.free === 0 ? 'yellow' : undefined) },
  number('KEPT', ({ kept }) => kept),
  number('COOLING', ({ cooling }) => cooling),
  number('REGISTERED', ({ registered }) => registered),
  number('UNREADY', ({ unready }) => unready, 3),
  number('OFFERED', ({ offered }) => offered, 2),
  number('RELEASING', ({ releasing }) => releasing, 1),
  {
    title: 'ENI STATE',
    text: ({ state }) => state,
    priority: 4,
    color: ({ state }) => (state === 'ready' || state === 'attached' || state === '' ? undefined : 'yellow'),
  },
];

/** Columns of blocks of GlobalRoute Pods. */
const BLOCK_COLUMNS: readonly Column<BlockView>[] = [
  { title: 'PODCIDR', text: ({ cidr }) => cidr },
  { title: 'TOTAL', text: ({ total }) => `${total}`, align: 'right' },
  { title: 'IN USE', text: ({ inUse }) => `${inUse}`, align: 'right' },
  {
    title: 'FREE',
    text: ({ free }) => `${free}`,
    align: 'right',
    color: ({ free, isCurrent }) => (isCurrent && free === 0 ? 'yellow' : undefined),
  },
  { title: 'COOLING', text: ({ cooling }) => `${cooling}`, align: 'right' },
  { title: 'HELD', text: ({ held }) => `${held}`, align: 'right' },
  {
    title: 'STATE',
    text: ({ isCurrent }) => (isCurrent ? 'current' : 'former'),
    color: ({ isCurrent }) => (isCurrent ? undefined : 'yellow'),
  },
];

/** Few nodes have held addresses. */
function blockColumns(blocks: readonly BlockView[]): readonly Column<BlockView>[] {
  return BLOCK_COLUMNS.filter(({ title }) => title !== 'HELD' || blocks.some(({ held }) => held > 0));
}

/** Columns of static addresses, listed one by one: their owner matters, not their number. */
const STATIC_COLUMNS: readonly Column<AddressView>[] = [
  { title: 'KEPT', text: ({ ip }) => ip },
  { title: 'FOR', text: ({ keptFor }) => keptFor?.pods ?? '' },
  { title: 'STATE', text: ({ use }) => use, color: ({ use }) => (use === 'in-use' ? 'green' : undefined) },
  { title: 'POD UID', text: ({ keptFor }) => keptFor?.uid ?? '-', priority: 2 },
  { title: 'ENI', text: ({ eniId }) => eniId, priority: 1 },
];
