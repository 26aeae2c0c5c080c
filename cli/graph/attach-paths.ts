import type { Explanation, Hop, Path } from '../explain/explanation.ts';
import { type Finding, findingKey, uniqueFindings } from '../finding.ts';
import type { ElementId } from '../node/element-id.ts';
import { shortSelector } from './find-rule-boxes.ts';
import { type Graph, type GraphNode, type GraphPath, type GraphState, type GraphStep, NODE_GROUP } from './graph.ts';

/**
 * Adds paths and findings to a drawing: each hop and each finding is laid on the box that stands for its element, boxes
 * take the colour of the worst that is said of them, and what should be there and is not gets a box of its own.
 */
export function attachPaths(graph: Graph, explanations: readonly Explanation[], findings: readonly Finding[]): Graph {
  const canvas = openCanvas(graph.nodes);
  const causes = causesOf(explanations);
  const known = new Set(causes.map((finding) => placedKey(finding, canvas)));
  // What differs from the plan is often what explain found already, in other words.
  const all = uniqueFindings([...causes, ...findings.filter((finding) => !known.has(placedKey(finding, canvas)))]);
  const indexOf = new Map(all.map((finding, index) => [findingKey(finding), index]));
  const paths = explanations.flatMap((one) => one.paths.map((path) => pathOf(one, path, canvas, indexOf)));
  for (const [index, finding] of all.entries()) {
    for (const [at, subject] of finding.subjects.entries()) {
      const box = canvas.find(subject) ?? (at === 0 ? canvas.ghost(subject, undefined, NODE_GROUP) : undefined);
      // The first subject is what is wrong, the others are whom it concerns.
      if (box !== undefined) canvas.blame(box, at === 0 ? STATE_OF[finding.severity] : 'ok', index);
    }
  }
  return { ...graph, nodes: inOrder(canvas.nodes()), paths, findings: all };
}

const STATE_OF: Readonly<Record<Finding['severity'], GraphState>> = { error: 'broken', warning: 'warning', info: 'ok' };

/** Findings of the Pods, without those of hops behind a broken one: they tell what would come next, not what to cure. */
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

/** Index of the first broken hop; behind the last one where none is. */
function brokenAt(hops: readonly { readonly verdict: Hop['verdict'] }[]): number {
  const at = hops.findIndex(({ verdict }) => verdict === 'broken');
  return at < 0 ? hops.length : at;
}

/** Equal for findings that say the same of the same box. */
function placedKey({ id, subjects: [subject = ''] }: Finding, canvas: Canvas): string {
  return `${id} ${canvas.find(subject)?.id ?? subject}`;
}

/** Rules that are not there stand where they would be asked. */
function inOrder(nodes: readonly GraphNode[]): readonly GraphNode[] {
  const priority = ({ title }: GraphNode) => Number.parseInt(title, 10) || 0;
  const rules = nodes.filter(({ kind }) => kind === 'rule').sort((a, b) => priority(a) - priority(b));
  return [...nodes.filter(({ kind }) => kind !== 'rule'), ...rules];
}

/** The boxes while they are being coloured. */
type Canvas = {
  /** Box that stands for an element; that of `group` where several do. */
  find(element: ElementId, group?: string): GraphNode | undefined;
  /** Makes the box of a rule that is not there; other things have one that shows it. */
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
      for (const candidate of [element, ...lesserNames(element, links)]) {
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

/** What stands for an element that has no box of its own: a route's table, the interface of a setting or a neighbour. */
function lesserNames(element: ElementId, links: ReadonlyMap<string, string>): readonly string[] {
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
  const lastAt = brokenAt(path.hops);
  const steps = path.hops.map((hop, at): GraphStep => {
    // A packet that comes in is marked by no ENI's chain.
    const place = hop.kind === 'nft' && path.direction === 'to-pod' ? NODE_GROUP : group;
    const box = missingBox(hop, group, canvas) ?? boxOfHop(one, hop, place, canvas);
    const index = hop.finding === undefined ? undefined : indexOf.get(findingKey(hop.finding));
    const isCause = at <= lastAt && (hop.verdict === 'broken' || hop.verdict === 'warning');
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

/** The box of the rule that a broken hop lacks: what took its place is as it should be. */
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
  // A veth that is not there has no number to be named by.
  if (hop.kind === 'veth') return canvas.find(one.element.replace(/^pod:/, 'veth:'));
  return hop.verdict === 'broken' ? canvas.ghost(hop.element, hop, group) : undefined;
}

function titleOfElement(element: ElementId): string {
  const [, priority, selector = ''] = /^rule:\d:(\d+):(.*)$/.exec(element) ?? [];
  return priority === undefined ? 'no rule' : `${priority}: ${shortSelector(selector)}`;
}
