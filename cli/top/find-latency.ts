import type { CallStats, LatencyBucket } from '../../agent/api/ops-messages.ts';

/** How long the calls of a while took, microseconds; undefined where there were none. */
export type Latency = { readonly count: number; readonly p50: number; readonly p90: number; readonly p99: number };

/**
 * Reads quantiles out of a histogram, evenly spread within a bucket; in the one without a bound, its lower end: the true
 * value is above it. Pure.
 */
export function findLatency(buckets: readonly LatencyBucket[]): Latency | undefined {
  const count = buckets.reduce((sum, bucket) => sum + bucket.count, 0);
  if (count === 0) return undefined;
  const at = (quantile: number) => quantileOf(buckets, quantile * count);
  return { count, p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}

/** Subtracts an earlier histogram of the same agent; all of the later one after a restart, which begins it anew. Pure. */
export function bucketsSince(
  now: readonly LatencyBucket[],
  before: readonly LatencyBucket[],
): readonly LatencyBucket[] {
  const earlier = new Map(before.map(({ upToUs, count }) => [upToUs, count]));
  const isRestarted = now.some(({ upToUs, count }) => count < (earlier.get(upToUs) ?? 0));
  return isRestarted ? now : now.map(({ upToUs, count }) => ({ upToUs, count: count - (earlier.get(upToUs) ?? 0) }));
}

/** Finds the counts of one verb; zero where the agent told none. Pure. */
export function statsOf(calls: readonly CallStats[], verb: string): CallStats {
  return calls.find((stats) => stats.verb === verb) ?? { verb, total: 0, failed: 0, sumUs: 0, buckets: [] };
}

function quantileOf(buckets: readonly LatencyBucket[], rank: number): number {
  let below = 0;
  let lowerUs = 0;
  for (const { upToUs, count } of buckets) {
    const isLast = upToUs === 0;
    if (count > 0 && below + count >= rank) {
      return isLast ? lowerUs : lowerUs + ((upToUs - lowerUs) * (rank - below)) / count;
    }
    below += count;
    if (!isLast) lowerUs = upToUs;
  }
  return lowerUs;
}
