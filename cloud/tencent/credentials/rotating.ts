import { type Clock, timeoutSignal } from '../../../runtime/clock.ts';
import { messageOf } from '../../../runtime/error-text.ts';
import { classifyError } from '../../classify-error.ts';
import { CloudError, isCloudError } from '../../cloud-error.ts';
import {
  type Credential,
  type CredentialSource,
  type FetchCredential,
  type FetchedCredential,
  type KeyFailure,
  type KeyFailureListener,
  NoKeyError,
} from './credential.ts';

/** When a credential is fetched again. */
type RotationSettings = {
  /** A temporary one is renewed this long before it expires; milliseconds, default five minutes. */
  readonly renewBeforeMs?: number;
  /**
   * One without an expiry is read again after this time, so that a changed file is noticed; milliseconds, default ten
   * seconds.
   */
  readonly rereadMs?: number;
  /** What to do where there is no credential, for people. */
  readonly cure?: string;
  /** What to do where STS refuses one. */
  readonly stsCure?: string;
  /** Called when there is none, or STS refuses one, and why. */
  readonly onFailure?: KeyFailureListener | undefined;
};

const RENEW_BEFORE_MS = 300_000;
const REREAD_MS = 10_000;
const FETCH_TIMEOUT_MS = 10_000;
/**
 * Longest lifetime of a temporary key. More only follows from a wrong clock.
 * @see sts AssumeRole, DurationSeconds
 */
const MAX_LIFETIME_MS = 43_200_000;
/**
 * A key that is fetched after its end, by the clock of this machine, is used for this long: the clock is more likely
 * wrong than the source. The cloud decides whether it accepts the key.
 */
const MIN_LIFETIME_MS = 60_000;
/** Delay after a failed renewal of a valid credential; an unavailable source is not called with every request. */
const RETRY_RENEWAL_MS = 10_000;
/**
 * All running calls fail when a key is rotated. Within this time after a fetch, further reports of the old key are
 * ignored.
 */
const FRESH_MS = 1_000;

/** A source that does not answer for so long counts as one without a key. */
const SILENT_MS = 60_000;
const ACTION = 'GetCredential';

/** Times are monotonic: a step of the wall clock changes none of them. */
type CachedCredential = {
  readonly credential: Credential;
  readonly renewAtMs: number;
  /** Infinite when it does not expire by itself. */
  readonly expiresAtMs: number;
  readonly fetchedAtMs: number;
};

/**
 * Creates a source that keeps a credential fresh. It fetches once for all waiting callers. It renews the credential
 * before it expires, while the old one still signs. When a renewal fails, the old one is used until it expires. The
 * wall clock is read once for each credential, when it is fetched: what is left of its lifetime then passes on the
 * monotonic clock. After a suspension of the machine the
 * cloud may refuse a key that has not expired here; `invalidate` then fetches another.
 */
export function createRotatingSource(
  clock: Clock,
  fetch: FetchCredential,
  settings: RotationSettings = {},
): CredentialSource {
  const renewBeforeMs = settings.renewBeforeMs ?? RENEW_BEFORE_MS;
  let cached: CachedCredential | undefined;
  let fetching: Promise<Credential> | undefined;
  /** Since when no source says whether it has a key. */
  let silentSinceMs: number | undefined;
  const report = (kind: KeyFailure, error: unknown, cure: string | undefined): CloudError => {
    const text = cure === undefined ? messageOf(error) : `${messageOf(error)}. ${cure}`;
    settings.onFailure?.(kind, text);
    return classifyError({ code: 'CREDENTIALS', action: ACTION, text }, error);
  };
  const failureOf = (error: unknown): CloudError => {
    if (isCloudError(error, 'credentials')) return error;
    if (isCloudError(error, 'throttled', 'backoff', 'busy', 'resolve')) {
      // What the key was to be used for was not sent.
      const { code, action, text, afterMs } = error;
      return new CloudError({ code, action, text, afterMs, retry: 'backoff' }, { cause: error });
    }
    if (isCloudError(error)) return report('CredentialsRefused', error, settings.stsCure);
    silentSinceMs ??= clock.monotonicMs();
    const isNone = error instanceof NoKeyError || clock.monotonicMs() - silentSinceMs >= SILENT_MS;
    if (isNone) return report('CredentialsMissing', error, settings.cure);
    return classifyError({ code: 'CREDENTIALS', action: ACTION, text: messageOf(error) }, error);
  };

  const cacheOf = ({ credential, expiresAtMs }: FetchedCredential): CachedCredential => {
    const nowMs = clock.monotonicMs();
    const base = { credential, fetchedAtMs: nowMs };
    if (expiresAtMs === undefined) {
      return { ...base, renewAtMs: nowMs + (settings.rereadMs ?? REREAD_MS), expiresAtMs: Number.POSITIVE_INFINITY };
    }
    const lifetimeMs = Math.min(MAX_LIFETIME_MS, Math.max(MIN_LIFETIME_MS, expiresAtMs - clock.nowMs()));
    // A credential with a shorter lifetime than the margin is renewed at half its lifetime, not with every call.
    const renewAtMs = nowMs + lifetimeMs - Math.min(renewBeforeMs, lifetimeMs / 2);
    return { ...base, renewAtMs, expiresAtMs: nowMs + lifetimeMs };
  };
  const renew = async (): Promise<Credential> => {
    try {
      const fetched = await fetch(timeoutSignal(FETCH_TIMEOUT_MS));
      cached = cacheOf(fetched);
      silentSinceMs = undefined;
      return fetched.credential;
    } finally {
      fetching = undefined;
    }
  };
  const startRenewal = (): Promise<Credential> => {
    fetching ??= renew();
    return fetching;
  };

  return {
    get: async (signal) => {
      signal?.throwIfAborted();
      if (cached !== undefined && clock.monotonicMs() < cached.expiresAtMs) {
        const { credential } = cached;
        if (clock.monotonicMs() >= cached.renewAtMs) {
          const old = cached;
          startRenewal().catch(() => {
            // The old credential still signs; the renewal is retried soon.
            cached = { ...old, renewAtMs: clock.monotonicMs() + RETRY_RENEWAL_MS };
          });
        }
        return credential;
      }
      try {
        return await startRenewal();
      } catch (error) {
        throw failureOf(error);
      }
    },
    invalidate: () => {
      if (cached !== undefined && clock.monotonicMs() - cached.fetchedAtMs < FRESH_MS) return;
      cached = undefined;
    },
  };
}
