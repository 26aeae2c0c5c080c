import { type Graph, type GraphGroup, type GraphLane, type GraphNode, LANES } from './graph.ts';
import type { TextFont } from './plan-text.ts';

/** A rectangle in pixels, from the drawing's upper left corner. */
export type Box = { readonly x: number; readonly y: number; readonly w: number; readonly h: number };

/** The positions of everything in a drawing, with all bands open. */
export type Layout = {
  readonly width: number;
  readonly height: number;
  readonly lanes: readonly LanePosition[];
  readonly bands: readonly Band[];
  /** Boxes by node id. */
  readonly boxes: ReadonlyMap<string, Box>;
};

/** A column with at least one box. */
type LanePosition = { readonly lane: GraphLane; readonly title: string; readonly x: number; readonly w: number };

/** The strip of one group, over the whole width. */
export type Band = {
  readonly group: GraphGroup;
  readonly frame: Box;
  /** Frame around its Pods; undefined when it has none. */
  readonly pods: Box | undefined;
  readonly podCount: number;
  /** Height that the band loses when its Pods are folded. The shared boxes then move up by half of it. */
  readonly foldsBy: number;
};

/** Sizes for drawing and page, in pixels. */
export const SIZES = {
  margin: 24,
  /** Gap between two columns, for edges and paths. */
  laneGap: 60,
  /** Gap between two bands, for paths. */
  bandGap: 22,
  bandHeader: 34,
  bandPad: 18,
  laneHeader: 38,
  cardGap: 12,
  cardPad: 10,
  titleLine: 17,
  textLine: 15,
  /** Gap between two rows of Pods, for paths. */
  rowGap: 12,
  podWidth: 204,
  vethGap: 16,
  vethWidth: 128,
  podColumnGap: 26,
  podPad: 14,
  foldedPods: 46,
  /** Width of the column of Pods while all of them are folded. */
  foldedWidth: 300,
} as const;

/** Fonts of the drawing. */
export const FONTS = {
  title: { kind: 'sans', px: 12.5, isBold: true },
  text: { kind: 'mono', px: 11 },
  band: { kind: 'sans', px: 14, isBold: true },
} as const satisfies Readonly<Record<string, TextFont>>;

const LANE_WIDTHS: Readonly<Record<Exclude<GraphLane, 'pods'>, number>> = {
  marks: 176,
  rules: 248,
  tables: 274,
  links: 216,
  vpc: 168,
};

const LANE_TITLES: Readonly<Record<GraphLane, string>> = {
  pods: 'Pods and their host veths',
  marks: 'nftables, settings',
  rules: 'Routing rules',
  tables: 'Routing tables',
  links: 'ENIs and NICs',
  vpc: 'VPC',
};

/** Places every box: bands from top to bottom, columns from the Pods to the VPC. Equal drawings get equal layouts. */
export function planLayout(graph: Graph): Layout {
  const byGroup = Map.groupBy(graph.nodes, ({ group }) => group);
  const columns = podColumns(
    [...byGroup.values()].map((nodes) => nodes.filter(isPod).length).filter((pods) => pods > 0),
  );
  const lanes = placeLanes(graph.nodes, columns);
  const last = lanes.at(-1);
  const width = (last === undefined ? 0 : last.x + last.w) + SIZES.bandPad + SIZES.margin;
  const boxes = new Map<string, Box>();
  const bands: Band[] = [];
  let y = SIZES.margin + SIZES.laneHeader;
  for (const group of graph.groups) {
    const band = placeBand(group, byGroup.get(group.id) ?? [], { lanes, columns, y, width }, boxes);
    bands.push(band);
    y = band.frame.y + band.frame.h + SIZES.bandGap;
  }
  return { width, height: y - SIZES.bandGap + SIZES.margin, lanes, bands, boxes };
}

/**
 * Returns the number of Pod columns in each band, so that the drawing is not much higher than wide. `pods` has the
 * number of Pods of each band.
 */
function podColumns(pods: readonly number[]): number {
  const ratio = (columns: number): number => {
    const width = REST_WIDTH + columns * CELL_WIDTH;
    const height = pods.reduce(
      (sum, count) => sum + Math.max(2, Math.ceil(count / columns)) * CELL_HEIGHT + BAND_HEIGHT,
      REST_HEIGHT,
    );
    return width / height;
  };
  let columns = 1;
  while (columns < MAX_COLUMNS && ratio(columns + 1) <= SCREEN_RATIO) columns++;
  return columns;
}

/**
 * Widest ratio of width to height. People scroll down more readily than sideways, and the panel needs space beside the
 * drawing.
 */
const SCREEN_RATIO = 1;
/** Largest number of columns: with more, the text of a drawing that fits the screen is too small to read. */
const MAX_COLUMNS = 3;
const REST_WIDTH = 1480;
const REST_HEIGHT = 400;
const CELL_WIDTH = 374;
const CELL_HEIGHT = 60;
const BAND_HEIGHT = 100;

