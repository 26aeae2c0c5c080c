import type { Clock } from '../../../runtime/clock.ts';
import { classifyError } from '../../classify-error.ts';
import type { Credential, CredentialSource, FetchCredential, FetchedCredential } from './credential.ts';

/** When a credential is fetched again. */
type RotationSettings = {
  /** A temporary one is renewed this long before it expires; milliseconds, default five minutes. */
  readonly renewBeforeMs?: number;
  /**
   * One without an expiry is read again after this time, so that a changed file is noticed; milliseconds, default ten
   * seconds.
   */
  readonly rereadMs?: number;
};

const RENEW_BEFORE_MS = 300_000;
const REREAD_MS = 10_000;
const FETCH_TIMEOUT_MS = 10_000;
/** Delay after a failed renewal of a valid credential; an unavailable source is not called with every request. */
const RETRY_RENEWAL_MS = 10_000;
/**
 * All running calls fail when a key is rotated. Within this time after a fetch, further reports of the old key are
 * ignored.
 */
const FRESH_MS = 1_000;

type CachedCredential = {
  readonly fetched: FetchedCredential;
  readonly renewAtMs: number;
  readonly fetchedAtMs: number;
};

/**
 * Creates a source that keeps a credential fresh. It fetches once for all waiting callers. It renews the credential
 * before it expires, while the old one still signs. When a renewal fails, the old one is used until it expires.
 */
export function createRotatingSource(
  clock: Clock,
  fetch: FetchCredential,
  settings: RotationSettings = {},
): CredentialSource {
  const renewBeforeMs = settings.renewBeforeMs ?? RENEW_BEFORE_MS;
  let cached: CachedCredential | undefined;
  let fetching: Promise<Credential> | undefined;

  const renewAtOf = (fetched: FetchedCredential): number => {
    const nowMs = clock.nowMs();
    if (fetched.expiresAtMs === undefined) return nowMs + (settings.rereadMs ?? REREAD_MS);
    // A credential with a shorter lifetime than the margin is renewed at half its lifetime, not with every call.
    const lifetimeMs = fetched.expiresAtMs - nowMs;
    return fetched.expiresAtMs - Math.min(renewBeforeMs, lifetimeMs / 2);
  };
  const renew = async (): Promise<Credential> => {
    try {
      const fetched = await fetch(AbortSignal.timeout(FETCH_TIMEOUT_MS));
      cached = { fetched, renewAtMs: renewAtOf(fetched), fetchedAtMs: clock.nowMs() };
      return fetched.credential;
    } finally {
      fetching = undefined;
    }
  };
  const startRenewal = (): Promise<Credential> => {
    fetching ??= renew();
    return fetching;
  };
  const isValid = (fetched: FetchedCredential): boolean =>
    fetched.expiresAtMs === undefined || clock.nowMs() < fetched.expiresAtMs;

  return {
    get: async (signal) => {
      signal?.throwIfAborted();
      if (cached !== undefined && isValid(cached.fetched)) {
        const { credential } = cached.fetched;
        if (clock.nowMs() >= cached.renewAtMs) {
          const old = cached;
          startRenewal().catch(() => {
            // The old credential still signs; the renewal is retried soon.
            cached = { ...old, renewAtMs: clock.nowMs() + RETRY_RENEWAL_MS };
          });
        }
        return credential;
      }
      try {
        return await startRenewal();
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error);
        throw classifyError({ code: 'CREDENTIALS', action: 'GetCredential', text }, error);
      }
    },
    invalidate: () => {
      if (cached !== undefined && clock.nowMs() - cached.fetchedAtMs < FRESH_MS) return;
      cached = undefined;
    },
  };
}
