import { plural } from '../../output/plural.ts';
import type { Graph, GraphEdge, GraphNode } from './graph.ts';
import { type Band, type Box, FONTS, type Layout, SIZES } from './plan-layout.ts';
import { fitText } from './plan-text.ts';
import { element, escapeXml } from './render-xml.ts';

/** Kinds of lines; each has an arrowhead in its own colour. */
const TIPS = ['from-pod', 'to-pod', 'broken', 'after'] as const;

/** Options of a drawing: boxes can be selected on the page, but not in a picture. */
type DrawingUse = { readonly isInteractive: boolean };

/** Renders columns, bands, boxes and edges as SVG markup, without the lines of paths. */
export function renderDrawing(graph: Graph, layout: Layout, use: DrawingUse): string {
  const byGroup = Map.groupBy(graph.nodes, ({ group }) => group);
  return [
    element('defs', {}, TIPS.map(tip).join('')),
    ...layout.lanes.map(({ lane, title, x }) =>
      element(
        'text',
        { class: 'lane-title', 'data-lane': lane, x, y: SIZES.margin + 14 },
        escapeXml(title.toUpperCase()),
      ),
    ),
    ...layout.bands.map((band) => renderBand(band, byGroup.get(band.group.id) ?? [], graph.edges, layout, use)),
  ].join('\n');
}

function renderBand(
  band: Band,
  nodes: readonly GraphNode[],
  edges: readonly GraphEdge[],
  layout: Layout,
  use: DrawingUse,
): string {
  const ids = new Set(nodes.map(({ id }) => id));
  const inGrid = nodes.filter(isInGrid);
  const shared = nodes.filter((node) => !isInGrid(node));
  const mine = edges.filter(({ to }) => ids.has(to));
  const lines = (isVeth: boolean) =>
    mine.filter(({ kind }) => (kind === 'veth') === isVeth).map((edge) => renderEdge(edge, band, layout));
  const { group, frame, pods, podCount } = band;
  return element(
    'g',
    { class: 'band', 'data-group': group.id },
    [
      element('rect', { class: 'band-frame', ...rect(frame), rx: 10 }),
      renderBandHeader(band, nodes, use),
      element(
        'g',
        { class: 'pods' },
        pods === undefined
          ? ' '
          : [
              element('rect', { class: 'pods-frame', ...rect(pods), rx: 8 }),
              ...lines(true),
              ...inGrid.map((node) => renderNode(node, layout.boxes.get(node.id), use)),
            ].join('\n'),
      ),
      use.isInteractive && pods !== undefined ? renderFolded(pods, podCount, nodes) : '',
      element(
        'g',
        { class: 'shared' },
        [...lines(false), ...shared.map((node) => renderNode(node, layout.boxes.get(node.id), use)), ' '].join('\n'),
      ),
    ].join('\n'),
  );
}

/** Renders the box that replaces the Pods of a folded band on the page. */
function renderFolded(pods: Box, podCount: number, nodes: readonly GraphNode[]): string {
  const names = nodes.filter(({ kind }) => kind === 'pod').map(({ title }) => title);
  const y = pods.y + (pods.h - SIZES.foldedPods) / 2;
  const first = names.slice(0, 3).join(', ');
  return element(
    'g',
    { class: 'folded' },
    [
      element('rect', { class: 'pods-frame', x: pods.x, y, width: pods.w, height: SIZES.foldedPods, rx: 8 }),
      element('text', { class: 'card-title', x: pods.x + SIZES.podPad, y: y + 19 }, plural(podCount, 'Pod')),
      element(
        'text',
        { class: 'mono', x: pods.x + SIZES.podPad, y: y + 35 },
        escapeXml(
          fitText(
            names.length > 3 ? `${first}, …` : first,
            Math.min(pods.w, SIZES.foldedWidth) - 2 * SIZES.podPad,
            FONTS.text,
          ),
        ),
      ),
    ].join(''),
  );
}

function renderBandHeader({ group, frame, podCount }: Band, nodes: readonly GraphNode[], use: DrawingUse): string {
  const broken = nodes.filter(
    ({ kind, state }) => kind === 'pod' && (state === 'broken' || state === 'missing'),
  ).length;
  const x = frame.x + SIZES.bandPad;
  const y = frame.y + 22;
  const canFold = use.isInteractive && podCount > 0;
  const spans = [
    element('tspan', { class: 'band-title' }, escapeXml(fitText(group.title, 420, FONTS.band))),
    element('tspan', { class: 'band-subtitle', dx: 12 }, escapeXml(group.subtitle)),
    ...(broken === 0 ? [] : [element('tspan', { class: 'bad-text', dx: 12 }, `${broken} broken`)]),
  ].join('');
  const head = [
    element('rect', {
      class: 'band-hit',
      x: frame.x,
      y: frame.y,
      width: frame.w,
      height: SIZES.bandHeader,
      rx: 10,
      'fill-opacity': 0,
    }),
    ...(canFold ? [element('path', { class: 'fold-sign', d: `M${x + 1} ${y - 8}l5 6l5 -6z` })] : []),
    element('text', { x: canFold ? x + 20 : x, y }, spans),
  ].join('');
  return canFold
    ? element(
        'g',
        {
          class: 'band-header',
          tabindex: 0,
          role: 'button',
          'aria-expanded': 'true',
          'aria-label': `Pods of ${group.title}`,
        },
        head,
      )
    : element('g', { class: 'band-header' }, head);
}

