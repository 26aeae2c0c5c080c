/** How the delays between attempts grow. All times in milliseconds; `jitter` is the random share of a delay, 0 to 1. */
export type BackoffSettings = {
  readonly firstMs: number;
  readonly maxMs: number;
  readonly factor: number;
  readonly jitter: number;
};

/**
 * Computes the wait before attempt `attempt` (1 is the first retry): exponential, capped, less a random share, so that
 * many nodes which failed at the same time do not retry at the same time. `random` is in [0, 1).
 */
export function backoffMs(settings: BackoffSettings, attempt: number, random: number): number {
  const grown = settings.firstMs * settings.factor ** (attempt - 1);
  const capped = Math.min(grown, settings.maxMs);
  return Math.round(capped * (1 - settings.jitter * random));
}
