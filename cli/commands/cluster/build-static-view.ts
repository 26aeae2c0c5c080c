import type { NodeEniInfo } from '../../../crd/node-eni-config-fields.ts';
import { canonicalAddress } from '../../../dataplane/ip-prefix.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import { compareTexts } from '../../../runtime/compare-texts.ts';
import { paint } from '../../output/color.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import type { ClaimStatus, ClusterFacts, ClusterNec, Identity } from './cluster-facts.ts';
import { type ClusterLayout, countText } from './render-nodes.ts';
import { spanText } from './render-span.ts';

/**
 * Static addresses, EIPs and ENIs, which belong to a Pod's name. A field is undefined where permission to read it is
 * missing.
 */
type StaticView = {
  readonly claims: PhaseCounts | undefined;
  readonly eips: PhaseCounts | undefined;
  /** Claims and EIPs that their Pod still waits for: failed ones first, then the oldest. */
  readonly waiting: readonly WaitingRow[];
  readonly idle: readonly IdleRow[] | undefined;
  readonly exclusive: readonly ExclusiveRow[];
};

/** Number of objects, in total and by phase; 'none' for those without a phase. */
type PhaseCounts = { readonly total: number; readonly byPhase: Readonly<Record<string, number>> };

/** A claim that is not bound yet. */
type WaitingRow = {
  readonly kind: 'address' | 'EIP';
  /** `namespace/name` of the claim and of its Pod. */
  readonly key: string;
  readonly phase: string;
  /** Age in milliseconds; undefined when the start is not known. */
  readonly ageMs: number | undefined;
  readonly node: string;
  readonly message: string;
};

/** Retained addresses without a Pod, of one node and one subnet. */
type IdleRow = {
  /** Name of the node; '' for addresses on no ENI. */
  readonly node: string;
  readonly subnetId: string;
  readonly count: number;
  /** Age of the oldest in milliseconds; undefined when not known. */
  readonly oldestMs: number | undefined;
};

/** Exclusive ENIs (one Pod each) of one node. */
type ExclusiveRow = {
  /** Name of the node; '' for ENIs on no instance. */
  readonly node: string;
  /** Undefined when permission to list Pods is missing. */
  readonly inUse: number | undefined;
  readonly spare: number | undefined;
  /** Retained for the name of a Pod that does not exist. */
  readonly kept: number;
};

/**
 * Counts static claims, EIPs and exclusive ENIs, and lists the claims that wait. Records of Pods without a static
 * address are left out.
 */
export function buildStaticView(facts: ClusterFacts): StaticView {
  const claims = ifKnown(facts.claims)?.filter(({ isRecord }) => !isRecord);
  const eips = ifKnown(facts.eips);
  const waiting = [
    ...(claims ?? []).flatMap((claim) => waitingRow('address', claim, facts.takenAtMs)),
    ...(eips ?? []).flatMap((eip) => waitingRow('EIP', eip, facts.takenAtMs)),
  ];
  return {
    claims: claims && countsOf(claims),
    eips: eips && countsOf(eips),
    waiting: waiting.toSorted(
      (a, b) =>
        Number(b.phase === 'Failed') - Number(a.phase === 'Failed') ||
        (b.ageMs ?? 0) - (a.ageMs ?? 0) ||
        compareTexts(a.key, b.key),
    ),
    idle: idleRows(facts),
    exclusive: exclusiveRows(facts),
  };
}

/** Returns whether a claim failed, or has waited for longer than `graceMs`. */
export function hasStaticProblem({ waiting }: StaticView, graceMs: number): boolean {
  return waiting.some(({ phase, ageMs = 0 }) => phase === 'Failed' || ageMs >= graceMs);
}

function countsOf(statuses: readonly ClaimStatus[]): PhaseCounts {
  const byPhase: Record<string, number> = {};
  for (const { phase } of statuses) {
    const key = phase === '' ? 'none' : phase;
    byPhase[key] = (byPhase[key] ?? 0) + 1;
  }
  return { total: statuses.length, byPhase };
}

