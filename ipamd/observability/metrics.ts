import { DEFAULT_MIN_WARM_IPS } from '../../crd/new-node.ts';
import { observeProgram, openSources, PROGRAM_ROWS, type ProgramSources } from '../../observability/program-metrics.ts';
import type { Clock } from '../../runtime/clock.ts';
import {
  collected,
  counter,
  countsOf,
  histogram,
  type MetricRows,
  MS_PER_S,
  openMetrics,
  samplesBy,
  subjects,
  termGauge,
} from '../../runtime/metrics/metric-table.ts';
import type { AboutProcess } from '../../runtime/metrics/process-rows.ts';
import { countNodesByZone, type OpenSubnet } from './count-nodes-by-zone.ts';
import { NecCounts } from './nec-counts.ts';
import { type NecChange, ReadyTimer } from './ready-timer.ts';

/** What is read at each scrape; each is absent until it exists. */
type IpamdSources = ProgramSources & {
  readonly minWarmIps: number;
  readonly necs: NecCounts;
  /** Of the CiliumNodes that a leader serves. */
  readonly ciliumNodes: Map<string, CiliumNodeState>;
  /** Subnets in which new ENIs of nodes that name no subnets may be; a leader sets them. */
  openSubnets?: readonly OpenSubnet[] | undefined;
  queues?: () => Iterable<QueueSample>;
  /** Keys of breakers that are open: `subnet/subnet-a`, `vpc-enis`. */
  openBreakers?: () => Iterable<string>;
};

/** State of a controller's queue. */
export type QueueSample = { readonly queue: string; readonly waiting: number; readonly running: number };

/** What a CiliumNode has. */
type CiliumNodeState = {
  readonly pool: number;
  readonly used: number;
  readonly free: number;
  /** Monotonic milliseconds at which the node's agent last was seen to write; undefined: not yet. */
  readonly aliveMs: number | undefined;
  /** Since when the oldest entry of `release-ips` has its state, in monotonic milliseconds. */
  readonly oldestReleaseMs: number | undefined;
};

/** Buckets around the cloud's limits: one ENI takes seconds, 5,000 nodes at once take about half an hour. */
const WARM_BUCKETS_S = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600];
const AUDIT_BUCKETS_S = [0.1, 1, 5, 15, 60, 300, 600];

