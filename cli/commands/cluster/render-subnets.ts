import { type Column, renderTable } from '../../output/render-table.ts';
import type { Forecast } from './build-forecast.ts';
import type { SubnetRow } from './build-subnet-rows.ts';
import { type ClusterLayout, countText } from './render-nodes.ts';
import { spanText } from './render-span.ts';

const COLUMNS: readonly Column<SubnetRow>[] = [
  { title: 'SUBNET', text: ({ subnetId }) => subnetId },
  { title: 'CIDR', text: ({ cidr }) => cidr, priority: 4 },
  { title: 'ZONE', text: ({ zone }) => zone, priority: 2 },
  { title: 'TOTAL', text: ({ total }) => countText(total), align: 'right', priority: 6 },
  { title: 'USED', text: ({ used }) => countText(used), align: 'right', priority: 5 },
  {
    title: 'FREE',
    text: ({ free }) => countText(free),
    align: 'right',
    color: ({ free }) => (free === 0 ? 'red' : undefined),
  },
  { title: 'OURS', text: ({ ours }) => `${ours}`, align: 'right' },
  { title: 'NODES', text: ({ nodes }) => `${nodes.length}`, align: 'right' },
  { title: 'ENIS', text: ({ enis }) => `${enis}`, align: 'right', priority: 3 },
  {
    title: 'RUNS OUT',
    text: ({ forecast }) => forecastText(forecast),
    color: ({ forecast }) => (forecast.kind === 'exhausted' ? 'red' : undefined),
  },
  { title: 'FROM', text: ({ forecast }) => ('ground' in forecast ? forecast.ground : ''), priority: 1 },
];

/** Renders a table row for each subnet. */
export function renderSubnets(rows: readonly SubnetRow[], layout: ClusterLayout): string {
  return rows.length === 0
    ? 'no ENI of the cluster names its subnet, and ipamd has published none\n'
    : renderTable(rows, COLUMNS, layout);
}

/**
 * Writes a forecast in short form. '>5h (pace of 1h), >9d (7d)' means: not before these times, at the growth of the
 * last hour and of the last 7 days.
 */
function forecastText(forecast: Forecast): string {
  switch (forecast.kind) {
    case 'unknown':
      return `not known: ${forecast.why}`;
    case 'exhausted':
      return 'now: nothing is free';
    case 'not-growing':
      return 'not growing';
    case 'not-before': {
      const texts = forecast.byWindow.map(({ windowMs, soonestMs }, index) => {
        const pace = index === 0 ? 'pace of ' : '';
        return `>${spanText(soonestMs)} (${pace}${spanText(windowMs)})`;
      });
      return texts.join(', ');
    }
    case 'range':
      return forecast.latestMs === undefined
        ? `>${spanText(forecast.soonestMs)}, if at all`
        : `${spanText(forecast.soonestMs)} to ${spanText(forecast.latestMs)}`;
  }
}
