import { NODE_ROWS } from './node-panels.ts';
import { OVERVIEW_ROWS } from './overview-panels.ts';
import type { Panel, PanelRow } from './panel.ts';
import { STATIC_ROWS } from './static-panels.ts';
import { SUPPLY_ROWS } from './supply-panels.ts';

const DATASOURCE = { type: 'prometheus', uid: '$datasource' } as const;
const WIDTH = 24;
const HEIGHTS = { lines: 8, number: 4, table: 7 } as const;
/** Of the JSON model of Grafana 10; newer ones migrate it when they load it. */
const SCHEMA_VERSION = 39;

/** Writes the Grafana dashboard: JSON, panels placed from left to right, row by row. */
export function renderDashboard(): string {
  const panels: unknown[] = [];
  let top = 0;
  for (const row of [...OVERVIEW_ROWS, ...SUPPLY_ROWS, ...STATIC_ROWS, ...NODE_ROWS]) {
    const placed = placeRow(row, panels.length + 1, top);
    panels.push(...placed.panels);
    top = placed.bottom;
  }
  const dashboard = {
    uid: 'tke-eni',
    title: 'tke-eni',
    description: 'VPC-CNI: nodes, addresses, the cloud, Pods. Runbooks: docs/runbooks/.',
    tags: ['tke-eni', 'network'],
    schemaVersion: SCHEMA_VERSION,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    time: { from: 'now-3h', to: 'now' },
    timezone: '',
    templating: { list: VARIABLES },
    annotations: { list: [] },
    links: [],
    panels,
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}

const VARIABLES = [
  { name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus', hide: 0, refresh: 1 },
  {
    name: 'node',
    label: 'Node',
    type: 'query',
    datasource: DATASOURCE,
    definition: 'label_values(tke_eni_leases, node)',
    query: { query: 'label_values(tke_eni_leases, node)', refId: 'node' },
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    allValue: '.*',
    current: { text: 'All', value: '$__all' },
  },
];

/** A heading, then panels from left to right; one that does not fit begins a new line. */
function placeRow(
  { title, panels }: PanelRow,
  firstId: number,
  top: number,
): { readonly panels: readonly unknown[]; readonly bottom: number } {
  const heading = {
    id: firstId,
    type: 'row',
    title,
    collapsed: false,
    gridPos: { h: 1, w: WIDTH, x: 0, y: top },
    panels: [],
  };
  const placed: unknown[] = [heading];
  let x = 0;
  let y = top + 1;
  let lineHeight = 0;
  for (const panel of panels) {
    if (x + panel.width > WIDTH) {
      x = 0;
      y += lineHeight;
      lineHeight = 0;
    }
    const height = HEIGHTS[panel.kind];
    placed.push(renderPanel(panel, firstId + placed.length, { h: height, w: panel.width, x, y }));
    x += panel.width;
    lineHeight = Math.max(lineHeight, height);
  }
  return { panels: placed, bottom: y + lineHeight };
}

type Place = { readonly h: number; readonly w: number; readonly x: number; readonly y: number };

function renderPanel({ title, kind, unit, help, lines }: Panel, id: number, gridPos: Place): unknown {
  const targets = lines.map(([expr, legendFormat], index) => ({
    refId: String.fromCharCode('A'.charCodeAt(0) + index),
    datasource: DATASOURCE,
    expr,
    ...(kind === 'lines' ? { legendFormat, range: true } : { instant: true }),
    ...(kind === 'table' && { format: 'table' }),
  }));
  const defaults = { ...(unit !== undefined && { unit }), min: 0, ...OF_KIND[kind].defaults };
  return {
    id,
    type: OF_KIND[kind].type,
    title,
    description: help,
    datasource: DATASOURCE,
    gridPos,
    fieldConfig: { defaults, overrides: [] },
    options: OF_KIND[kind].options,
    targets,
    ...(kind === 'table' && {
      transformations: [{ id: 'organize', options: { excludeByName: { Time: true, Value: true } } }],
    }),
  };
}

const OF_KIND = {
  lines: {
    type: 'timeseries',
    defaults: { custom: { lineWidth: 1, fillOpacity: 5, showPoints: 'never' } },
    options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
  },
  number: {
    type: 'stat',
    defaults: {},
    options: {
      reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
      colorMode: 'none',
      graphMode: 'none',
    },
  },
  table: { type: 'table', defaults: {}, options: { showHeader: true, cellHeight: 'sm' } },
} as const;