const ROWS = {
  ...PROGRAM_ROWS,
  addresses: countedNecs('addresses', 'Pod addresses of all nodes.', ['subnet', 'state'], (all) => all.addresses),
  enis: countedNecs('enis', 'ENIs of all nodes.', ['subnet', 'state'], (all) => all.enis),
  nodes: countedNecs('nodes', 'NodeENIConfigs by their condition Ready.', ['ready', 'reason'], (all) => all.nodes),
  intents: countedNecs('intents', 'Cloud calls on record.', ['action', 'phase'], (all) => all.intents),
  intentAges: collected(
    'intent_oldest_seconds',
    'Age of the oldest call on record.',
    ['action'],
    ({ necs, clock }: IpamdSources) =>
      [...necs.intentAgesMs(clock.nowMs())].map(([action, ageMs]) => [{ action }, ageMs / MS_PER_S]),
  ),
  breakers: collected(
    'breakers_open',
    'Kinds of requests that are paused because the cloud refused them.',
    ['kind'],
    ({ openBreakers }) => samplesBy('kind', countsOf([...(openBreakers?.() ?? [])].map(kindOfBreaker))),
  ),
  queueLengths: collected('queue_length', 'Keys that wait for a worker.', ['queue'], ({ queues }) =>
    [...(queues?.() ?? [])].map(({ queue, waiting }) => [{ queue }, waiting]),
  ),
  queuesRunning: collected('queue_running', 'Keys that are worked on.', ['queue'], ({ queues }) =>
    [...(queues?.() ?? [])].map(({ queue, running }) => [{ queue }, running]),
  ),
  secondsToWarm: histogram(
    'node_warm_seconds',
    'Time from the creation of a NodeENIConfig to its first being ready.',
    WARM_BUCKETS_S,
  ),
  nodeCalls: counter(
    'node_calls_total',
    'Changes asked of the cloud for nodes, by how they ended.',
    'action',
    'outcome',
    'code',
  ),
  nodeCallTime: histogram(
    'node_call_seconds',
    'Time of a change asked of the cloud, its task included.',
    WARM_BUCKETS_S,
    'action',
  ),
  nodeWrites: counter('node_writes_total', 'Guarded writes of NodeENIConfigs.', 'result'),
  nodeDescribes: counter('node_describes_total', 'Times that the cloud was asked what it holds for a node.'),
  nodeDrift: counter('node_drift_total', 'Differences found between the cloud and a NodeENIConfig.', 'kind'),
  nodesRepaired: counter(
    'node_objects_mended_total',
    'NodeENIConfigs that another client made invalid, and that ipamd repaired.',
    'kind',
  ),
  heldReleases: subjects(
    'release_held_nodes',
    'Nodes that seem to be gone and of which nothing is released.',
    'reason',
  ),
  nodeConfigs: counter('node_configs_total', 'NodeENIConfigs created and removed.', 'kind'),
  nodeTaints: counter('node_taints_total', 'Taints of nodes put on and taken off.', 'kind'),
  subnetFailures: counter('subnet_describe_failures_total', 'Times that subnets could not be described.'),
  subnetFreeIps: termGauge('subnet_free_addresses', 'Free addresses of a subnet.', 'subnet', 'zone'),
  zoneNodes: collected(
    'zone_nodes_left',
    'New nodes that get an ENI with warm addresses (--ip-min-warm-target) of the subnets in their zone. 0: nodes are there, and no subnet.',
    ['zone'],
    ({ openSubnets, necs, minWarmIps }) =>
      samplesBy('zone', openSubnets ? countNodesByZone(openSubnets, necs.zones.keys(), minWarmIps) : []),
  ),
  instanceRefreshes: counter('instance_refreshes_total', 'Rounds in which all instances were described.', 'outcome'),
  audits: counter('audits_total', 'Comparisons of all nodes with the cloud, by how they ended.', 'outcome'),
  auditTime: histogram('audit_seconds', 'Time of a comparison with the cloud.', AUDIT_BUCKETS_S),
  orphanEnis: termGauge(
    'orphan_enis',
    "Orphans that the last comparison found: ENIs with this cluster's tags and no owner.",
  ),
  driftedNodes: termGauge('drifted_nodes', 'Nodes that the last comparison found different from the cloud.'),
  orphanOutcomes: counter('orphan_outcomes_total', 'What was done about orphaned ENIs.', 'outcome'),
  claimWrites: counter('claim_writes_total', 'Writes of VpcIPClaims and VpcIPs of kept addresses.', 'kind'),
  claimAudits: counter('claim_audits_total', 'Comparisons of kept addresses, by how they ended.', 'outcome'),
  claims: subjects('claims', 'VpcIPClaims of kept addresses, by how they stand.', 'reason'),
  claimDifferences: termGauge(
    'claim_differences',
    'Disagreements about kept addresses that the last comparison found.',
    'kind',
  ),
  orphanReservations: termGauge(
    'orphan_reserved_addresses',
    "Addresses that the last comparison found reserved with this cluster's tags and of no VpcIPClaim.",
  ),
  recordWrites: counter('record_writes_total', 'Writes of VpcIPs and VpcIPClaims for Pods.', 'kind', 'result'),
  podCidrBlocks: termGauge('pod_cidr_blocks', 'Blocks of podCIDRs by their state.', 'state'),
  podCidrWrites: counter('pod_cidr_writes_total', 'Writes of podCIDRs, by how they ended.', 'outcome'),
  ciliumAddresses: collected(
    'cilium_addresses',
    'Addresses of all CiliumNodes: in their pools, in use by what their agents wrote, free for Pods.',
    ['state'],
    ({ ciliumNodes }) =>
      ciliumNodes.size === 0
        ? []
        : (['pool', 'used', 'free'] as const).map((state) => [
            { state },
            [...ciliumNodes.values()].reduce((sum, one) => sum + one[state], 0),
          ]),
  ),
  ciliumUsedAge: collected(
    'cilium_used_oldest_seconds',
    'Longest time since the agent of a CiliumNode was last seen to write what is in use; it writes when that changes.',
    [],
    (sources: IpamdSources) => oldestOf(sources, ({ aliveMs }) => aliveMs),
  ),
  ciliumReleaseAge: collected(
    'cilium_release_oldest_seconds',
    'Longest time that an address of a CiliumNode is in one state of its release.',
    [],
    (sources: IpamdSources) => oldestOf(sources, ({ oldestReleaseMs }) => oldestReleaseMs),
  ),
  ciliumWrites: counter(
    'cilium_writes_total',
    'Writes for CiliumNodes, by what was written and how it ended.',
    'part',
    'result',
  ),
} satisfies MetricRows<IpamdSources>;

