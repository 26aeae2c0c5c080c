import type { Graph, GraphNode } from './graph.ts';
import { type Layout, SIZES } from './plan-layout.ts';
import type { PathStop } from './plan-path-line.ts';

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
