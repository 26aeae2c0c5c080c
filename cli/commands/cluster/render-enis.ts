import { type Column, renderTable } from '../../output/render-table.ts';
import type { EniRow } from './build-eni-rows.ts';
import { type ClusterLayout, countText } from './render-nodes.ts';

const COLUMNS: readonly Column<EniRow>[] = [
  { title: 'ENI', text: ({ eniId }) => eniId },
  { title: 'NODE', text: ({ node }) => (node === '' ? '-' : node) },
  { title: 'KIND', text: ({ kind }) => kind, priority: 3 },
  {
    title: 'STATE',
    text: ({ state, isDraining }) => (isDraining ? `${state}, draining` : state),
    color: ({ state, isDraining }) =>
      state === 'unlisted' ? 'red' : isDraining || state !== 'Attached' ? 'yellow' : undefined,
  },
  {
    title: 'CLOUD',
    text: ({ cloudState }) => cloudState ?? '?',
    priority: 6,
    color: ({ cloudState }) => (cloudState === 'missing' ? 'red' : undefined),
  },
  { title: 'IPS', text: ({ assigned }) => `${assigned}`, align: 'right' },
  { title: 'USED', text: ({ used }) => countText(used), align: 'right' },
  { title: 'STAYS', text: ({ stays }) => stays.map(({ reason }) => reason).join(', '), priority: 7 },
  { title: 'SUBNET', text: ({ subnetId }) => subnetId, priority: 5 },
  { title: 'PRIMARY', text: ({ primaryIp }) => primaryIp, priority: 4 },
  { title: 'MAC', text: ({ mac }) => mac, priority: 2 },
  { title: 'WHY', text: ({ stays }) => stays.map(({ text }) => text).join('; '), priority: 1 },
];

/** Renders a table row for each ENI. */
export function renderEnis(rows: readonly EniRow[], layout: ClusterLayout): string {
  return rows.length === 0 ? 'the cluster has no ENI\n' : renderTable(rows, COLUMNS, layout);
}
