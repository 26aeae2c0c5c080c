/**
 * Why ipamd cannot work.
 * - `DEFINITION`: a definition of ours is not there and cannot be made, or is not what it has to be.
 * - `REGION`: the region was not given, and the instance's metadata service does not tell it.
 */
export type IpamdErrorCode = 'DEFINITION' | 'REGION';

/** A failure of ipamd itself; its message names the thing, the place and the next step. */
export class IpamdError extends Error {
  readonly code: IpamdErrorCode;

  constructor(code: IpamdErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'IpamdError';
    this.code = code;
  }
}
