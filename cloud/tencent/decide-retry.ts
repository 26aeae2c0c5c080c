import { type BackoffSettings, backoffMs } from '../../runtime/backoff.ts';
import type { CloudError } from '../cloud-error.ts';

/** The properties of a call that decide whether it may be repeated. */
type CallNature = {
  /** It changes nothing: a repetition is harmless. */
  readonly isRead: boolean;
  /** It has a ClientToken: a repetition has no second effect. */
  readonly hasToken: boolean;
};

/** Most attempts of one call before its error goes to the caller. */
const MAX_ATTEMPTS = 8;
/** Most attempts with other credentials: after a second refusal, rotation is not the cause. */
const MAX_CREDENTIAL_ATTEMPTS = 2;
const GROWTH: Omit<BackoffSettings, 'firstMs'> = { maxMs: 20_000, factor: 2, jitter: 0.5 };

/**
 * Decides how long to wait before the same call is repeated; undefined when a repetition is not allowed or is useless.
 * `attempt` counts from 1; `random` is in [0, 1).
 */
export function decideRetry(
  error: CloudError,
  nature: CallNature,
  attempt: number,
  random: number,
): number | undefined {
  if (attempt >= MAX_ATTEMPTS) return undefined;
  switch (error.retry) {
    case 'never':
    case 'quota':
    case 'gone':
      return undefined;
    case 'credentials':
      return attempt < MAX_CREDENTIAL_ATTEMPTS ? error.afterMs : undefined;
    case 'resolve':
      return nature.isRead || nature.hasToken ? waitMs(error, attempt, random) : undefined;
    case 'throttled':
    case 'backoff':
    case 'busy':
      return waitMs(error, attempt, random);
  }
}

function waitMs(error: CloudError, attempt: number, random: number): number {
  return backoffMs({ ...GROWTH, firstMs: Math.max(1, error.afterMs) }, attempt, random);
}
