import type { Graph, GraphPath } from './graph.ts';

/** A box that the line of a path passes. */
export type PathStopRef = {
  readonly node: string;
  /** How the line to it is drawn. after: behind a broken hop, where packets do not come. */
  readonly line: 'ok' | 'broken' | 'after';
};

/** Finds the boxes that the line of a path passes, each once in a row. Settings of the node are on the way only where they break it. */
export function findPathStops(graph: Graph, path: GraphPath): readonly PathStopRef[] {
  const kinds = new Map(graph.nodes.map(({ id, kind }) => [id, kind]));
  const stops: PathStopRef[] = [];
  let isBroken = false;
  for (const { node, verdict } of path.steps) {
    const kind = node === undefined ? undefined : kinds.get(node);
    if (node === undefined || kind === undefined || (kind === 'settings' && verdict !== 'broken')) {
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
