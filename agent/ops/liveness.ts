/** A pass that takes this long will not end: its slowest steps, runs of nft, are ended after 10 s each. */
const STUCK_PASS_MS = 120_000;

/**
 * Returns what hangs, for `/healthz`; undefined when nothing does. A blocked event loop is not reported here:
 * `/healthz` then does not answer at all.
 * @param passStartedMs When the running repair pass began, undefined between passes; monotonic milliseconds, as `nowMs`
 */
export function livenessOf(passStartedMs: number | undefined, nowMs: number): string | undefined {
  if (passStartedMs === undefined || nowMs - passStartedMs < STUCK_PASS_MS) return undefined;
  return `a repair pass has hung for ${Math.round((nowMs - passStartedMs) / 1000)} s`;
}
