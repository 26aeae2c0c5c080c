import test from 'ava';
import fc from 'fast-check';
import { buildGraph } from '../../../../cli/commands/graph/build-graph.ts';
import type { Graph } from '../../../../cli/commands/graph/graph.ts';
import { type Box, type Layout, planLayout } from '../../../../cli/commands/graph/plan-layout.ts';
import { findPathStops, pathLine, planStops } from '../../../../cli/commands/graph/plan-path-line.ts';
import { assertLaw } from '../../../support/law.ts';
import { explanationFixture } from './explanation-fixture.ts';
import { nodeFixture } from './node-fixture.ts';

const someNode = fc.record({
  enis: fc.integer({ min: 0, max: 9 }),
  podsPerEni: fc.integer({ min: 0, max: 40 }),
  ruleMode: fc.constantFrom('compact' as const, 'per-pod' as const),
  families: fc.constantFrom([4] as const, [4, 6] as const),
  hasAgent: fc.boolean(),
});

function drawingOf(
  spec: Parameters<typeof nodeFixture>[0],
  explained = 3,
): { readonly graph: Graph; readonly layout: Layout } {
  const facts = nodeFixture(spec);
  const pods = [...facts.pods.slice(0, explained), ...facts.pods.slice(-1)];
  const graph = buildGraph(facts, { explanations: pods.map((pod) => explanationFixture(facts, pod)), findings: [] });
  return { graph, layout: planLayout(graph) };
}

const isApart = (a: Box, b: Box): boolean =>
  a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
const isWithin = (inner: Box, outer: Box): boolean =>
  inner.x >= outer.x &&
  inner.y >= outer.y &&
  inner.x + inner.w <= outer.x + outer.w &&
  inner.y + inner.h <= outer.y + outer.h;

test('planLayout: no two boxes overlap, and each is inside its band', async (t) => {
  await assertLaw(
    t,
    () =>
      fc.property(someNode, (spec) => {
        const { graph, layout } = drawingOf(spec);
        const places = graph.nodes.map((node) => ({ node, box: layout.boxes.get(node.id) }));
        for (const [index, { node, box }] of places.entries()) {
          const frame = layout.bands.find(({ group }) => group.id === node.group)?.frame;
          if (box === undefined || frame === undefined) return false;
          if (!isWithin(box, frame)) return false;
          if (places.slice(index + 1).some((other) => other.box === undefined || !isApart(box, other.box)))
            return false;
        }
        return true;
      }),
    { numRuns: 40 },
  );
});

test('planLayout: bands stand below each other, inside the drawing', (t) => {
  const { layout } = drawingOf({ enis: 4, podsPerEni: 13 });
  for (const [index, { frame }] of layout.bands.entries()) {
    t.true(isWithin(frame, { x: 0, y: 0, w: layout.width, h: layout.height }));
    const next = layout.bands[index + 1]?.frame;
    if (next !== undefined) t.true(frame.y + frame.h < next.y);
  }
});

test('planLayout: a node of 200 Pods is at most three times as high as wide, one of 4 Pods wider than high', (t) => {
  const large = drawingOf({ enis: 8, podsPerEni: 25 }).layout;
  t.true(large.height < 3 * large.width, `${large.width}x${large.height}`);
  const small = drawingOf({ enis: 1, podsPerEni: 4 }).layout;
  t.true(small.width > small.height);
});

/** The corners of a line; each rounding's control point is the corner itself. */
function cornersOf(d: string): readonly (readonly [number, number])[] {
  return [...d.matchAll(/[MLQ](-?[\d.]+) (-?[\d.]+)/g)].map((match) => [Number(match[1]), Number(match[2])] as const);
}

/** The part of a straight piece that is inside a box, in pixels. */
function lengthInside([x1, y1]: readonly [number, number], [x2, y2]: readonly [number, number], box: Box): number {
  const overlap = (a: number, b: number, from: number, to: number) =>
    Math.max(0, Math.min(Math.max(a, b), to) - Math.max(Math.min(a, b), from));
  const across = overlap(x1, x2, box.x, box.x + box.w);
  const down = overlap(y1, y2, box.y, box.y + box.h);
  const isInX = Math.min(x1, x2) < box.x + box.w && Math.max(x1, x2) > box.x;
  const isInY = Math.min(y1, y2) < box.y + box.h && Math.max(y1, y2) > box.y;
  return isInX && isInY ? Math.max(across, down) : 0;
}

test('pathLine: lines of paths cross no box', async (t) => {
  let pieces = 0;
  await assertLaw(
    t,
    () =>
      fc.property(someNode, (spec) => {
        const { graph, layout } = drawingOf(spec);
        const stops = planStops(graph, layout);
        for (const path of graph.paths) {
          const refs = findPathStops(graph, path);
          for (const [index, { node }] of refs.entries()) {
            const from = stops.get(refs[index - 1]?.node ?? '');
            const to = stops.get(node);
            if (from === undefined || to === undefined) continue;
            const corners = cornersOf(pathLine(from, to, path.direction === 'from-pod' ? -3 : 3));
            for (const [at, corner] of corners.slice(1).entries()) {
              const before = corners[at] ?? corner;
              pieces += 1;
              if ([...layout.boxes.values()].some((box) => lengthInside(before, corner, box) > 1)) {
                throw new Error(
                  `${path.direction} from ${refs[index - 1]?.node} to ${node}: crosses a box between ${before} and ${corner}`,
                );
              }
            }
          }
        }
        return true;
      }),
    { numRuns: 30 },
  );
  t.true(pieces > 100);
});
