import type { Graph, GraphPath } from './graph.ts';

/** A box that the line of a path passes. */
export type PathStopRef = {
  readonly node: string;
  /** How the line to it is drawn. after: behind a broken hop, where packets do not come. */
  readonly line: 'ok' | 'broken' | 'after';
};

/** Finds the boxes that the line of a path passes, each once in a row. Settings are on the way only where they break it. */
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
      // Several hops in one box: the line to it tells the worst of them.
      if (verdict === 'broken' && !isBroken) stops[stops.length - 1] = { node, line: 'broken' };
    } else {
      stops.push({ node, line: isBroken ? 'after' : verdict === 'broken' ? 'broken' : 'ok' });
    }
    isBroken ||= verdict === 'broken';
  }
  return stops;
}
