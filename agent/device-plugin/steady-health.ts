/** An ENI that was just attached has no link for a moment, and a repair pass that fails once is soon over. */
export const SICK_AFTER_MS = 5_000;

/**
 * Believes that devices turned unhealthy when they have been so for a while, and at once that they are well again.
 * Returned: asks how many to tell, given how many are now; times are monotonic milliseconds.
 */
export function createSteadyHealth(): (unhealthy: number, nowMs: number) => number {
  let told = 0;
  let moreSinceMs: number | undefined;
  return (unhealthy, nowMs) => {
    const isMore = unhealthy > told;
    if (isMore) moreSinceMs ??= nowMs;
    if (isMore && moreSinceMs !== undefined && nowMs - moreSinceMs < SICK_AFTER_MS) return told;
    told = unhealthy;
    moreSinceMs = undefined;
    return told;
  };
}
