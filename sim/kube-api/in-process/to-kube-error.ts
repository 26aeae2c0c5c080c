import { KubeError, type KubeErrorCode } from '../../../kube/kube-error.ts';
import type { ApiError } from '../api-error.ts';

const BY_REASON: Readonly<Record<string, KubeErrorCode>> = { AlreadyExists: 'ALREADY_EXISTS', Timeout: 'TIMEOUT' };

const BY_STATUS: Readonly<Record<number, KubeErrorCode>> = {
  400: 'INVALID',
  401: 'UNAUTHORIZED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  405: 'INVALID',
  409: 'CONFLICT',
  410: 'EXPIRED',
  415: 'INVALID',
  422: 'INVALID',
  429: 'THROTTLED',
};

/** Makes of a refusal what a client makes of the answer that it would be. */
export function toKubeError(error: ApiError, request: string): KubeError {
  const { retryAfterSeconds } = error.details ?? {};
  return new KubeError(
    {
      code: BY_REASON[error.reason] ?? BY_STATUS[error.code] ?? 'UNAVAILABLE',
      request,
      text: error.message,
      status: error.code,
      reason: error.reason,
      ...(retryAfterSeconds === undefined ? {} : { retryAfterMs: retryAfterSeconds * 1000 }),
    },
    { cause: error },
  );
}
