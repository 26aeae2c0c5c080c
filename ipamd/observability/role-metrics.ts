import type { OrphanOutcome, Swept } from '../../cloud/orphan-sweep.ts';
import type { BlockCounts } from '../../crd/pod-cidr-record.ts';
import { type MetricFactory, MS_PER_S } from '../../observability/metric-factory.ts';
import type { ProblemRegistry } from '../../observability/problem-registry.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { CiliumNodeState, CiliumObserver } from '../cilium/cilium-reconciler.ts';
import type { NodesObserver } from '../node-lifecycle/node-controller.ts';
import type { PodCidrObserver } from '../pod-cidrs/pod-cidr-reports.ts';
import type { ClaimAuditObserver } from '../static/audit-claims.ts';
import type { ClaimsObserver } from '../static/claim-reconciler.ts';
import type { ClaimDifference } from '../static/compare-claims.ts';
import type { ReservationSweepObserver } from '../static/sweep-reservations.ts';
import { countNodesByZone } from '../subnets/count-nodes-by-zone.ts';
import type { SubnetsObserver } from '../subnets/open-subnets.ts';
import type { SubnetState } from '../subnets/subnet-cache.ts';
import type { NodeObserver } from '../supply/node-deps.ts';

/** Buckets around the cloud's limits: one ENI takes seconds, 5,000 nodes at once take about half an hour. */
export const WARM_BUCKETS_S = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600] as const;

/** Prefix of the reporters of all nodes: a new leader starts without them. */
export const NODE_REPORTERS = 'node/';

/** Counts calls, writes and repairs for the supply of nodes. */
export function createNodeObserver(factory: MetricFactory, problems: ProblemRegistry): NodeObserver {
  const calls = factory.counter('node_calls_total', 'Changes asked of the cloud for nodes, by how they ended.', [
    'action',
    'outcome',
    'code',
  ]);
  const took = factory.histogram(
    'node_call_seconds',
    'Time of a change asked of the cloud, its task included.',
    WARM_BUCKETS_S,
    ['action'],
  );
  const writes = factory.counter('node_writes_total', 'Guarded writes of NodeENIConfigs.', ['result']);
  const describes = factory.counter('node_describes_total', 'Times that the cloud was asked what it holds for a node.');
  const drift = factory.counter('node_drift_total', 'Differences found between the cloud and a NodeENIConfig.', [
    'kind',
  ]);
  const repaired = factory.counter(
    'node_objects_mended_total',
    'NodeENIConfigs that another client made invalid, and that ipamd repaired.',
    ['kind'],
  );
  return {
    onRepaired: ({ kind }) => repaired.inc({ kind }),
    onCall: ({ action, outcome, tookMs, code }) => {
      calls.inc({ action, outcome, code: code ?? '' });
      took.observe({ action }, tookMs / MS_PER_S);
    },
    onWrite: ({ result }) => writes.inc({ result }),
    onDescribe: () => describes.inc(),
    onDrift: ({ kinds }) => {
      for (const kind of kinds) drift.inc({ kind });
    },
    onProblems: (node, list) =>
      problems.report(
        `${NODE_REPORTERS}supply/${node}`,
        list.map(({ reason }) => ({ kind: reason, name: node })),
      ),
  };
}

/** Counts NodeENIConfigs and taints of nodes that join and leave. */
export function createNodesObserver(
  factory: MetricFactory,
  problems: ProblemRegistry,
): NodesObserver & { clear(): void } {
  const held = new Map<string, string>();
  factory.gauge(
    'release_held_nodes',
    'Nodes that seem to be gone and of which nothing is released.',
    ['reason'],
    (gauge) => {
      for (const [reason, count] of countsOf(held.values())) gauge.set({ reason }, count);
    },
  );
  const configs = factory.counter('node_configs_total', 'NodeENIConfigs created and removed.', ['kind']);
  const taints = factory.counter('node_taints_total', 'Taints of nodes put on and taken off.', ['kind']);
  return {
    onConfig: ({ kind }) => configs.inc({ kind }),
    onTaint: ({ kind }) => taints.inc({ kind }),
    onReleaseHeld: (node, reason) => {
      if (reason === undefined) held.delete(node);
      else held.set(node, reason);
    },
    clear: () => held.clear(),
    onProblems: (node, list) =>
      problems.report(
        `${NODE_REPORTERS}join/${node}`,
        list.map(({ reason }) => ({ kind: reason, name: node })),
      ),
  };
}

