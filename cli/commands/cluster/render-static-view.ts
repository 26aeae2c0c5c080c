import { paint } from '../../output/color.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import type { ExclusiveRow, IdleRow, PhaseCounts, StaticView, WaitingRow } from './build-static-view.ts';
import { type ClusterLayout, countText } from './render-nodes.ts';
import { spanText } from './render-span.ts';

/** Renders the totals, then waiting claims with their reason, then addresses and ENIs without a Pod. */
export function renderStaticView(view: StaticView, layout: ClusterLayout): string {
  const { waiting, idle, exclusive } = view;
  const blocks = [
    sumText(view, layout),
    ...(waiting.length === 0 ? [] : [renderTable(waiting, WAITING, layout)]),
    ...(idle === undefined || idle.length === 0 ? [] : [renderTable(idle, IDLE, layout)]),
    ...(exclusive.length === 0 ? [] : [renderTable(exclusive, EXCLUSIVE, layout)]),
  ];
  return blocks.join('\n');
}

const WAITING: readonly Column<WaitingRow>[] = [
  { title: 'WAITS FOR', text: ({ kind }) => kind },
  { title: 'POD', text: ({ key }) => key },
  {
    title: 'PHASE',
    text: ({ phase }) => (phase === '' ? '-' : phase),
    color: ({ phase }) => (phase === 'Failed' ? 'red' : 'yellow'),
  },
  { title: 'SINCE', text: ({ ageMs }) => ageText(ageMs), align: 'right' },
  { title: 'NODE', text: ({ node }) => (node === '' ? '-' : node), priority: 1 },
  { title: 'MESSAGE', text: ({ message }) => message },
];

const IDLE: readonly Column<IdleRow>[] = [
  { title: 'KEPT ON', text: ({ node }) => (node === '' ? 'no node' : node) },
  { title: 'SUBNET', text: ({ subnetId }) => subnetId },
  { title: 'ADDRESSES', text: ({ count }) => `${count}`, align: 'right' },
  { title: 'OLDEST', text: ({ oldestMs }) => ageText(oldestMs), align: 'right' },
];

const EXCLUSIVE: readonly Column<ExclusiveRow>[] = [
  { title: 'WHOLE ENIS OF', text: ({ node }) => (node === '' ? 'no node' : node) },
  { title: 'IN USE', text: ({ inUse }) => countText(inUse), align: 'right' },
  { title: 'SPARE', text: ({ spare }) => countText(spare), align: 'right' },
  { title: 'KEPT', text: ({ kept }) => `${kept}`, align: 'right' },
];

function sumText({ claims, eips, idle, exclusive }: StaticView, { isColored }: ClusterLayout): string {
  const addresses = idle?.reduce((sum, { count }) => sum + count, 0);
  const sum = (of: (row: ExclusiveRow) => number | undefined): number | undefined =>
    exclusive.some((row) => of(row) === undefined)
      ? undefined
      : exclusive.reduce((total, row) => total + (of(row) ?? 0), 0);
  const enis = [
    `${countText(sum(({ inUse }) => inUse))} in use`,
    `${countText(sum(({ spare }) => spare))} spare`,
    `${countText(sum(({ kept }) => kept))} kept`,
  ];
  const lines = [
    ['claims', countsText(claims)],
    ['addresses', `${countText(addresses)} wait for a Pod of their name`],
    ['EIPs', countsText(eips)],
    ['whole ENIs', enis.join(', ')],
  ] as const;
  return lines.map(([what, text]) => `${paint(what.padEnd(SUM_WIDTH), 'bold', isColored)}${text}\n`).join('');
}

/** Width of the longest label plus a gap. */
const SUM_WIDTH = 12;

/** Phases in the order of a claim's life cycle. */
const PHASES = ['Bound', 'Retained', 'Pending', 'Allocating', 'Binding', 'Releasing', 'Failed'];

function countsText(counts: PhaseCounts | undefined): string {
  if (counts === undefined) return '?';
  const { total, byPhase } = counts;
  const rank = (phase: string): number => (PHASES.includes(phase) ? PHASES.indexOf(phase) : PHASES.length);
  const ordered = Object.entries(byPhase).toSorted(([a], [b]) => rank(a) - rank(b));
  const text = ordered.map(([phase, count]) => `${count} ${phase}`).join(', ');
  return text === '' ? `${total}` : `${total}: ${text}`;
}

function ageText(ms: number | undefined): string {
  return ms === undefined ? '?' : spanText(ms);
}
