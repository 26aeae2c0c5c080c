import { ageText } from '../../agent/duration-text.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import { networkNameOf, type PodRow } from './build-pod-rows.ts';
import type { RenderOptions } from './render-pool.ts';

/** Renders Pod interfaces, one line each. */
export function renderPods(rows: readonly PodRow[], options: RenderOptions): string {
  const isUsual = rows.every(({ network }) => network === networkNameOf('route-eni'));
  return renderTable(rows, isUsual ? COLUMNS.filter(({ title }) => title !== 'NETWORK') : COLUMNS, options);
}

/** As many digits of a container id as `crictl pods` shows. */
const ID_DIGITS = 13;

const COLUMNS: readonly Column<PodRow>[] = [
  { title: 'NAMESPACE', text: ({ namespace }) => namespace || '-' },
  { title: 'POD', text: ({ pod }) => pod || '-' },
  { title: 'IP', text: ({ ips }) => ips.join(',') || '-' },
  { title: 'NETWORK', text: ({ network }) => network || '-', priority: 6 },
  { title: 'ENI', text: ({ eniId }) => eniId, priority: 5 },
  { title: 'VETH', text: ({ veth }) => veth || '-', priority: 4 },
  {
    title: 'STATE',
    text: ({ state }) => state,
    priority: 8,
    color: ({ state }) => (state === 'active' ? 'green' : 'yellow'),
  },
  { title: 'AGE', text: ({ ageMs }) => (ageMs === undefined ? '-' : ageText(ageMs)), align: 'right', priority: 7 },
  { title: 'SANDBOX', text: ({ containerId }) => containerId.slice(0, ID_DIGITS), priority: 3 },
  { title: 'IFNAME', text: ({ ifName }) => ifName, priority: 2 },
  { title: 'NETNS', text: ({ netns }) => netns, priority: 1 },
];
