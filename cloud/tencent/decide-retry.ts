import { type BackoffSettings, backoffMs } from '../../runtime/backoff.ts';
import type { CloudError } from '../cloud-error.ts';

/** What a call is, as far as repeating it goes. */
export type CallNature = {
  /** It changes nothing: repeating it is harmless. */
  readonly isRead: boolean;
  /** It carries a ClientToken: repeating it does not do it twice. */
  readonly hasToken: boolean;
};

/** Attempts of one call before its error goes to the caller. */
const MOST_ATTEMPTS = 8;
/** A new credential is tried once; a second refusal is no matter of rotation. */
const MOST_CREDENTIAL_ATTEMPTS = 2;
const GROWTH: Omit<BackoffSettings, 'firstMs'> = { maxMs: 20_000, factor: 2, jitter: 0.5 };

/**
 * Decides how long to wait before the same call is made again; undefined when it must not be, or it is no use.
 * `attempt` counts from 1; `random` is in [0, 1). Pure.
 */
export function decideRetry(
  error: CloudError,
  nature: CallNature,
  attempt: number,
  random: number,
): number | undefined {
  if (attempt >= MOST_ATTEMPTS) return undefined;
  switch (error.retry) {
    case 'never':
    case 'quota':
    case 'gone':
      return undefined;
    case 'credentials':
      return attempt < MOST_CREDENTIAL_ATTEMPTS ? error.afterMs : undefined;
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