/** Counts failed descriptions of subnets, and shows their free addresses while this replica leads. */
export function createSubnetsObserver(
  factory: MetricFactory,
  problems: ProblemRegistry,
  nodes: { readonly minWarmIps: number; readonly zones: () => Iterable<string> },
): SubnetsObserver & { clear(): void } {
  let latest: readonly SubnetState[] = [];
  let open: readonly SubnetState[] | undefined;
  const failures = factory.counter('subnet_describe_failures_total', 'Times that subnets could not be described.');
  factory.gauge('subnet_free_addresses', 'Free addresses of a subnet.', ['subnet', 'zone'], (gauge) => {
    for (const { subnetId, zone, freeIps } of latest) gauge.set({ subnet: subnetId, zone }, freeIps);
  });
  const help =
    'New nodes that get an ENI with warm addresses (--ip-min-warm-target) of the subnets in their zone. 0: nodes are there, and no subnet.';
  factory.gauge('zone_nodes_left', help, ['zone'], (gauge) => {
    const counts = open === undefined ? [] : countNodesByZone(open, nodes.zones(), nodes.minWarmIps);
    for (const [zone, count] of counts) gauge.set({ zone }, count);
  });
  return {
    onSubnets: (subnets, openSubnets) => {
      latest = subnets;
      open = openSubnets;
    },
    onDescribeFailed: () => failures.inc(),
    onConfigProblems: (name, list) =>
      problems.report(
        CONFIG_MAP_REPORTER,
        list.map(({ reason }) => ({ kind: reason, name })),
      ),
    clear: () => {
      latest = [];
      open = undefined;
      problems.report(CONFIG_MAP_REPORTER, []);
    },
  };
}

const CONFIG_MAP_REPORTER = 'configmap';

/** Counts the refreshes of instances. */
export function createRefreshObserver(
  factory: MetricFactory,
): (refresh: { readonly instances: number; readonly isFailed: boolean }) => void {
  const refreshes = factory.counter('instance_refreshes_total', 'Rounds in which all instances were described.', [
    'outcome',
  ]);
  return ({ isFailed }) => refreshes.inc({ outcome: isFailed ? 'failed' : 'done' });
}

/** Callback for each sweep of ENIs; `drifted`: nodes that differ from the cloud. */
export type AuditObserver = { onAudit(swept: Swept<unknown>, drifted: number, tookMs: number): void };

/** Values of the label of what was done about orphaned ENIs. */
const COLLECTED: ReadonlyMap<OrphanOutcome['kind'], string> = new Map([
  ['removed', 'deleted'],
  ['later', 'later'],
  ['failed', 'refused'],
]);

/** Counts audits and orphaned ENIs; the result of the last audit is shown while this replica leads. */
export function createAuditObserver(factory: MetricFactory): AuditObserver & { clear(): void } {
  const audits = factory.counter('audits_total', 'Comparisons of all nodes with the cloud, by how they ended.', [
    'outcome',
  ]);
  const took = factory.histogram(
    'audit_seconds',
    'Time of a comparison with the cloud.',
    [0.1, 1, 5, 15, 60, 300, 600],
  );
  const orphans = factory.gauge(
    'orphan_enis',
    "Orphans that the last comparison found: ENIs with this cluster's tags and no owner.",
  );
  const drifted = factory.gauge('drifted_nodes', 'Nodes that the last comparison found different from the cloud.');
  const collected = factory.counter('orphan_outcomes_total', 'What was done about orphaned ENIs.', ['outcome']);
  return {
    onAudit: (swept, driftedCount, tookMs) => {
      audits.inc({ outcome: swept.kind === 'done' ? 'done' : swept.why });
      took.observe(tookMs / MS_PER_S);
      if (swept.kind !== 'done') return;
      orphans.set(swept.orphans.length);
      drifted.set(driftedCount);
      for (const { kind } of swept.outcomes.values()) {
        const outcome = COLLECTED.get(kind);
        if (outcome !== undefined) collected.inc({ outcome });
      }
    },
    clear: () => {
      orphans.set(0);
      drifted.set(0);
    },
  };
}

