/**
 * Why ipamd cannot work.
 * - `DEFINITION`: a definition of ipamd does not exist and cannot be created, or differs from the required one.
 */
export type IpamdErrorCode = 'DEFINITION';

/** A failure of ipamd itself; its message names the subject, the place and the next step. */
export class IpamdError extends Error {
  readonly code: IpamdErrorCode;

  constructor(code: IpamdErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'IpamdError';
    this.code = code;
  }
}
