/**
 * The kind of failure.
 * - `CONFLICT`: the object changed since it was read (409); read again.
 * - `ALREADY_EXISTS`: 409 on creation.
 * - `NOT_FOUND`: no such object, or no such resource (404).
 * - `EXPIRED`: the resourceVersion or the page's token is too old (410); list again.
 * - `INVALID`: the object violates its schema or a policy (422, 400); a repetition fails again.
 * - `FORBIDDEN`: the role lacks a right (403). `UNAUTHORIZED`: the token is not accepted (401).
 * - `THROTTLED`: too many calls (429); wait `retryAfterMs`.
 * - `UNAVAILABLE`: no connection, or 5xx: it is unknown whether the call had an effect.
 * - `TIMEOUT`: no answer in time: it is unknown whether the call had an effect.
 * - `BAD_ANSWER`: the answer is not an object, or above a bound; with the reason ANSWER_TOO_LARGE it has too many bytes.
 */
export type KubeErrorCode =
  | 'CONFLICT'
  | 'ALREADY_EXISTS'
  | 'NOT_FOUND'
  | 'EXPIRED'
  | 'INVALID'
  | 'FORBIDDEN'
  | 'UNAUTHORIZED'
  | 'THROTTLED'
  | 'UNAVAILABLE'
  | 'TIMEOUT'
  | 'BAD_ANSWER';

/** The reason of an answer that has too many bytes. */
export const ANSWER_TOO_LARGE = 'AnswerTooLarge';

/** The facts about a failed call. */
type KubeFailure = {
  readonly code: KubeErrorCode;
  /** Method and object: `PUT nodeeniconfigs/n1`. */
  readonly request: string;
  /** The message of the server. */
  readonly text: string;
  /** HTTP status; absent when there was no answer. */
  readonly status?: number;
  /** The `reason` of the server's Status, or ANSWER_TOO_LARGE. */
  readonly reason?: string;
  /** The wait that the server requests, as far as it is obeyed. */
  readonly retryAfterMs?: number;
};

/** A call to the API server that failed. */
export class KubeError extends Error {
  readonly code: KubeErrorCode;
  readonly request: string;
  readonly text: string;
  readonly status: number | undefined;
  readonly reason: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(failure: KubeFailure, options?: ErrorOptions) {
    super(`${failure.request}: ${failure.code}: ${failure.text}`, options);
    this.name = 'KubeError';
    this.code = failure.code;
    this.request = failure.request;
    this.text = failure.text;
    this.status = failure.status;
    this.reason = failure.reason;
    this.retryAfterMs = failure.retryAfterMs;
  }
}

/** Reports whether a caught value is a KubeError, of one of the given codes if any are given. */
export function isKubeError(error: unknown, ...codes: readonly KubeErrorCode[]): error is KubeError {
  return error instanceof KubeError && (codes.length === 0 || codes.includes(error.code));
}