/** Counts writes and audits of static addresses, and shows the state of their claims while this replica leads. */
export function createClaimsObserver(
  factory: MetricFactory,
): ClaimsObserver & ClaimAuditObserver & ReservationSweepObserver & { clear(): void } {
  const standing = new Map<string, string>();
  let latest: readonly ClaimDifference[] = [];
  const writes = factory.counter('claim_writes_total', 'Writes of VpcIPClaims and VpcIPs of kept addresses.', ['kind']);
  const audits = factory.counter('claim_audits_total', 'Comparisons of kept addresses, by how they ended.', [
    'outcome',
  ]);
  factory.gauge('claims', 'VpcIPClaims of kept addresses, by how they stand.', ['reason'], (gauge) => {
    for (const [reason, count] of countsOf(standing.values())) gauge.set({ reason }, count);
  });
  factory.gauge(
    'claim_differences',
    'Disagreements about kept addresses that the last comparison found.',
    ['kind'],
    (gauge) => {
      for (const [kind, count] of countsOf(latest.map((one) => one.kind))) gauge.set({ kind }, count);
    },
  );
  const orphans = factory.gauge(
    'orphan_reserved_addresses',
    "Addresses that the last comparison found reserved with this cluster's tags and of no VpcIPClaim.",
  );
  return {
    onWrite: (kind) => writes.inc({ kind }),
    onOrphanReservations: (count) => orphans.set(count),
    onClaim: (key, reason) => {
      if (reason === undefined) standing.delete(key);
      else standing.set(key, reason);
    },
    onClaimAudit: (outcome, differences) => {
      audits.inc({ outcome });
      latest = differences;
    },
    clear: () => {
      standing.clear();
      latest = [];
      orphans.set(0);
    },
  };
}

function countsOf(values: Iterable<string>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

/** Counts writes of the records of Pods. */
export function createRecordsObserver(factory: MetricFactory): { onWrite(kind: string, result: string): void } {
  const writes = factory.counter('record_writes_total', 'Writes of VpcIPs and VpcIPClaims for Pods.', [
    'kind',
    'result',
  ]);
  return { onWrite: (kind, result) => writes.inc({ kind, result }) };
}

/** Counts writes of podCIDRs, and shows blocks and problems while this replica leads. */
export function createPodCidrObserver(
  factory: MetricFactory,
  problems: ProblemRegistry,
): PodCidrObserver & { clear(): void } {
  let latest: BlockCounts | undefined;
  factory.gauge('pod_cidr_blocks', 'Blocks of podCIDRs by their state.', ['state'], (gauge) => {
    if (latest === undefined) return;
    const { total: _, ...states } = latest;
    for (const [state, count] of Object.entries(states)) gauge.set({ state }, count);
  });
  const writes = factory.counter('pod_cidr_writes_total', 'Writes of podCIDRs, by how they ended.', ['outcome']);
  return {
    onBlocks: (counts) => {
      latest = counts;
    },
    onWrite: (outcome) => writes.inc({ outcome }),
    onProblems: (list) => problems.report(POD_CIDR_REPORTER, list),
    clear: () => {
      latest = undefined;
      problems.report(POD_CIDR_REPORTER, []);
    },
  };
}

const POD_CIDR_REPORTER = 'pod-cidrs';

/** Counts writes for CiliumNodes, and shows their pools while this replica leads. */
export function createCiliumObserver(
  factory: MetricFactory,
  clock: Clock,
  problems: ProblemRegistry,
): CiliumObserver & { clear(): void } {
  const states = new Map<string, CiliumNodeState>();
  factory.gauge(
    'cilium_addresses',
    'Addresses of all CiliumNodes: in their pools, in use by what their agents wrote, free for Pods.',
    ['state'],
    (gauge) => {
      if (states.size === 0) return;
      for (const state of ['pool', 'used', 'free'] as const)
        gauge.set(
          { state },
          [...states.values()].reduce((sum, one) => sum + one[state], 0),
        );
    },
  );
  const showOldest = (name: string, help: string, pick: (state: CiliumNodeState) => number | undefined): void => {
    factory.gauge(name, help, [], (gauge) => {
      const times = [...states.values()].flatMap((state) => pick(state) ?? []);
      if (times.length > 0) gauge.set((clock.monotonicMs() - Math.min(...times)) / MS_PER_S);
    });
  };
  showOldest(
    'cilium_used_oldest_seconds',
    'Longest time since the agent of a CiliumNode was last seen to write what is in use; it writes when that changes.',
    ({ aliveMs }) => aliveMs,
  );
  showOldest(
    'cilium_release_oldest_seconds',
    'Longest time that an address of a CiliumNode is in one state of its release.',
    ({ oldestReleaseMs }) => oldestReleaseMs,
  );
  const writes = factory.counter(
    'cilium_writes_total',
    'Writes for CiliumNodes, by what was written and how it ended.',
    ['part', 'result'],
  );
  return {
    onNode: (node, state) => {
      if (state === undefined) states.delete(node);
      else states.set(node, state);
    },
    onWrite: (part, result) => writes.inc({ part, result }),
    onProblems: (node, list) =>
      problems.report(
        `${NODE_REPORTERS}cilium/${node}`,
        list.map(({ reason }) => ({ kind: reason, name: node })),
      ),
    clear: () => states.clear(),
  };
}
