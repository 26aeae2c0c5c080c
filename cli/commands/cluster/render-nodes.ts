import type { PodCidrRecord } from '../../../crd/pod-cidr-record.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { plainText } from '../../../runtime/plain-text.ts';
import { cutText } from '../../output/cell-text.ts';
import { type Color, paint } from '../../output/color.ts';
import { plural } from '../../output/plural.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import { wrapText } from '../../output/render-text.ts';
import { type ClusterTotals, type NodeRow, totalsOf } from './build-node-rows.ts';
import type { RouteView } from './find-network-problems.ts';

/** Layout of a view of the cluster. */
export type ClusterLayout = { readonly width: number; readonly isColored: boolean };

const COLORS: Readonly<Record<Finding['severity'], Color>> = { error: 'red', warning: 'yellow', info: 'cyan' };

const COLUMNS: readonly Column<NodeRow>[] = [
  { title: 'NODE', text: ({ node }) => node },
  { title: 'TYPE', text: ({ instanceType }) => instanceType, priority: 5 },
  { title: 'INSTANCE', text: ({ instanceId }) => instanceId, priority: 2 },
  { title: 'ZONE', text: ({ zone }) => zone, priority: 3 },
  { title: 'ENIS', text: enisText, align: 'right' },
  { title: 'ENI STATES', text: statesText, priority: 6 },
  { title: 'IPS', text: ({ addresses }) => `${addresses.assigned}`, align: 'right' },
  { title: 'USED', text: ({ addresses }) => countText(addresses.used), align: 'right' },
  { title: 'FREE', text: ({ addresses }) => countText(addresses.free), align: 'right' },
  { title: 'RELEASING', text: ({ addresses }) => `${addresses.releasing}`, align: 'right', priority: 7 },
  { title: 'WANTED', text: ({ desired }) => countText(desired), align: 'right', priority: 9 },
  { title: 'MOST', text: limitText, align: 'right', priority: 8 },
  { title: 'SET', text: ({ settings }) => settings.join(' '), priority: 1 },
];

/**
 * Returns the column of problems. Its width is limited, so that a long text does not push the numbers off the screen.
 */
function problemColumn(width: number): Column<NodeRow> {
  const maxWidth =
    width === Number.POSITIVE_INFINITY ? width : Math.max(MIN_PROBLEM_WIDTH, Math.floor(width * PROBLEM_SHARE));
  return {
    title: 'PROBLEM',
    text: (row) => cutText(plainText(problemText(row)), maxWidth),
    color: ({ problems: [first] }) => (first === undefined ? undefined : COLORS[first.severity]),
  };
}

const MIN_PROBLEM_WIDTH = 24;
const PROBLEM_SHARE = 0.35;

/** Renders a table row for each node, then the totals. */
export function renderNodes(rows: readonly NodeRow[], layout: ClusterLayout): string {
  if (rows.length === 0) return 'the cluster has no NodeENIConfig\n';
  // Omit columns that are empty for every node.
  const all = [...COLUMNS, problemColumn(layout.width)];
  const columns = all.filter(({ title, text }) => title === 'NODE' || rows.some((row) => text(row) !== ''));
  return `${renderTable(rows, columns, layout)}${renderTotals(totalsOf(rows), layout)}`;
}

/** Renders the totals of all nodes in two lines. */
function renderTotals(totals: ClusterTotals, { isColored }: ClusterLayout): string {
  const { nodes, withProblems, enis, assigned, used, free, releasing, desired, quota } = totals;
  const trouble = withProblems === 0 ? 'no problems' : `${withProblems} with problems`;
  const colored = paint(trouble, withProblems === 0 ? 'green' : 'yellow', isColored);
  const counts = `${countText(used)} used, ${countText(free)} free, ${releasing} releasing`;
  return `${plural(nodes, 'node')}, ${colored}; ${plural(enis, 'ENI')}
${assigned} addresses: ${counts}; ${desired} wanted of ${quota} at most
`;
}

