import type { ElementId } from '../../../inspection/catalogue/element-id.ts';
import { type Finding, findingKey, uniqueFindings } from '../../../inspection/catalogue/finding.ts';
import type { Explanation, Hop, Path } from '../../../inspection/explain/explanation.ts';
import { shortSelector } from './build-rule-boxes.ts';
import { type Graph, type GraphNode, type GraphPath, type GraphState, type GraphStep, NODE_GROUP } from './graph.ts';

/**
 * Adds paths and findings to a drawing. Each hop and each finding belongs to the box of its element. A box gets the
 * state of its worst hop or finding. A rule that is missing gets a box of its own.
 */
export function attachPaths(graph: Graph, explanations: readonly Explanation[], findings: readonly Finding[]): Graph {
  const canvas = openCanvas(graph.nodes);
  const causes = causesOf(explanations);
  const all = uniqueFindings([...causes, ...findings]);
  const indexOf = new Map(all.map((finding, index) => [findingKey(finding), index]));
  const paths = explanations.flatMap((one) => one.paths.map((path) => pathOf(one, path, canvas, indexOf)));
  for (const [index, finding] of all.entries()) {
    for (const [at, subject] of finding.subjects.entries()) {
      const box = canvas.find(subject) ?? (at === 0 ? canvas.ghost(subject, undefined, NODE_GROUP) : undefined);
      // The first subject is what is wrong; the others are affected by it.
      if (box !== undefined) canvas.blame(box, at === 0 ? STATE_OF[finding.severity] : 'ok', index);
    }
  }
  return { ...graph, nodes: inOrder(canvas.nodes()), paths, findings: all };
}

const STATE_OF: Readonly<Record<Finding['severity'], GraphState>> = { error: 'broken', warning: 'warning', info: 'ok' };

/**
 * Returns the findings of the Pods, without those of hops after a broken one: these show what would come next, not what
 * to repair.
 */
function causesOf(explanations: readonly Explanation[]): readonly Finding[] {
  const hops = explanations.flatMap(({ paths }) => paths.map((path) => path.hops));
  const causes = hops.flatMap((path) => path.slice(0, brokenAt(path) + 1).flatMap(({ finding }) => finding ?? []));
  const keys = new Set(causes.map(findingKey));
  const consequences = new Set(
    hops
      .flatMap((path) => path.slice(brokenAt(path) + 1).flatMap(({ finding }) => finding ?? []))
      .map(findingKey)
      .filter((key) => !keys.has(key)),
  );
  const others = explanations
    .flatMap((one) => one.findings)
    .filter((finding) => !consequences.has(findingKey(finding)));
  return uniqueFindings([...causes, ...others]);
}

/** Returns the index of the first broken hop, or the number of hops where none is broken. */
function brokenAt(hops: readonly { readonly verdict: Hop['verdict'] }[]): number {
  const at = hops.findIndex(({ verdict }) => verdict === 'broken');
  return at < 0 ? hops.length : at;
}

/** Puts boxes of missing rules among the other rules, in the order of their priorities. */
function inOrder(nodes: readonly GraphNode[]): readonly GraphNode[] {
  const priority = ({ title }: GraphNode) => Number.parseInt(title, 10) || 0;
  const rules = nodes.filter(({ kind }) => kind === 'rule').sort((a, b) => priority(a) - priority(b));
  return [...nodes.filter(({ kind }) => kind !== 'rule'), ...rules];
}

/** The boxes of a drawing, by the elements that they stand for. */
type Canvas = {
  /** Returns the box that stands for an element; where several do, the one of `group`. */
  find(element: ElementId, group?: string): GraphNode | undefined;
  /** Adds the box of a missing rule. Other missing things have a box that shows it already. */
  ghost(element: ElementId, hop: Hop | undefined, group: string): GraphNode | undefined;
  blame(box: GraphNode, state: GraphState, finding?: number): void;
  nodes(): readonly GraphNode[];
};

function openCanvas(initial: readonly GraphNode[]): Canvas {
  const boxes = new Map(initial.map((node) => [node.id, node]));
  const byElement = new Map<ElementId, string[]>();
  const register = (node: GraphNode): void => {
    for (const element of new Set([node.id, ...node.elements]))
      byElement.set(element, [...(byElement.get(element) ?? []), node.id]);
  };
  initial.forEach(register);
  const links = new Map(
    initial
      .filter(({ lane }) => lane === 'links' || lane === 'pods')
      .map((node) => [node.title.split(' ')[0] ?? '', node.id]),
  );
  for (const node of initial) {
    const ifname = node.kind === 'eni' ? node.lines[0]?.split(' ')[0] : undefined;
    if (ifname !== undefined) links.set(ifname, node.id);
  }
  return {
    find: (element, group) => {
      for (const candidate of [element, ...fallbackElements(element, links)]) {
        const found = (byElement.get(candidate) ?? []).flatMap((id) => boxes.get(id) ?? []);
        const box = found.find((node) => node.group === group) ?? found[0];
        if (box !== undefined) return box;
      }
      return undefined;
    },
    ghost: (element, hop, group) => {
      if (!element.startsWith('rule:')) return undefined;
      const box: GraphNode = {
        id: element,
        kind: 'rule',
        lane: 'rules',
        group,
        title: titleOfElement(element),
        lines: ['not there'],
        owner: 'ours',
        state: 'missing',
        elements: [element],
        facts: hop === undefined ? [] : [{ title: 'Rule', rows: hop.details }],
        findings: [],
      };
      boxes.set(box.id, box);
      register(box);
      return box;
    },
    blame: ({ id }, state, finding) => {
      const box = boxes.get(id);
      if (box === undefined) return;
      const findings =
        finding === undefined || box.findings.includes(finding) ? box.findings : [...box.findings, finding];
      boxes.set(id, {
        ...box,
        findings,
        state: SEVERITY.indexOf(state) > SEVERITY.indexOf(box.state) ? state : box.state,
      });
    },
    nodes: () => [...boxes.values()],
  };
}

