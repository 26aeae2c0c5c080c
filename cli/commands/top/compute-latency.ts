import type { CallStats, LatencyBucket } from '../../../agent/api/ops-messages.ts';

/** Number and latency of calls in a period, quantiles in microseconds. */
export type Latency = { readonly count: number; readonly p50: number; readonly p90: number; readonly p99: number };

/**
 * Computes quantiles from a histogram, with values spread evenly within a bucket. For the bucket without an upper bound
 * it returns the lower bound: the true value is above it. Undefined without calls.
 */
export function computeLatency(buckets: readonly LatencyBucket[]): Latency | undefined {
  const count = buckets.reduce((sum, bucket) => sum + bucket.count, 0);
  if (count === 0) return undefined;
  const at = (quantile: number) => quantileOf(buckets, quantile * count);
  return { count, p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}

/**
 * Subtracts an earlier histogram of the same agent. After a restart the agent counts from zero: then the later
 * histogram is returned.
 */
export function bucketsSince(
  now: readonly LatencyBucket[],
  before: readonly LatencyBucket[],
): readonly LatencyBucket[] {
  const earlier = new Map(before.map(({ upToUs, count }) => [upToUs, count]));
  const isRestarted = now.some(({ upToUs, count }) => count < (earlier.get(upToUs) ?? 0));
  return isRestarted ? now : now.map(({ upToUs, count }) => ({ upToUs, count: count - (earlier.get(upToUs) ?? 0) }));
}

/** Returns the counts of one verb; zeros where the agent reported none. */
export function statsOf(calls: readonly CallStats[], verb: string): CallStats {
  return calls.find((stats) => stats.verb === verb) ?? { verb, total: 0, failed: 0, sumUs: 0, buckets: [] };
}

function quantileOf(buckets: readonly LatencyBucket[], rank: number): number {
  let below = 0;
  let lowerUs = 0;
  for (const { upToUs, count } of buckets) {
    const isUnbounded = upToUs === 0;
    if (count > 0 && below + count >= rank) {
      return isUnbounded ? lowerUs : lowerUs + ((upToUs - lowerUs) * (rank - below)) / count;
    }
    below += count;
    if (!isUnbounded) lowerUs = upToUs;
  }
  return lowerUs;
}