/** Returns the height of a box, by its lines. */
function cardHeight({ lines }: Pick<GraphNode, 'lines'>): number {
  return 2 * SIZES.cardPad - 4 + SIZES.titleLine + lines.length * SIZES.textLine;
}

function placeLanes(nodes: readonly GraphNode[], columns: number): readonly LanePosition[] {
  const used = new Set(nodes.map(({ lane }) => lane));
  const cell = SIZES.podWidth + SIZES.vethGap + SIZES.vethWidth;
  const podsWidth = 2 * SIZES.podPad + columns * cell + (columns - 1) * SIZES.podColumnGap;
  const positions: LanePosition[] = [];
  let x = SIZES.margin + SIZES.bandPad;
  for (const lane of LANES) {
    if (!used.has(lane)) continue;
    const w = lane === 'pods' ? podsWidth : LANE_WIDTHS[lane];
    positions.push({ lane, title: LANE_TITLES[lane], x, w });
    x += w + SIZES.laneGap;
  }
  return positions;
}

type BandPosition = {
  readonly lanes: readonly LanePosition[];
  readonly columns: number;
  readonly y: number;
  readonly width: number;
};

function placeBand(
  group: GraphGroup,
  nodes: readonly GraphNode[],
  position: BandPosition,
  boxes: Map<string, Box>,
): Band {
  const pods = nodes.filter(isPod);
  const veths = new Map(nodes.flatMap((node) => (node.podNode === undefined ? [] : [[node.podNode, node] as const])));
  const shared = nodes.filter((node) => node.kind !== 'pod' && node.kind !== 'veth');
  const stacks = Map.groupBy(shared, ({ lane }) => lane);
  const sharedHeight = Math.max(0, ...[...stacks.values()].map(stackHeight));
  const rows = Math.ceil(pods.length / position.columns);
  const rowHeight = Math.max(0, ...[...pods, ...veths.values()].map(cardHeight));
  const gridHeight = rows === 0 ? 0 : 2 * SIZES.podPad + rows * rowHeight + (rows - 1) * SIZES.rowGap;
  const body = Math.max(sharedHeight, gridHeight);
  const folded = Math.max(sharedHeight, rows === 0 ? 0 : SIZES.foldedPods);
  const top = position.y + SIZES.bandHeader;
  for (const { lane, x, w } of position.lanes) {
    const stack = stacks.get(lane) ?? [];
    placeStack(stack, { x, y: top + (body - stackHeight(stack)) / 2, w, h: 0 }, boxes);
  }
  const [podLane] = position.lanes;
  const grid =
    rows === 0 || podLane === undefined
      ? undefined
      : { x: podLane.x, y: top + (body - gridHeight) / 2, w: podLane.w, h: gridHeight };
  if (grid !== undefined) placePods(pods, veths, rowHeight, rows, grid, boxes);
  const frame = {
    x: SIZES.margin,
    y: position.y,
    w: position.width - 2 * SIZES.margin,
    h: SIZES.bandHeader + body + SIZES.bandPad,
  };
  return { group, frame, pods: grid, podCount: pods.length, foldsBy: body - folded };
}

/** Places Pods down each column, then in the next one, so that names are found in order. */
function placePods(
  pods: readonly GraphNode[],
  veths: ReadonlyMap<string, GraphNode>,
  rowHeight: number,
  rows: number,
  grid: Box,
  boxes: Map<string, Box>,
): void {
  const cell = SIZES.podWidth + SIZES.vethGap + SIZES.vethWidth + SIZES.podColumnGap;
  for (const [index, pod] of pods.entries()) {
    const x = grid.x + SIZES.podPad + Math.floor(index / rows) * cell;
    const y = grid.y + SIZES.podPad + (index % rows) * (rowHeight + SIZES.rowGap);
    boxes.set(pod.id, { x, y, w: SIZES.podWidth, h: rowHeight });
    const veth = veths.get(pod.id);
    if (veth !== undefined) {
      boxes.set(veth.id, { x: x + SIZES.podWidth + SIZES.vethGap, y, w: SIZES.vethWidth, h: rowHeight });
    }
  }
}

function placeStack(stack: readonly GraphNode[], at: Box, boxes: Map<string, Box>): void {
  let { y } = at;
  for (const node of stack) {
    const h = cardHeight(node);
    boxes.set(node.id, { x: at.x, y, w: at.w, h });
    y += h + SIZES.cardGap;
  }
}

function stackHeight(stack: readonly GraphNode[]): number {
  return stack.reduce((sum, node) => sum + cardHeight(node), 0) + Math.max(0, stack.length - 1) * SIZES.cardGap;
}

function isPod({ kind }: GraphNode): boolean {
  return kind === 'pod';
}
