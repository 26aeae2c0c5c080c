import { ageText } from '../agent/duration-text.ts';
import { type Column, renderTable } from '../output/render-table.ts';
import type { PodRow } from './build-pod-rows.ts';
import type { RenderOptions } from './render-pool.ts';

/** Renders Pod interfaces, one line each. */
export function renderPods(rows: readonly PodRow[], options: RenderOptions): string {
  return renderTable(rows, COLUMNS, options);
}

/** As many digits of a container id as `crictl pods` shows. */
const ID_DIGITS = 13;

const COLUMNS: readonly Column<PodRow>[] = [
  { title: 'NAMESPACE', text: ({ namespace }) => namespace || '-' },
  { title: 'POD', text: ({ pod }) => pod || '-' },
  { title: 'IP', text: ({ ips }) => ips.join(',') || '-' },
  { title: 'ENI', text: ({ eniId }) => eniId, priority: 5 },
  { title: 'VETH', text: ({ veth }) => veth || '-', priority: 4 },
  {
    title: 'STATE',
    text: ({ state }) => state,
    priority: 7,
    color: ({ state }) => (state === 'active' ? 'green' : 'yellow'),
  },
  { title: 'AGE', text: ({ ageMs }) => (ageMs === undefined ? '-' : ageText(ageMs)), align: 'right', priority: 6 },
  { title: 'SANDBOX', text: ({ containerId }) => containerId.slice(0, ID_DIGITS), priority: 3 },
  { title: 'IFNAME', text: ({ ifName }) => ifName, priority: 2 },
  { title: 'NETNS', text: ({ netns }) => netns, priority: 1 },
];
