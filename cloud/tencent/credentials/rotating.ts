import type { Clock } from '../../../runtime/clock.ts';
import { classifyError } from '../../classify-error.ts';
import type { Credential, CredentialSource, FetchCredential, FetchedCredential } from './credential.ts';

/** When a credential is fetched anew. */
export type RotationSettings = {
  /** A temporary one is renewed this long before it expires; milliseconds, default five minutes. */
  readonly renewBeforeMs?: number;
  /** One without an expiry is read again after this long, so that a changed file is noticed; default ten seconds. */
  readonly rereadMs?: number;
};

const RENEW_BEFORE_MS = 300_000;
const REREAD_MS = 10_000;
const FETCH_TIMEOUT_MS = 10_000;
/** After a failed renewal of one that still works; a source that is away is not asked with every call. */
const RETRY_RENEWAL_MS = 10_000;
/** Calls under way when a key was rotated all fail with the old one; only the first of them is news. */
const FRESH_MS = 1_000;

type Held = { readonly fetched: FetchedCredential; readonly renewAtMs: number; readonly fetchedAtMs: number };

/**
 * Keeps a credential fresh: fetches it once for all who wait, renews it before it expires while the old one still
 * signs, and goes on with the old one as long as it lives when a renewal fails.
 */
export function createRotatingSource(
  clock: Clock,
  fetch: FetchCredential,
  settings: RotationSettings = {},
): CredentialSource {
  const renewBeforeMs = settings.renewBeforeMs ?? RENEW_BEFORE_MS;
  let held: Held | undefined;
  let fetching: Promise<Credential> | undefined;

  const renewAtOf = (fetched: FetchedCredential): number => {
    const nowMs = clock.nowMs();
    if (fetched.expiresAtMs === undefined) return nowMs + (settings.rereadMs ?? REREAD_MS);
    // One that lives shorter than the margin is renewed at half its life, else it would be renewed with every call.
    const livesMs = fetched.expiresAtMs - nowMs;
    return fetched.expiresAtMs - Math.min(renewBeforeMs, livesMs / 2);
  };
  const renew = async (): Promise<Credential> => {
    try {
      const fetched = await fetch(AbortSignal.timeout(FETCH_TIMEOUT_MS));
      held = { fetched, renewAtMs: renewAtOf(fetched), fetchedAtMs: clock.nowMs() };
      return fetched.credential;
    } finally {
      fetching = undefined;
    }
  };
  const startRenewal = (): Promise<Credential> => {
    fetching ??= renew();
    return fetching;
  };
  const isAlive = (fetched: FetchedCredential): boolean =>
    fetched.expiresAtMs === undefined || clock.nowMs() < fetched.expiresAtMs;

  return {
    get: async (signal) => {
      signal?.throwIfAborted();
      if (held !== undefined && isAlive(held.fetched)) {
        const { credential } = held.fetched;
        if (clock.nowMs() >= held.renewAtMs) {
          const old = held;
          startRenewal().catch(() => {
            // The old one still signs; the next look comes soon enough.
            held = { ...old, renewAtMs: clock.nowMs() + RETRY_RENEWAL_MS };
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
      if (held !== undefined && clock.nowMs() - held.fetchedAtMs < FRESH_MS) return;
      held = undefined;
    },
  };
}
