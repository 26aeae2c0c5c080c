import type { Graph, GraphPath } from './graph.ts';

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
