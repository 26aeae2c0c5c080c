import type { Finding } from '../finding.ts';
import { ifKnown } from '../node/known.ts';
import type { ClusterFacts, ClusterNec, ClusterNode } from './cluster-facts.ts';
import { holdingsOf } from './find-addresses.ts';

/** One node of the cluster. */
export type NodeRow = {
  readonly node: string;
  readonly instanceId: string;
  readonly instanceType: string;
  readonly zone: string;
  readonly enis: EniCounts;
  readonly addresses: AddressCounts;
  /** What the agent asks for; undefined before it did. */
  readonly desired: number | undefined;
  /** Most addresses by the limits of the instance; undefined when not known yet. */
  readonly quota: number | undefined;
  /** Most addresses that the subnets let it have now; undefined when they do not limit it. */
  readonly allocatable: number | undefined;
  /** What people set by annotations. */
  readonly settings: readonly string[];
  /** The heaviest first. */
  readonly problems: readonly NodeProblem[];
};

/** How many ENIs are in which state; exclusive ones are counted apart. */
export type EniCounts = {
  readonly attached: number;
  readonly attaching: number;
  readonly detaching: number;
  /** Of those attached. */
  readonly draining: number;
  readonly exclusive: number;
  readonly max: number | undefined;
};

/** How many addresses for Pods; those of exclusive ENIs are left out. */
export type AddressCounts = {
  readonly assigned: number;
  readonly releasing: number;
  /** Undefined when Pods may not be listed. */
  readonly used: number | undefined;
  readonly free: number | undefined;
};

/** What is wrong with a node. */
export type NodeProblem = {
  readonly severity: Finding['severity'];
  /** One word: that of a condition, or ours. */
  readonly reason: string;
  readonly message: string;
};

const NO_ENIS: EniCounts = { attached: 0, attaching: 0, detaching: 0, draining: 0, exclusive: 0, max: undefined };
const WEIGHT: Readonly<Record<Finding['severity'], number>> = { error: 0, warning: 1, info: 2 };

/** Makes a row for every NodeENIConfig, and for every Node that ought to have one, those with problems first. Pure. */
export function findNodeRows(facts: ClusterFacts): readonly NodeRow[] {
  const nodes = ifKnown(facts.nodes);
  const byName = new Map((nodes ?? []).map((node) => [node.key, node]));
  const podIps = podIpsOf(facts);
  const rows = facts.necs.map((nec) =>
    rowOf(nec, byName.get(nec.key), nodes !== undefined, podIps?.get(nec.key), podIps !== undefined),
  );
  const withNec = new Set(facts.necs.map(({ key }) => key));
  const bare = (nodes ?? []).filter((node) => node.isTainted && !withNec.has(node.key)).map(bareRow);
  return [...rows, ...bare].toSorted((a, b) => weightOf(a) - weightOf(b) || (a.node < b.node ? -1 : 1));
}

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
  node: ClusterNode | undefined,
  areNodesKnown: boolean,
  podIps: ReadonlySet<string> | undefined,
  arePodsKnown: boolean,
): NodeRow {
  const { spec, status } = nec;
  const shared = holdingsOf(nec).filter(({ role }) => role === 'shared');
  const releasing = shared.filter(({ isReleasing }) => isReleasing).length;
  const used = arePodsKnown ? shared.filter(({ ip }) => podIps?.has(ip) === true).length : undefined;
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
    settings: [...nec.settings, ...(node?.settings ?? [])],
    problems: problemsOf(nec, node, areNodesKnown).toSorted((a, b) => WEIGHT[a.severity] - WEIGHT[b.severity]),
  };
}

/** A Node that our taint keeps Pods from and that ipamd made nothing for yet. */
function bareRow(node: ClusterNode): NodeRow {
  const message = 'the node waits for ipamd: it has the taint and no NodeENIConfig';
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
    problems: [{ severity: 'error', reason: 'NoNodeENIConfig', message }],
  };
}

function eniCountsOf({ spec, status }: ClusterNec): EniCounts {
  const all = status.eniInfos ?? [];
  const shared = all.filter(({ mode }) => mode !== 'direct-eni');
  const inState = (wanted: string) => shared.filter(({ state }) => state === wanted);
  return {
    attached: inState('Attached').length,
    attaching: inState('Attaching').length,
    detaching: inState('Detaching').length,
    draining: inState('Attached').filter(({ draining }) => draining === true).length,
    exclusive: all.length - shared.length,
    max: spec.maxRouteENI,
  };
}

/** Reasons of Ready that are no trouble by themselves: they pass. */
const PASSING: readonly string[] = ['CallUnderWay', 'Draining'];

function problemsOf(nec: ClusterNec, node: ClusterNode | undefined, areNodesKnown: boolean): readonly NodeProblem[] {
  const { spec, status, faults } = nec;
  const [fault, ...more] = faults;
  const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
  const seen = spec.observedSupplyEpoch ?? 0;
  return [
    ...(fault === undefined ? [] : [{ severity: 'error' as const, reason: 'Malformed', message: `${fault}${rest}` }]),
    ...(status.conditions ?? []).flatMap(problemOfCondition),
    ...(seen > (status.supplyEpoch ?? 0)
      ? [
          {
            severity: 'warning' as const,
            reason: 'OldState',
            message: `the agent has seen supply epoch ${seen}, the object has ${status.supplyEpoch ?? 0}: a restored etcd?`,
          },
        ]
      : []),
    ...(areNodesKnown ? nodeProblems(nec, node) : []),
    ...(nec.leavingSinceMs === undefined
      ? []
      : [{ severity: 'info' as const, reason: 'Leaving', message: 'its NodeENIConfig is being deleted' }]),
  ];
}

/** Ready is good when true; every other condition tells a trouble while it is true. */
function problemOfCondition({
  type,
  status,
  reason,
  message = '',
}: NonNullable<ClusterNec['status']['conditions']>[number]): readonly NodeProblem[] {
  if (type === 'Ready') {
    if (status === 'True') return [];
    return [{ severity: PASSING.includes(reason) ? 'info' : 'error', reason, message }];
  }
  return status === 'True' ? [{ severity: 'warning', reason: type, message: `${reason}: ${message}` }] : [];
}

function nodeProblems(nec: ClusterNec, node: ClusterNode | undefined): readonly NodeProblem[] {
  if (node === undefined) {
    return [{ severity: 'warning', reason: 'NoNode', message: 'the cluster has no Node of this name' }];
  }
  return [
    ...(node.isTainted
      ? [{ severity: 'error' as const, reason: 'Tainted', message: 'the agent does not serve: no Pod is sent here' }]
      : []),
    ...(node.isReady
      ? []
      : [{ severity: 'warning' as const, reason: 'NodeNotReady', message: `kubelet of ${nec.key} is not ready` }]),
  ];
}

function weightOf({ problems }: NodeRow): number {
  const [first] = problems;
  return first === undefined ? WEIGHT.info + 1 : WEIGHT[first.severity];
}

/** What all nodes have together. */
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

/** Sums rows up. Pure. */
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
