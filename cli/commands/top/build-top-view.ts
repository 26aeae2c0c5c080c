import type { SummaryReply } from '../../../agent/api/ops-messages.ts';
import type { PoolView } from '../pool/pool-view.ts';
import { bucketsSince, computeLatency, type Latency, statsOf } from './compute-latency.ts';

/** What the agent reported at one moment. */
export type TopSample = {
  /** Monotonic milliseconds. */
  readonly atMs: number;
  readonly pool: PoolView;
  readonly summary: SummaryReply;
};

/** Figures of one verb. */
export type CallView = {
  readonly verb: string;
  /** Calls a second in the window; undefined without a window. */
  readonly perSecond?: number;
  readonly failed: number;
  readonly latency?: Latency;
  /** Since the agent started. */
  readonly total: number;
  readonly totalFailed: number;
};

/** Counters of repairs, with their increase in the window. */
type TroubleView = Readonly<Record<'drift' | 'repaired' | 'fights' | 'overruns', { total: number; rise: number }>>;

/** What one frame shows. */
export type TopView = {
  readonly now: TopSample;
  /** Length of the window of all rates; undefined: figures are since the agent started. */
  readonly windowMs?: number;
  readonly calls: readonly CallView[];
  readonly trouble: TroubleView;
  /** Calls to the API server in the window. */
  readonly apiCalls: number;
};

const VERBS = ['add', 'del'] as const;

/**
 * Computes the figures of a frame from the newest sample and the oldest of the window. An agent that restarted in
 * between has lower counters: its figures since the start then count for the window.
 */
export function buildTopView(now: TopSample, oldest: TopSample | undefined): TopView {
  const isRestarted = oldest !== undefined && now.summary.uptimeMs < oldest.summary.uptimeMs;
  const before = isRestarted ? undefined : oldest;
  const windowMs = oldest === undefined || oldest === now ? undefined : now.atMs - oldest.atMs;
  const rise = (read: (summary: SummaryReply) => number) => {
    const total = read(now.summary);
    if (windowMs === undefined) return { total, rise: 0 };
    return { total, rise: Math.max(0, total - (before === undefined ? 0 : read(before.summary))) };
  };
  return {
    now,
    ...(windowMs === undefined ? {} : { windowMs }),
    calls: VERBS.map((verb) => callView(verb, now.summary, before?.summary, windowMs)),
    trouble: {
      drift: rise(({ drift }) => drift),
      repaired: rise(({ repaired }) => repaired),
      fights: rise(({ fights }) => fights),
      overruns: rise(({ overruns }) => overruns),
    },
    apiCalls: rise(({ api }) => api?.calls ?? 0).rise,
  };
}

function callView(
  verb: string,
  now: SummaryReply,
  before: SummaryReply | undefined,
  windowMs: number | undefined,
): CallView {
  const stats = statsOf(now.calls, verb);
  const earlier = statsOf(before?.calls ?? [], verb);
  const isWindow = windowMs !== undefined && windowMs > 0;
  const latency = computeLatency(isWindow ? bucketsSince(stats.buckets, earlier.buckets) : stats.buckets);
  return {
    verb: verb.toUpperCase(),
    ...(isWindow ? { perSecond: (Math.max(0, stats.total - earlier.total) * 1_000) / windowMs } : {}),
    failed: isWindow ? Math.max(0, stats.failed - earlier.failed) : stats.failed,
    ...(latency === undefined ? {} : { latency }),
    total: stats.total,
    totalFailed: stats.failed,
  };
}

/** Adds a sample and drops those older than the window; the oldest is first. */
export function withSample(samples: readonly TopSample[], sample: TopSample, windowMs: number): readonly TopSample[] {
  return [...samples.filter(({ atMs }) => atMs >= sample.atMs - windowMs), sample];
}
