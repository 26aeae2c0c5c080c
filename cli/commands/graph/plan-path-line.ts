import type { Graph, GraphNode, GraphPath } from './graph.ts';
import { type Layout, SIZES } from './plan-layout.ts';

/** A box on a path, with the surroundings that its line needs. Plain numbers, in pixels. */
type PathStop = {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
  /** Number of its column, from the left. */
  readonly lane: number;
  /** Number of its band, from the top. */
  readonly band: number;
  readonly bandTop: number;
  /** Middle of the gaps left and right of its column. */
  readonly gapLeft: number;
  readonly gapRight: number;
  /** True for boxes in the grid of Pods: lines leave them by the gaps between the rows. */
  readonly isInGrid: boolean;
};

/**
 * Plans the line of a path from one box to the next as an SVG path: straight pieces in the gaps between columns, rows
 * and bands, so that it crosses no label. `nudge` keeps lines of several paths apart.
 *
 * The text of this function is also part of the page's script: it must use nothing but its arguments.
 */
export function pathLine(from: PathStop, to: PathStop, nudge: number): string {
  const CORNER = 6;
  const GUTTER = 6;
  const middle = (stop: PathStop) => stop.y + stop.h / 2 + nudge;
  // How a line leaves a box: by its side, into the gap beside its column.
  const leave = (stop: PathStop, isRight: boolean): [number, number][] => {
    const side = isRight ? stop.x + stop.w : stop.x;
    const gap = (isRight ? stop.gapRight : stop.gapLeft) + nudge * 2;
    const out = (isRight ? side + 14 : side - 14) + nudge;
    const row = stop.y - GUTTER + nudge / 2;
    return stop.isInGrid
      ? [
          [side, middle(stop)],
          [out, middle(stop)],
          [out, row],
          [gap, row],
        ]
      : [
          [side, middle(stop)],
          [gap, middle(stop)],
        ];
  };
  const points: [number, number][] = [];
  if (from.isInGrid && to.isInGrid && from.y === to.y) {
    const isRight = to.x > from.x;
    points.push([isRight ? from.x + from.w : from.x, middle(from)], [isRight ? to.x : to.x + to.w, middle(to)]);
  } else {
    const start = leave(from, from.isInGrid || to.lane >= from.lane);
    // It enters by the right side from the same column or the next one to the right, and into the grid; else by the
    // left side.
    const end = leave(to, to.isInGrid || to.lane === from.lane || to.lane === from.lane - 1).reverse();
    const a = start[start.length - 1] ?? [0, 0];
    const b = end[0] ?? [0, 0];
    const isNear = Math.abs(a[0] - b[0]) < 1;
    const lower = from.band > to.band ? from : to;
    const across = lower.bandTop - 11 + nudge * 2;
    points.push(
      ...start,
      ...(isNear
        ? []
        : ([
            [a[0], across],
            [b[0], across],
          ] as [number, number][])),
      ...end,
    );
  }
  const corners = points.filter((point, index) => {
    const previous = points[index - 1];
    return previous === undefined || Math.abs(previous[0] - point[0]) > 0.1 || Math.abs(previous[1] - point[1]) > 0.1;
  });
  const towards = (a: [number, number], b: [number, number]): [number, number] => {
    const length = Math.hypot(b[0] - a[0], b[1] - a[1]);
    const step = Math.min(CORNER, length / 2) / (length || 1);
    return [a[0] + (b[0] - a[0]) * step, a[1] + (b[1] - a[1]) * step];
  };
  const text = (point: [number, number]) => `${Math.round(point[0] * 10) / 10} ${Math.round(point[1] * 10) / 10}`;
  return corners
    .map((point, index) => {
      const before = corners[index - 1];
      const after = corners[index + 1];
      if (before === undefined) return `M${text(point)}`;
      if (after === undefined) return `L${text(point)}`;
      return `L${text(towards(point, before))}Q${text(point)} ${text(towards(point, after))}`;
    })
    .join('');
}

/** Plans where lines of paths meet each box; returns the stops by node id. */
export function planStops(graph: Graph, layout: Layout): ReadonlyMap<string, PathStop> {
  const bands = new Map(layout.bands.map((band, index) => [band.group.id, { top: band.frame.y, index }]));
  return new Map(
    graph.nodes.flatMap((node): readonly (readonly [string, PathStop])[] => {
      const box = layout.boxes.get(node.id);
      const band = bands.get(node.group);
      const lane = layout.lanes.findIndex((position) => position.lane === node.lane);
      const position = layout.lanes[lane];
      if (box === undefined || band === undefined || position === undefined) return [];
      return [
        [
          node.id,
          {
            ...box,
            lane,
            band: band.index,
            bandTop: band.top,
            gapLeft: position.x - SIZES.laneGap / 2,
            gapRight: position.x + position.w + SIZES.laneGap / 2,
            isInGrid: isInGrid(node),
          },
        ],
      ];
    }),
  );
}

function isInGrid({ kind }: GraphNode): boolean {
  return kind === 'pod' || kind === 'veth';
}

/** A box on the line of a path. */
type PathStopRef = {
  readonly node: string;
  /** How the line to this box is drawn. after: behind a broken hop, where packets do not arrive. */
  readonly line: 'ok' | 'broken' | 'after';
};

/**
 * Finds the boxes on the line of a path; neighbouring hops in one box count once. Settings are on the line only where
 * they break the path.
 */
export function findPathStops(graph: Graph, path: GraphPath): readonly PathStopRef[] {
  const ids = new Set(graph.nodes.map(({ id }) => id));
  const stops: PathStopRef[] = [];
  let isBroken = false;
  for (const { kind, node, verdict } of path.steps) {
    if (node === undefined || !ids.has(node) || (kind === 'sysctl' && (verdict !== 'broken' || isBroken))) {
      isBroken ||= verdict === 'broken';
      continue;
    }
    const last = stops.at(-1);
    if (last?.node === node) {
      // Several hops are in one box: the line to it shows the worst of them.
      if (verdict === 'broken' && !isBroken) stops[stops.length - 1] = { node, line: 'broken' };
    } else {
      stops.push({ node, line: isBroken ? 'after' : verdict === 'broken' ? 'broken' : 'ok' });
    }
    isBroken ||= verdict === 'broken';
  }
  return stops;
}