/** Phases before a claim is bound; '' until ipamd has written a phase. */
const UNBOUND_PHASES = new Set(['', 'Pending', 'Allocating', 'Binding', 'Failed']);

function waitingRow(
  kind: WaitingRow['kind'],
  one: Identity & ClaimStatus & { readonly nodeName: string },
  nowMs: number,
): readonly WaitingRow[] {
  if (!UNBOUND_PHASES.has(one.phase)) return [];
  const sinceMs = one.sinceMs === 0 ? one.createdMs : one.sinceMs;
  const ageMs = sinceMs === 0 ? undefined : Math.max(0, nowMs - sinceMs);
  return [{ kind, key: one.key, phase: one.phase, ageMs, node: one.nodeName, message: one.message }];
}

/**
 * Builds rows from VpcIPs, which have the subnet, and from claims, which have the time since when they are retained.
 */
function idleRows(facts: ClusterFacts): readonly IdleRow[] | undefined {
  const vips = ifKnown(facts.vips);
  if (vips === undefined) return undefined;
  const retained = new Map((ifKnown(facts.claims) ?? []).map(({ key, retainedMs }) => [key, retainedMs]));
  const idle = vips.filter((vip) => !vip.isRecord && !vip.isEnis && vip.podKey !== '' && vip.podUid === '');
  const groups = Map.groupBy(idle, ({ eniId, nodeName, subnetId }) => `${eniId === '' ? '' : nodeName}\t${subnetId}`);
  const rows = [...groups].map(([key, members]): IdleRow => {
    const [node = '', subnetId = ''] = key.split('\t');
    const since = members.flatMap(({ podKey }) => retained.get(podKey) ?? []);
    const oldestMs = since.length === 0 ? undefined : Math.max(0, facts.takenAtMs - Math.min(...since));
    return { node, subnetId, count: members.length, oldestMs };
  });
  return rows.toSorted((a, b) => compareTexts(a.node, b.node) || compareTexts(a.subnetId, b.subnetId));
}

function exclusiveRows(facts: ClusterFacts): readonly ExclusiveRow[] {
  const pods = ifKnown(facts.pods);
  const podIps = pods === undefined ? undefined : new Set(pods.flatMap(({ ips }) => ips));
  const rows = facts.necs.flatMap((nec) => exclusiveRow(nec, podIps));
  const onNodes = new Set(facts.necs.flatMap(({ status }) => (status.eniInfos ?? []).map(({ eniID }) => eniID)));
  const venis = ifKnown(facts.venis) ?? [];
  const off = venis.filter(
    ({ isExclusive, isRetained, eniId }) => isExclusive && isRetained && !onNodes.has(eniId),
  ).length;
  const rest: readonly ExclusiveRow[] = off === 0 ? [] : [{ node: '', inUse: 0, spare: 0, kept: off }];
  return [...rest, ...rows.toSorted((a, b) => compareTexts(a.node, b.node))];
}

function exclusiveRow(nec: ClusterNec, podIps: ReadonlySet<string> | undefined): readonly ExclusiveRow[] {
  const enis = (nec.status.eniInfos ?? []).filter(({ mode }) => mode === 'direct-eni');
  if (enis.length === 0) return [];
  const kept = enis.filter(({ claim }) => claim !== undefined && claim.uid === undefined).length;
  const inUse = podIps && enis.filter((eni) => hasPod(eni, podIps)).length;
  return [{ node: nec.key, inUse, spare: inUse === undefined ? undefined : enis.length - kept - inUse, kept }];
}

/** Returns whether a Pod uses the ENI: its claim has a Pod, or a Pod's status lists its address. */
function hasPod({ claim, primaryIP, primaryIPv6 }: NodeEniInfo, podIps: ReadonlySet<string>): boolean {
  if (claim !== undefined) return claim.uid !== undefined;
  return [primaryIP, primaryIPv6].some((ip) => ip !== undefined && podIps.has(canonicalAddress(ip)));
}

