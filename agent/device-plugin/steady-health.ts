/**
 * How long devices have to be unhealthy before it is reported, milliseconds. An ENI that was just attached has no link
 * for a moment, and a repair pass that fails once is repeated soon.
 */
export const UNHEALTHY_AFTER_MS = 5_000;

/**
 * Delays the report that devices became unhealthy, and reports at once that they are healthy again. The returned
 * function takes the number of unhealthy devices now and returns the number to report; times are monotonic
 * milliseconds.
 */
export function createSteadyHealth(): (unhealthy: number, nowMs: number) => number {
  let reported = 0;
  let moreSinceMs: number | undefined;
  return (unhealthy, nowMs) => {
    const isMore = unhealthy > reported;
    if (isMore) moreSinceMs ??= nowMs;
    if (isMore && moreSinceMs !== undefined && nowMs - moreSinceMs < UNHEALTHY_AFTER_MS) return reported;
    reported = unhealthy;
    moreSinceMs = undefined;
    return reported;
  };
}
