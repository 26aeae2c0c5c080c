import { bySeverity, SEVERITY_RANK } from '../../../inspection/catalogue/finding.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import { compareTexts } from '../../../runtime/compare-texts.ts';
import { necAddresses } from './build-address-index.ts';
import type { ClusterFacts, ClusterNec, ClusterNode } from './cluster-facts.ts';
import { findNetworkProblems } from './find-network-problems.ts';
import { bareNodeProblem, findNodeProblems, type GracePeriod, type NodeProblem } from './find-node-problems.ts';

/** One node of the cluster. */
export type NodeRow = {
  readonly node: string;
  readonly instanceId: string;
  readonly instanceType: string;
  readonly zone: string;
  readonly enis: EniCounts;
  readonly addresses: AddressCounts;
  /** Number of addresses that the agent requests; undefined until it has written one. */
  readonly desired: number | undefined;
  /** Largest number of addresses by the limits of the instance; undefined when not known yet. */
  readonly quota: number | undefined;
  /** Largest number of addresses that the subnets allow now; undefined when they are no limit. */
  readonly allocatable: number | undefined;
  /** Settings that users made by annotations. */
  readonly settings: readonly string[];
  /** Problems, the most severe first. */
  readonly problems: readonly NodeProblem[];
};

/** Number of ENIs by state; exclusive ENIs are counted separately. */
type EniCounts = {
  readonly attached: number;
  readonly attaching: number;
  readonly detaching: number;
  /** Attached ENIs that are draining; `attached` includes them. */
  readonly draining: number;
  readonly exclusive: number;
  readonly max: number | undefined;
};

/** Number of addresses for Pods; those of exclusive ENIs are left out. */
type AddressCounts = {
  readonly assigned: number;
  readonly releasing: number;
  /** Undefined when permission to list Pods is missing. */
  readonly used: number | undefined;
  readonly free: number | undefined;
};

const NO_ENIS: EniCounts = { attached: 0, attaching: 0, detaching: 0, draining: 0, exclusive: 0, max: undefined };
/**
 * Returns a row for every NodeENIConfig, and for every Node that should have one, those with problems first. A
 * transient state counts as a problem when it is older than `graceMs`.
 */
export function buildNodeRows(facts: ClusterFacts, graceMs: number): readonly NodeRow[] {
  const nodes = ifKnown(facts.nodes);
  const byName = new Map((nodes ?? []).map((node) => [node.key, node]));
  const podIps = podIpsOf(facts);
  const grace = { nowMs: facts.takenAtMs, graceMs };
  const network = findNetworkProblems(facts, grace);
  const rows = facts.necs.map((nec) => {
    const node = nodes === undefined ? 'unknown' : byName.get(nec.key);
    const ips = podIps === undefined ? undefined : (podIps.get(nec.key) ?? NO_IPS);
    return withProblems(rowOf(nec, node, ips, grace), network.get(nec.key));
  });
  const withNec = new Set(facts.necs.map(({ key }) => key));
  const bare = (nodes ?? [])
    .filter(({ key, taints }) => !withNec.has(key) && (taints.length > 0 || (network.get(key) ?? []).length > 0))
    .map((node) => withProblems(bareRow(node, grace), network.get(node.key)));
  return [...rows, ...bare].toSorted((a, b) => weightOf(a) - weightOf(b) || compareTexts(a.node, b.node));
}

function withProblems(row: NodeRow, more: readonly NodeProblem[] = []): NodeRow {
  return more.length === 0 ? row : { ...row, problems: [...row.problems, ...more].toSorted(bySeverity) };
}

const NO_IPS: ReadonlySet<string> = new Set();

function podIpsOf(facts: ClusterFacts): ReadonlyMap<string, ReadonlySet<string>> | undefined {
  const pods = ifKnown(facts.pods);
  if (pods === undefined) return undefined;
  const ips = new Map<string, Set<string>>();
  for (const pod of pods) {
    const there = ips.get(pod.nodeName) ?? new Set();
    ips.set(pod.nodeName, there);
    for (const ip of pod.ips) there.add(ip);
  }
  return ips;
}

