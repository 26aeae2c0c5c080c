import type { FlowPrograms } from '../../dataplane/fast-path/flow-programs.ts';
import type { GrWiring } from '../../dataplane/network.ts';
import { describeCallFailure, nextStepOf } from '../../kube/call-failures.ts';
import type { CniFailure } from '../api/cni-failure.ts';
import type { SummaryReplyInit } from '../api/ops-messages.ts';
import { AGENT_METRICS } from '../observability/metrics.ts';
import type { NodeState } from '../state/node-state.ts';
import { AGENT_ROLE, type AgentFailure } from '../supply/api-failures.ts';

/** The result of the last repair pass. */
export type LastPass = {
  /** When it ended, monotonic milliseconds. */
  readonly endedMs: number;
  readonly cause: string;
  /** The error that ended it early. */
  readonly error?: string;
};

/** The agent's use of the API server. */
export type KubeUse = {
  readonly qps: number;
  readonly burst: number;
  readonly calls: number;
  readonly failed: number;
  readonly throttled: number;
  readonly throttledMs: number;
  /** Number of requests that could be sent at once now. */
  readonly tokensLeft: number;
};

/** Inputs of the reply besides the agent's state. */
export type SummaryView = {
  /** Now, monotonic milliseconds. */
  readonly monotonicMs: number;
  /** When the agent started, monotonic milliseconds. */
  readonly startedMs: number;
  readonly nodeName: string;
  readonly supplySource: string;
  /** How new GlobalRoute Pods are wired. */
  readonly grWiring: GrWiring;
  readonly journalOrigin: string;
  readonly status: CniFailure | undefined;
  readonly metrics: readonly MetricSamples[];
  readonly paused: readonly string[];
  readonly lastPass: LastPass | undefined;
  /** Undefined where supply does not come from the API server. */
  readonly kube: (KubeUse & { readonly silenceMs: number }) | undefined;
  /** What the API server refuses now, or has not answered well for long. */
  readonly apiFailures: readonly AgentFailure[];
  readonly watchers: number;
  /** Undefined while the fast path is off. */
  readonly programs: Pick<FlowPrograms, 'flows' | 'epoch'> | undefined;
};

/** Describes the state of the agent and what it has done. Changes nothing. */
export function summaryReply(state: NodeState, view: SummaryView): SummaryReplyInit {
  const { monotonicMs, metrics, lastPass } = view;
  const leases = Map.groupBy(state.leases.values(), (lease) => lease.state);
  const total = (row: MetricRow): number => sumMetric(metrics, nameOf(row));
  return {
    ...{ nodeName: view.nodeName, supplySource: view.supplySource, journalOrigin: view.journalOrigin },
    uptimeMs: Math.max(0, Math.round(monotonicMs - view.startedMs)),
    ruleMode: state.ruleMode,
    role: state.role,
    status: view.status ?? { code: 0 },
    leasesPending: leases.get('pending')?.length ?? 0,
    leasesActive: leases.get('active')?.length ?? 0,
    leasesReleasing: leases.get('releasing')?.length ?? 0,
    calls: computeCallStats(metrics),
    drift: total('drift'),
    repaired: total('repairs'),
    passes: total('passes'),
    fights: total('fightsStarted'),
    held: view.paused,
    conflicts: state.reportedConflicts,
    api: view.kube === undefined ? undefined : apiMessage(view.kube),
    lastPassAgeMs: lastPass === undefined ? 0 : Math.max(0, Math.round(monotonicMs - lastPass.endedMs)),
    lastPassError: lastPass?.error ?? '',
    lastPassCause: lastPass?.cause ?? '',
    overruns: total('overruns'),
    forcedReuse: total('forcedReuse'),
    apiFailures: view.apiFailures.map((failure) => failureMessage(failure, monotonicMs)),
    watchers: view.watchers,
    supplyEpoch: Math.max(0, state.supply?.epoch ?? 0),
    bridge: state.isBridgeUsed ? bridgeMessage(state, view.grWiring) : undefined,
    fastPath: state.fastPath.wanted === 'off' ? undefined : fastPathMessage(state, view, total('flowsForgotten')),
  };
}

function bridgeMessage(state: NodeState, wiring: GrWiring): SummaryReplyInit['bridge'] {
  const { isBridgeDefault, podCidrs, bridgePool, bridgeProblem, masquerade } = state;
  const { total, leased } = bridgePool.counts();
  return {
    defaultNetwork: isBridgeDefault ? 'tke-bridge' : 'tke-route-eni',
    podCidrs,
    formerCidrs: state.formerBlocks(),
    addresses: total,
    inUse: leased,
    problem: bridgeProblem ?? state.blockProblem() ?? '',
    masquerade: masquerade?.isOn === true,
    masqueradeWhy: masquerade?.why ?? 'it is not decided yet',
    wiring,
  };
}

