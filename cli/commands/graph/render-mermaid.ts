import { type Graph, type GraphEdge, type GraphGroup, type GraphNode, type GraphPath, groupEnd } from './graph.ts';
import { findPathStops } from './plan-path-line.ts';
import { oneLine } from './plan-text.ts';

/**
 * From this number of Pods on, one box stands for all Pods of a group that are in order and that the user did not name.
 */
const MERGED_FROM = 25;

/** Longest text of a line, characters: Mermaid does not wrap it. */
const MAX_LINE_LENGTH = 60;

/** What is drawn, and the names of the boxes in the chart. */
type Chart = {
  readonly graph: Graph;
  readonly names: ReadonlyMap<string, string>;
  /** Names of groups by their ids. */
  readonly groups: ReadonlyMap<string, string>;
  /** Number of Pods that one box stands for, by group. */
  readonly merged: ReadonlyMap<string, number>;
};

/**
 * Renders a drawing as a Mermaid flowchart, for Markdown that draws it (GitHub, GitLab) or the live editor.
 * @see https://mermaid.js.org/syntax/flowchart.html
 */
export function renderMermaid(graph: Graph, focus: readonly GraphPath[]): string {
  const chart = planChart(graph, focus);
  const edges = graph.edges.flatMap((edge) => edgeLines(edge, chart));
  const paths = focus.flatMap((path) => pathPieces(path, chart));
  const styles = Map.groupBy(
    paths.map(({ style }, index) => ({ look: style, index: edges.length + index })),
    ({ look }) => look,
  );
  const lines = [
    '---',
    // JSON is valid YAML, quotes included.
    `title: ${JSON.stringify(`${oneLine(graph.title)} · ${oneLine(graph.subtitle)}`)}`,
    '---',
    'flowchart LR',
    ...graph.groups.flatMap((group) => groupLines(group, chart)),
    ...edges.map((edge) => `  ${edge}`),
    ...paths.map(({ line }) => `  ${line}`),
    ...[...styles].map(
      ([look, members]) => `  linkStyle ${members.map(({ index }) => index).join(',')} ${LINE_STYLES[look]}`,
    ),
    ...CLASSES.map((line) => `  ${line}`),
  ];
  return `${lines.join('\n')}\n`;
}

/** Styles of the lines of paths, as in the other drawings. */
const LINE_STYLES = {
  'from-pod': 'stroke:#1a5fd0,stroke-width:3px',
  'to-pod': 'stroke:#0c7a55,stroke-width:3px',
  broken: 'stroke:#c11a2b,stroke-width:3px,stroke-dasharray:7 5',
  after: 'stroke:#98a3b3,stroke-width:2px,stroke-dasharray:2 5',
} as const;

/** Styles of boxes: dark text on a light box is readable on light and dark pages. */
const CLASSES = [
  'classDef pod fill:#e8f0fe,stroke:#7aa0dd,color:#1b2430',
  'classDef veth fill:#eef2f7,stroke:#a9b8cc,color:#1b2430',
  'classDef mark fill:#f4ecfb,stroke:#b894d6,color:#1b2430',
  'classDef rule fill:#fdf3e0,stroke:#d9ab55,color:#1b2430',
  'classDef table fill:#e9f6ef,stroke:#76b795,color:#1b2430',
  'classDef eni fill:#e3f4f8,stroke:#63abc0,color:#1b2430',
  'classDef plain fill:#ffffff,stroke:#aab4c2,color:#1b2430',
  'classDef warning fill:#fff6dc,stroke:#d19a1c,color:#1b2430,stroke-width:2px',
  'classDef broken fill:#fdeaec,stroke:#c11a2b,color:#1b2430,stroke-width:3px',
  'classDef missing fill:#fdeaec,stroke:#c11a2b,color:#1b2430,stroke-width:3px,stroke-dasharray:6 4',
] as const;