/** States, the worst last. */
const SEVERITY: readonly GraphState[] = ['ok', 'unknown', 'warning', 'broken', 'missing'];

/**
 * Returns elements whose box also stands for an element without a box: the table of a route, the interface of a setting
 * or neighbour.
 */
function fallbackElements(element: ElementId, links: ReadonlyMap<string, string>): readonly string[] {
  const [, inPod] = /^(?:link|route|neigh):([^:]+\/[^:]+):/.exec(element) ?? [];
  if (inPod !== undefined) return [`pod:${inPod}`];
  const [, table] = /^route:(\d+):/.exec(element) ?? [];
  if (table !== undefined) return [`table:${table}`];
  const [, ifindex] = /^neigh:(\d+):/.exec(element) ?? [];
  if (ifindex !== undefined) return [`link:${ifindex}`];
  const [, ifname] = /^sysctl:net\.ipv[46]\.conf\.(.+)\.[a-z_]+$/.exec(element) ?? [];
  const ofLink = ifname === undefined ? undefined : links.get(ifname);
  if (ofLink !== undefined) return [ofLink];
  return element.startsWith('sysctl:') ? ['settings'] : [];
}

function pathOf(one: Explanation, path: Path, canvas: Canvas, indexOf: ReadonlyMap<string, number>): GraphPath {
  const pod = canvas.find(one.element);
  const group = pod?.group ?? NODE_GROUP;
  const lastIndex = brokenAt(path.hops);
  const steps = path.hops.map((hop, at): GraphStep => {
    // An incoming packet gets its mark from no chain of an ENI: the hop belongs to the box of the whole table.
    const boxGroup = hop.kind === 'nft' && path.direction === 'to-pod' ? NODE_GROUP : group;
    const box = missingBox(hop, group, canvas) ?? boxOfHop(one, hop, boxGroup, canvas);
    const index = hop.finding === undefined ? undefined : indexOf.get(findingKey(hop.finding));
    const isCause = at <= lastIndex && (hop.verdict === 'broken' || hop.verdict === 'warning');
    if (box !== undefined && isCause) canvas.blame(box, hop.verdict === 'broken' ? 'broken' : 'warning', index);
    return {
      kind: hop.kind,
      node: box?.id,
      title: hop.title,
      details: hop.details,
      verdict: hop.verdict,
      ...(index === undefined ? {} : { finding: index }),
    };
  });
  const broken = steps.find(({ verdict }) => verdict === 'broken');
  if (pod !== undefined && broken !== undefined) canvas.blame(pod, 'broken', broken.finding);
  return { pod: pod?.id ?? one.element, direction: path.direction, from: path.from, to: path.to, steps };
}

/** Returns the box of the missing rule that breaks a hop. The rule that matched instead is not at fault. */
function missingBox({ verdict, finding, ...hop }: Hop, group: string, canvas: Canvas): GraphNode | undefined {
  const [subject] = finding?.subjects ?? [];
  if (verdict !== 'broken' || subject === undefined || !subject.startsWith('rule:')) return undefined;
  const box = canvas.find(subject, group) ?? canvas.ghost(subject, { verdict, ...hop }, group);
  return box?.state === 'missing' ? box : undefined;
}

function boxOfHop(one: Explanation, hop: Hop, group: string, canvas: Canvas): GraphNode | undefined {
  const found = canvas.find(hop.element, group);
  if (found !== undefined) return found;
  if (hop.kind === 'cloud') return canvas.find(`gateway~${group}`);
  // A missing veth has no index; its box has the id of the Pod.
  if (hop.kind === 'veth') return canvas.find(one.element.replace(/^pod:/, 'veth:'));
  return hop.verdict === 'broken' ? canvas.ghost(hop.element, hop, group) : undefined;
}

function titleOfElement(element: ElementId): string {
  const [, priority, selector = ''] = /^rule:\d:(\d+):(.*)$/.exec(element) ?? [];
  return priority === undefined ? 'no rule' : `${priority}: ${shortSelector(selector)}`;
}
