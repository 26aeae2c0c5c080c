/**
 * Why a request is refused.
 * - `FORBIDDEN`: the client's certificate has no allowed name.
 * - `NOT_FOUND`: unknown path. `METHOD`: the path does not accept this method.
 * - `TOO_LARGE`: the body exceeds the limit. `BAD_JSON`: the body is not JSON. `BAD_SHAPE`: the JSON is not what the
 *   verb takes.
 * - `STANDBY`: no leader answered in time, or another replica leads to which this one cannot forward, or the caches are
 *   not synced yet. `BUSY`: too many requests at once.
 */
export type RequestErrorCode =
  | 'FORBIDDEN'
  | 'NOT_FOUND'
  | 'METHOD'
  | 'TOO_LARGE'
  | 'BAD_JSON'
  | 'BAD_SHAPE'
  | 'STANDBY'
  | 'BUSY';

const STATUS: Readonly<Record<RequestErrorCode, number>> = {
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD: 405,
  TOO_LARGE: 413,
  BAD_JSON: 400,
  BAD_SHAPE: 400,
  STANDBY: 503,
  BUSY: 503,
};

/** A request that is refused as a whole; the message goes to the client. */
export class RequestError extends Error {
  readonly code: RequestErrorCode;
  /** The HTTP status code. */
  readonly status: number;

  constructor(code: RequestErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RequestError';
    this.code = code;
    this.status = STATUS[code];
  }
}
