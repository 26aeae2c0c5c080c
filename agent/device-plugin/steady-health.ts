/**
 * How long devices have to be unhealthy before it is reported, milliseconds. An ENI that was just attached has no link
 * for a moment, and a repair pass that fails once is repeated soon.
 */
export const SICK_AFTER_MS = 5_000;

/**
 * Delays the report that devices became unhealthy, and reports at once that they are healthy again. The returned
 * function takes the number of unhealthy devices now and returns the number to report; times are monotonic
 * milliseconds.
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