/** Renders the totals, then waiting claims with their reason, then addresses and ENIs without a Pod. */
export function renderStaticView(view: StaticView, layout: ClusterLayout): string {
  const { waiting, idle, exclusive } = view;
  const blocks = [
    sumText(view, layout),
    ...(waiting.length === 0 ? [] : [renderTable(waiting, WAITING, layout)]),
    ...(idle === undefined || idle.length === 0 ? [] : [renderTable(idle, IDLE, layout)]),
    ...(exclusive.length === 0 ? [] : [renderTable(exclusive, EXCLUSIVE, layout)]),
  ];
  return blocks.join('\n');
}

const WAITING: readonly Column<WaitingRow>[] = [
  { title: 'WAITS FOR', text: ({ kind }) => kind },
  { title: 'POD', text: ({ key }) => key },
  {
    title: 'PHASE',
    text: ({ phase }) => (phase === '' ? '-' : phase),
    color: ({ phase }) => (phase === 'Failed' ? 'red' : 'yellow'),
  },
  { title: 'SINCE', text: ({ ageMs }) => ageText(ageMs), align: 'right' },
  { title: 'NODE', text: ({ node }) => (node === '' ? '-' : node), priority: 1 },
  { title: 'MESSAGE', text: ({ message }) => message },
];

const IDLE: readonly Column<IdleRow>[] = [
  { title: 'KEPT ON', text: ({ node }) => (node === '' ? 'no node' : node) },
  { title: 'SUBNET', text: ({ subnetId }) => subnetId },
  { title: 'ADDRESSES', text: ({ count }) => `${count}`, align: 'right' },
  { title: 'OLDEST', text: ({ oldestMs }) => ageText(oldestMs), align: 'right' },
];

const EXCLUSIVE: readonly Column<ExclusiveRow>[] = [
  { title: 'WHOLE ENIS OF', text: ({ node }) => (node === '' ? 'no node' : node) },
  { title: 'IN USE', text: ({ inUse }) => countText(inUse), align: 'right' },
  { title: 'SPARE', text: ({ spare }) => countText(spare), align: 'right' },
  { title: 'KEPT', text: ({ kept }) => `${kept}`, align: 'right' },
];

function sumText({ claims, eips, idle, exclusive }: StaticView, { isColored }: ClusterLayout): string {
  const addresses = idle?.reduce((sum, { count }) => sum + count, 0);
  const sum = (of: (row: ExclusiveRow) => number | undefined): number | undefined =>
    exclusive.some((row) => of(row) === undefined)
      ? undefined
      : exclusive.reduce((total, row) => total + (of(row) ?? 0), 0);
  const enis = [
    `${countText(sum(({ inUse }) => inUse))} in use`,
    `${countText(sum(({ spare }) => spare))} spare`,
    `${countText(sum(({ kept }) => kept))} kept`,
  ];
  const lines = [
    ['claims', countsText(claims)],
    ['addresses', `${countText(addresses)} wait for a Pod of their name`],
    ['EIPs', countsText(eips)],
    ['whole ENIs', enis.join(', ')],
  ] as const;
  return lines.map(([what, text]) => `${paint(what.padEnd(SUM_WIDTH), 'bold', isColored)}${text}\n`).join('');
}

/** Width of the longest label plus a gap. */
const SUM_WIDTH = 12;

/** Phases in the order of a claim's life cycle. */
const PHASES = ['Bound', 'Retained', 'Pending', 'Allocating', 'Binding', 'Releasing', 'Failed'];

function countsText(counts: PhaseCounts | undefined): string {
  if (counts === undefined) return '?';
  const { total, byPhase } = counts;
  const rank = (phase: string): number => (PHASES.includes(phase) ? PHASES.indexOf(phase) : PHASES.length);
  const ordered = Object.entries(byPhase).toSorted(([a], [b]) => rank(a) - rank(b));
  const text = ordered.map(([phase, count]) => `${count} ${phase}`).join(', ');
  return text === '' ? `${total}` : `${total}: ${text}`;
}

function ageText(ms: number | undefined): string {
  return ms === undefined ? '?' : spanText(ms);
}