/** All metrics of ipamd. */
export const IPAMD_METRICS = { prefix: 'tke_eni_ipamd_', rows: ROWS };

/** The metrics of the process, and what its clients report to: they exist before the clients. */
export type IpamdMetrics = ReturnType<typeof createIpamdMetrics>;

/**
 * Opens ipamd's metrics. Those of a Node.js process are left out: the gauge of the event loop's lag would be sampled ten
 * times a second, also in an idle process.
 */
export function createIpamdMetrics(clock: Clock, about: AboutProcess & { readonly minWarmIps?: number }) {
  const { minWarmIps = DEFAULT_MIN_WARM_IPS } = about;
  const necs = new NecCounts();
  const sources: IpamdSources = { ...openSources(clock, about), minWarmIps, necs, ciliumNodes: new Map() };
  const metrics = openMetrics(IPAMD_METRICS, sources);
  const readyTimer = new ReadyTimer();
  return {
    ...metrics,
    ...observeProgram(metrics, sources, 'ipamd'),
    sources,
    /** Counts a change of a cached NodeENIConfig. */
    necChanged: (change: NecChange): void => {
      necs.change(change);
      const tookMs = readyTimer.record(change, clock.nowMs());
      if (tookMs !== undefined) metrics.secondsToWarm.observeMs(tookMs);
    },
    /** Clears the state that only a leader has: another replica leads now. */
    clearTerm: (): void => {
      metrics.clearTerm();
      sources.problems.clearTerm();
      sources.ciliumNodes.clear();
      sources.openSubnets = undefined;
    },
  };
}

function countedNecs(
  name: string,
  help: string,
  labels: readonly [string, string],
  pick: (all: NecCounts) => NecCounts['addresses'],
) {
  const [first, second] = labels;
  return collected(name, help, labels, ({ necs }: IpamdSources) =>
    [...pick(necs).entries()].map(([key, count]) => {
      const [one = '', other = ''] = key.split('\t');
      return [{ [first]: one, [second]: other }, count] as const;
    }),
  );
}

/**
 * Returns the first part of a breaker's key as its kind: `subnet/subnet-a` and `node/n1/call/...` have different ones.
 * Whole keys would be too many label values.
 */
function kindOfBreaker(key: string): string {
  return key.split('/')[0] ?? key;
}

function oldestOf(
  { ciliumNodes, clock }: IpamdSources,
  pick: (state: CiliumNodeState) => number | undefined,
): number | undefined {
  const times = [...ciliumNodes.values()].flatMap((state) => pick(state) ?? []);
  return times.length === 0 ? undefined : (clock.monotonicMs() - Math.min(...times)) / MS_PER_S;
}