function rowOf(
  nec: ClusterNec,
  node: ClusterNode | 'unknown' | undefined,
  podIps: ReadonlySet<string> | undefined,
  grace: GracePeriod,
): NodeRow {
  const { spec, status } = nec;
  const shared = necAddresses(nec).filter(({ role }) => role === 'shared');
  const releasing = shared.filter(({ isReleasing }) => isReleasing).length;
  const used = podIps === undefined ? undefined : shared.filter(({ ip }) => podIps.has(ip)).length;
  const idle = shared.filter(({ ip, isReleasing }) => !isReleasing && podIps?.has(ip) !== true).length;
  const enis = eniCountsOf(nec);
  const { maxIPPerENI } = spec;
  return {
    node: nec.key,
    instanceId: status.instanceID ?? '',
    instanceType: status.instanceType ?? '',
    zone: status.zone ?? '',
    enis,
    addresses: { assigned: shared.length, releasing, used, free: used === undefined ? undefined : idle },
    desired: spec.desiredRouteENIIP,
    quota: enis.max === undefined || maxIPPerENI === undefined ? undefined : enis.max * maxIPPerENI,
    allocatable: status.allocatableRouteENIIPs,
    settings: [...nec.settings, ...(node === 'unknown' ? [] : (node?.settings ?? []))],
    problems: findNodeProblems(nec, node, grace),
  };
}

/** Returns the row of a Node without a NodeENIConfig: one that has our taint, or a problem with its podCIDR. */
function bareRow(node: ClusterNode, grace: GracePeriod): NodeRow {
  return {
    node: node.key,
    instanceId: '',
    instanceType: '',
    zone: '',
    enis: NO_ENIS,
    addresses: { assigned: 0, releasing: 0, used: 0, free: 0 },
    desired: undefined,
    quota: undefined,
    allocatable: undefined,
    settings: node.settings,
    problems: node.taints.length > 0 ? [bareNodeProblem(node, grace)] : [],
  };
}

function eniCountsOf({ spec, status }: ClusterNec): EniCounts {
  const all = status.eniInfos ?? [];
  const shared = all.filter(({ mode }) => mode !== 'direct-eni');
  const inState = (expected: string) => shared.filter(({ state }) => state === expected);
  return {
    attached: inState('Attached').length,
    attaching: inState('Attaching').length,
    detaching: inState('Detaching').length,
    draining: inState('Attached').filter(({ draining }) => draining === true).length,
    exclusive: all.length - shared.length,
    max: spec.maxRouteENI,
  };
}

function weightOf({ problems }: NodeRow): number {
  const [first] = problems;
  return first === undefined ? SEVERITY_RANK.info + 1 : SEVERITY_RANK[first.severity];
}

/** Totals of all nodes. */
export type ClusterTotals = {
  readonly nodes: number;
  readonly withProblems: number;
  readonly enis: number;
  readonly assigned: number;
  readonly used: number | undefined;
  readonly free: number | undefined;
  readonly releasing: number;
  readonly desired: number;
  readonly quota: number;
};

/** Returns the totals of rows. */
export function totalsOf(rows: readonly NodeRow[]): ClusterTotals {
  const sum = (of: (row: NodeRow) => number | undefined) => rows.reduce((total, row) => total + (of(row) ?? 0), 0);
  const known = (of: (row: NodeRow) => number | undefined) =>
    rows.some((row) => of(row) === undefined) ? undefined : sum(of);
  return {
    nodes: rows.length,
    withProblems: rows.filter(({ problems }) => problems.some(({ severity }) => severity !== 'info')).length,
    enis: sum(({ enis }) => enis.attached + enis.exclusive),
    assigned: sum(({ addresses }) => addresses.assigned),
    used: known(({ addresses }) => addresses.used),
    free: known(({ addresses }) => addresses.free),
    releasing: sum(({ addresses }) => addresses.releasing),
    desired: sum(({ desired }) => desired),
    quota: sum(({ quota }) => quota),
  };
}