function planChart(graph: Graph, focus: readonly GraphPath[]): Chart {
  const focused = new Set(focus.flatMap((path) => [path.pod, ...path.steps.map(({ node }) => node ?? path.pod)]));
  const states = new Map(graph.nodes.map(({ id, state }) => [id, state]));
  const isMany = graph.nodes.filter(({ kind }) => kind === 'pod').length >= MERGED_FROM;
  const isMerged = ({ id, kind, state, podNode }: GraphNode): boolean => {
    if (!isMany || (kind !== 'pod' && kind !== 'veth')) return false;
    const pod = podNode ?? id;
    return !focused.has(pod) && state === 'ok' && states.get(pod) === 'ok';
  };
  const merged = Map.groupBy(
    graph.nodes.filter((node) => node.kind === 'pod' && isMerged(node)),
    ({ group }) => group,
  );
  return {
    graph,
    names: new Map(graph.nodes.filter((node) => !isMerged(node)).map(({ id }, index) => [id, `n${index}`])),
    groups: new Map(graph.groups.map(({ id }, index) => [id, `g${index}`])),
    merged: new Map([...merged].map(([group, pods]) => [group, pods.length])),
  };
}

function groupLines({ id, title, subtitle }: GraphGroup, { graph, names, groups, merged }: Chart): readonly string[] {
  const name = groups.get(id) ?? '';
  const boxes = graph.nodes.filter((node) => node.group === id && names.has(node.id));
  const hidden = merged.get(id) ?? 0;
  const inside = [
    ...boxes.map((node) => `${names.get(node.id)}["${boxLabel(node)}"]:::${classOf(node)}`),
    ...(hidden === 0 ? [] : [`${name}pods["${hidden} Pods"]:::pod`]),
  ];
  // Mermaid draws an empty subgraph as a box with its name.
  return inside.length === 0
    ? []
    : [
        `  subgraph ${name}["${label(`${title} · ${subtitle}`)}"]`,
        '    direction LR',
        ...inside.map((line) => `    ${line}`),
        '  end',
        `  style ${name} fill:none,stroke:#98a3b3`,
      ];
}

function edgeLines({ from, to }: GraphEdge, { graph, names, groups, merged }: Chart): readonly string[] {
  const end = names.get(to);
  if (end === undefined) return [];
  const start = names.get(from);
  if (start !== undefined) return [`${start} --- ${end}`];
  const group = graph.groups.find(({ id }) => from === groupEnd(id));
  if (group === undefined) return [];
  const veths = graph.nodes.filter((node) => node.group === group.id && node.kind === 'veth');
  const starts = [
    ...veths.flatMap(({ id }) => names.get(id) ?? []),
    ...(merged.has(group.id) ? [`${groups.get(group.id)}pods`] : []),
  ];
  return starts.map((each) => `${each} --- ${end}`);
}

/** Renders the arrows of a path from box to box; only the first has a label. */
function pathPieces(
  path: GraphPath,
  { graph, names }: Chart,
): readonly { readonly line: string; readonly style: keyof typeof LINE_STYLES }[] {
  const stops = findPathStops(graph, path).filter(({ node }) => names.has(node));
  return stops.slice(1).map(({ node, line }, index) => {
    const text = index === 0 ? `|"${label(`${path.from} to ${path.to}`)}"|` : '';
    return {
      line: `${names.get(stops[index]?.node ?? '')} ==>${text} ${names.get(node)}`,
      style: line === 'ok' ? path.direction : line,
    };
  });
}

function boxLabel({ title, lines }: GraphNode): string {
  return [title, ...lines].map((line) => label(line)).join('<br/>');
}

function classOf({ kind, state, owner }: GraphNode): string {
  if (state === 'broken' || state === 'missing' || state === 'warning') return state;
  if (kind === 'nic') return 'eni';
  return kind === 'gateway' || kind === 'settings' || owner !== 'ours' ? 'plain' : kind;
}

/** Escapes a text, so that Mermaid and its HTML treat it as text: all but plain characters become character codes. */
function label(text: string): string {
  const line = oneLine(text);
  const cut = line.length > MAX_LINE_LENGTH ? `${[...line].slice(0, MAX_LINE_LENGTH - 1).join('')}…` : line;
  return cut.replace(/[^\p{L}\p{N} .,:/=+·…_-]/gu, (character) => `#${character.codePointAt(0)};`);
}