/** Returns a number as text; '?' when not known. */
export function countText(count: number | undefined): string {
  return count === undefined ? '?' : `${count}`;
}

function enisText({ enis }: NodeRow): string {
  const exclusive = enis.exclusive === 0 ? '' : `+${enis.exclusive}`;
  return `${enis.attached}${exclusive}/${countText(enis.max)}`;
}

function statesText({ enis }: NodeRow): string {
  const counts = [
    [enis.attaching, 'attaching'],
    [enis.draining, 'draining'],
    [enis.detaching, 'detaching'],
  ] as const;
  return counts.flatMap(([count, word]) => (count === 0 ? [] : [`${count} ${word}`])).join(' ');
}

/** Returns the present limit of addresses: the instance's, or the subnets' where that is lower. */
function limitText({ quota, allocatable }: NodeRow): string {
  if (quota === undefined) return countText(allocatable);
  return allocatable !== undefined && allocatable < quota ? `${allocatable}(${quota})` : `${quota}`;
}

function problemText({ problems }: NodeRow): string {
  return problems.map(({ reason, message }) => (message === '' ? reason : `${reason}: ${message}`)).join('; ');
}

/** The blocks of podCIDRs, as the view of nodes shows them. */
type PodCidrView = Pick<PodCidrRecord, 'clusterCidrs' | 'maskSize' | 'blocks' | 'waiting' | 'stopped'>;

/** Returns the part of a record that the view of nodes shows, in the form of `-o json`. */
export function viewOfPodCidrs({ clusterCidrs, maskSize, blocks, waiting, stopped }: PodCidrRecord): PodCidrView {
  return { clusterCidrs, maskSize, blocks, waiting, stopped };
}

/** Reports whether Nodes get no podCIDR: none is left, or ipamd has stopped. */
export function isPodCidrProblem({ blocks, waiting, stopped }: PodCidrView): boolean {
  return stopped !== '' || (waiting.count > 0 && blocks.free === 0);
}

/** Renders the blocks of podCIDRs in a line, and what is wrong with them in another. */
export function renderPodCidrs(view: PodCidrView, { width, isColored }: ClusterLayout): string {
  const { clusterCidrs, maskSize, blocks, waiting, stopped } = view;
  const { used, held, free, reserved } = blocks;
  const range = `podCIDRs: /${maskSize} of ${clusterCidrs.join(', ')}`;
  const line = `${range}: ${used} used, ${held} held, ${free} free, ${reserved} of Services and subnets`;
  const more = waiting.count > waiting.nodes.length ? ', …' : '';
  const nodes = plural(waiting.count, 'node');
  const problems = [
    ...(waiting.count === 0 ? [] : [`${nodes} without a podCIDR: ${waiting.nodes.join(', ')}${more}`]),
    ...(stopped === '' ? [] : [`no podCIDR is given: ${stopped}`]),
  ];
  const color = isPodCidrProblem(view) ? 'red' : 'yellow';
  const lines = wrapText(plainText(line), width);
  const texts = problems.flatMap((text) => wrapText(plainText(text), width));
  return [...lines, ...texts.map((text) => paint(text, color, isColored))].map((text) => `${text}\n`).join('');
}

/** Renders in a line how many nodes have their route of the VPC, and in another which do not. */
export function renderRoutes(view: RouteView, { width, isColored }: ClusterLayout): string {
  const { routed, missing, missingCount, unknown } = view;
  const unwritten = unknown === 0 ? '' : `, ${unknown} of which no controller of routes tells`;
  const line = `routes of the VPC to podCIDRs: ${routed} nodes have theirs, ${missingCount} have none${unwritten}`;
  const more = missingCount > missing.length ? ', …' : '';
  const names = missing.length === 0 ? [] : wrapText(plainText(`without a route: ${missing.join(', ')}${more}`), width);
  return [...wrapText(line, width), ...names.map((text) => paint(text, 'red', isColored))]
    .map((text) => `${text}\n`)
    .join('');
}
