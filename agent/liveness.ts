/** Its slowest parts, runs of nft, are ended after 10 s each; a pass that takes this long will not come back. */
const STUCK_PASS_MS = 120_000;

/**
 * Says what hangs, for `/healthz`; undefined when nothing does. Pure. An event loop that stands still needs no word: then
 * nobody answers at all.
 * @param passBegunMs when the repair pass that runs now began, undefined between passes; as `nowMs`, monotonic
 */
export function livenessOf(passBegunMs: number | undefined, nowMs: number): string | undefined {
  if (passBegunMs === undefined || nowMs - passBegunMs < STUCK_PASS_MS) return undefined;
  return `a repair pass has hung for ${Math.round((nowMs - passBegunMs) / 1000)} s`;
}