function fastPathMessage(
  { fastPath: { wanted, mode, why, sinceMs } }: NodeState,
  { programs, monotonicMs }: SummaryView,
  ended: number,
): SummaryReplyInit['fastPath'] {
  return {
    ...{ wanted, mode, why, ageMs: Math.max(0, Math.round(monotonicMs - sinceMs)) },
    flows: programs?.flows().length ?? 0,
    epoch: programs?.epoch() ?? ended,
  };
}

function failureMessage(failure: AgentFailure, nowMs: number): NonNullable<SummaryReplyInit['apiFailures']>[number] {
  const { call, kind, code, status = 0, text, sinceMs, lastMs, count, isNeededByPods } = failure;
  return {
    ...{ call, kind, code, text, count, httpStatus: status },
    ageMs: Math.max(0, Math.round(nowMs - sinceMs)),
    lastAgeMs: Math.max(0, Math.round(nowMs - lastMs)),
    next: nextStepOf(failure, AGENT_ROLE),
    summary: describeCallFailure(failure, nowMs, AGENT_ROLE),
    isNeededByPods,
  };
}

function apiMessage({ silenceMs, ...use }: NonNullable<SummaryView['kube']>): SummaryReplyInit['api'] {
  const hasContact = Number.isFinite(silenceMs);
  return {
    ...use,
    throttledMs: Math.round(use.throttledMs),
    heard: hasContact,
    silenceMs: hasContact ? Math.max(0, Math.round(silenceMs)) : 0,
  };
}

/** One metric in the form of its registry: a histogram's cumulative buckets, sum and count are values too. */
type MetricSamples = {
  readonly name: string;
  readonly values: readonly {
    readonly value: number;
    readonly metricName?: string;
    readonly labels: Readonly<Record<string, string | number | undefined>>;
  }[];
};

type CallStats = NonNullable<SummaryReplyInit['calls']>[number];

/** The handle of a metric. */
type MetricRow = keyof typeof AGENT_METRICS.rows;

const nameOf = (row: MetricRow): string => `${AGENT_METRICS.prefix}${AGENT_METRICS.rows[row].name}`;

const REQUESTS = nameOf('requests');
const US_PER_S = 1_000_000;

/** Sums a metric over all its labels; 0 when there is none. */
export function sumMetric(metrics: readonly MetricSamples[], name: string): number {
  const values = metrics.find((metric) => metric.name === name)?.values ?? [];
  return values.reduce((sum, { value }) => sum + value, 0);
}

/** Computes the statistics of calls by verb, all codes together. */
export function computeCallStats(metrics: readonly MetricSamples[]): readonly CallStats[] {
  const values = metrics.find(({ name }) => name === REQUESTS)?.values ?? [];
  const byVerb = Map.groupBy(values, ({ labels }) => String(labels['verb']));
  return [...byVerb].map(([verb, ofVerb]) => {
    const sum = (metric: string, matches: (code: string) => boolean = () => true): number =>
      ofVerb
        .filter(({ metricName, labels }) => metricName === `${REQUESTS}_${metric}` && matches(String(labels['code'])))
        .reduce((all, { value }) => all + value, 0);
    return {
      verb,
      total: sum('count'),
      failed: sum('count', (code) => code !== '0'),
      sumUs: Math.round(sum('sum') * US_PER_S),
      buckets: bucketsOf(ofVerb.filter(({ metricName }) => metricName === `${REQUESTS}_bucket`)),
    };
  });
}

/** Prometheus counts a call in its bucket and in all larger ones; here it is counted once. */
function bucketsOf(values: MetricSamples['values']): CallStats['buckets'] {
  const byBound = Map.groupBy(values, ({ labels }) => (labels['le'] === '+Inf' ? 0 : Number(labels['le'])));
  const cumulative = [...byBound]
    .map(([bound, ofBound]) => ({ bound, count: ofBound.reduce((all, { value }) => all + value, 0) }))
    .toSorted((a, b) => (a.bound === 0 ? 1 : b.bound === 0 ? -1 : a.bound - b.bound));
  return cumulative.map(({ bound, count }, index) => ({
    upToUs: Math.round(bound * US_PER_S),
    count: count - (cumulative[index - 1]?.count ?? 0),
  }));
}
