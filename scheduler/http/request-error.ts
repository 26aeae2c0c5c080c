/**
 * Why a request is not answered.
 * - `NOT_FOUND`: no such path. `METHOD`: not by this method.
 * - `TOO_LARGE`: its body is over the limit. `BAD_JSON`: its body is no JSON. `BAD_SHAPE`: it is not what the verb takes.
 * - `STANDBY`: another replica leads, or the caches are not read yet. `BUSY`: too many requests at once.
 */
export type RequestErrorCode = 'NOT_FOUND' | 'METHOD' | 'TOO_LARGE' | 'BAD_JSON' | 'BAD_SHAPE' | 'STANDBY' | 'BUSY';

const STATUS: Readonly<Record<RequestErrorCode, number>> = {
  NOT_FOUND: 404,
  METHOD: 405,
  TOO_LARGE: 413,
  BAD_JSON: 400,
  BAD_SHAPE: 400,
  STANDBY: 503,
  BUSY: 503,
};

/** A request that is refused as a whole; the message is for whoever sent it. */
export class RequestError extends Error {
  readonly code: RequestErrorCode;
  /** Of HTTP. */
  readonly status: number;

  constructor(code: RequestErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RequestError';
    this.code = code;
    this.status = STATUS[code];
  }
}