function renderNode(node: GraphNode, box: Box | undefined, use: DrawingUse): string {
  if (box === undefined) return '';
  const isBad = node.state === 'broken' || node.state === 'missing';
  const inner = box.w - 2 * SIZES.cardPad - (isBad || node.state === 'warning' ? 16 : 0);
  const x = box.x + SIZES.cardPad;
  const titleFont = node.kind === 'veth' || node.kind === 'rule' ? { ...FONTS.text, px: 12 } : FONTS.title;
  const title = element(
    'text',
    { class: titleFont.kind === 'mono' ? 'mono mono-title' : 'card-title', x, y: box.y + SIZES.cardPad + 11 },
    escapeXml(fitText(node.title, inner, titleFont)),
  );
  const lines = node.lines.map((line, index) =>
    element(
      'text',
      { class: 'mono', x, y: box.y + SIZES.cardPad + 11 + SIZES.titleLine + index * SIZES.textLine - 2 },
      escapeXml(fitText(line, box.w - 2 * SIZES.cardPad, FONTS.text)),
    ),
  );
  const content = [
    element('title', {}, escapeXml([node.title, ...node.lines].join('\n'))),
    element('rect', { class: 'card', ...rect(box), rx: node.kind === 'gateway' ? 16 : 6 }),
    title,
    ...lines,
    ...badge(node, box),
  ].join('');
  const attributes = { class: `node ${node.kind} ${node.owner} ${node.state}`, 'data-id': node.id };
  const state = node.state === 'ok' ? '' : `, ${node.state}`;
  return use.isInteractive
    ? element(
        'g',
        {
          ...attributes,
          tabindex: 0,
          role: 'button',
          'aria-label': `${KIND_NAMES[node.kind]} ${node.title}, ${node.lines.join(', ')}${state}`,
        },
        content,
      )
    : element('g', attributes, content);
}

/** Names of the kinds of boxes, for people. */
export const KIND_NAMES: Readonly<Record<GraphNode['kind'], string>> = {
  pod: 'Pod',
  veth: 'Host veth',
  settings: 'Settings',
  mark: 'nftables',
  rule: 'Rule',
  table: 'Routing table',
  eni: 'ENI',
  nic: 'Interface',
  gateway: 'Beyond',
};

function badge({ state }: GraphNode, box: Box): readonly string[] {
  const x = box.x + box.w - 13;
  const y = box.y + 13;
  if (state === 'warning') {
    return [
      element('circle', { class: 'badge-warning', cx: x, cy: y, r: 7 }),
      element('path', { class: 'badge-sign', d: `M${x} ${y - 3.5}v4M${x} ${y + 3.6}v.1` }),
    ];
  }
  if (state !== 'broken' && state !== 'missing') return [];
  return [
    element('circle', { class: 'badge', cx: x, cy: y, r: 7 }),
    element('path', { class: 'badge-sign', d: `M${x - 2.6} ${y - 2.6}l5.2 5.2m0 -5.2l-5.2 5.2` }),
  ];
}

function renderEdge(edge: GraphEdge, band: Band, layout: Layout): string {
  const from = edge.from.startsWith('group:') ? band.pods : layout.boxes.get(edge.from);
  const to = layout.boxes.get(edge.to);
  if (from === undefined || to === undefined) return '';
  const [x1, y1, x2, y2] = [from.x + from.w, from.y + from.h / 2, to.x, to.y + to.h / 2];
  const bend = Math.max(12, Math.min(34, (x2 - x1) / 2));
  const d =
    edge.kind === 'veth' ? `M${x1} ${y1}H${x2}` : `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
  return element('path', { class: `edge edge-${edge.kind}`, d, 'data-from': edge.from, 'data-to': edge.to });
}

function tip(name: string): string {
  return element(
    'marker',
    {
      id: `tip-${name}`,
      viewBox: '0 0 8 8',
      refX: 7,
      refY: 4,
      markerWidth: 11,
      markerHeight: 11,
      markerUnits: 'userSpaceOnUse',
      orient: 'auto',
    },
    element('path', { class: `tip-${name}`, d: 'M0 0L8 4L0 8z' }),
  );
}

function rect({ x, y, w, h }: Box): {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
} {
  return { x, y, width: w, height: h };
}

function isInGrid({ kind }: GraphNode): boolean {
  return kind === 'pod' || kind === 'veth';
}
