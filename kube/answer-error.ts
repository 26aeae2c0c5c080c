import { isRecord } from '../runtime/decode.ts';
import { recordOf } from '../runtime/json.ts';
import { limitText } from '../runtime/limit-text.ts';
import { KubeError, type KubeErrorCode } from './kube-error.ts';

/** An answer with an error status. */
type Refusal = {
  readonly request: string;
  readonly status: number;
  /** The body, parsed when it was JSON, else its text. */
  readonly body: unknown;
  /** The `Retry-After` header as received. */
  readonly retryAfter?: string | undefined;
};

/**
 * Converts an error answer into a KubeError.
 * @see metav1.Status, metav1.StatusReason
 */
export function answerError({ request, status, body, retryAfter }: Refusal): KubeError {
  const known = recordOf(body);
  const reason = typeof known['reason'] === 'string' && known['reason'] !== '' ? known['reason'] : undefined;
  const retryAfterMs = waitOf(known, retryAfter);
  return new KubeError({
    code: codeOf(status, reason),
    request,
    status,
    text: textOf(known, body),
    ...(reason === undefined ? {} : { reason }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/**
 * Reports whether a 404 concerns the object and not its resource: then the API server names the object. While the
 * definition of a custom kind is missing, none of its objects can be found; that must not be taken for a deletion of
 * the object.
 */
export function isObjectMissing(body: unknown): boolean {
  if (!isRecord(body) || body['reason'] !== 'NotFound' || !isRecord(body['details'])) return false;
  return typeof body['details']['name'] === 'string' && body['details']['name'] !== '';
}

const BY_STATUS: Readonly<Record<number, KubeErrorCode>> = {
  400: 'INVALID',
  401: 'UNAUTHORIZED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  405: 'INVALID',
  406: 'INVALID',
  409: 'CONFLICT',
  410: 'EXPIRED',
  413: 'INVALID',
  415: 'INVALID',
  422: 'INVALID',
  429: 'THROTTLED',
  504: 'TIMEOUT',
};

function codeOf(status: number, reason: string | undefined): KubeErrorCode {
  if (reason === 'AlreadyExists') return 'ALREADY_EXISTS';
  const known = BY_STATUS[status];
  if (known !== undefined) return known;
  return status >= 500 ? 'UNAVAILABLE' : 'BAD_ANSWER';
}

const SHOWN_CHARS = 1000;

function textOf(known: Readonly<Record<string, unknown>>, body: unknown): string {
  const text = typeof known['message'] === 'string' ? known['message'] : typeof body === 'string' ? body.trim() : '';
  if (text === '') return 'no text';
  return limitText(text, SHOWN_CHARS);
}

/** Longest wait that is obeyed, as long as our own between two attempts: a longer one would leave us blind meanwhile. */
const MAX_WAIT_MS = 30_000;

function waitOf(known: Readonly<Record<string, unknown>>, header: string | undefined): number | undefined {
  const details = recordOf(known['details']);
  const seconds = header === undefined ? details['retryAfterSeconds'] : Number(header);
  // A date in the header is legal HTTP. No API server sends one, and it would need synchronized clocks.
  return typeof seconds === 'number' && seconds >= 0 ? Math.min(seconds * 1000, MAX_WAIT_MS) : undefined;
}
