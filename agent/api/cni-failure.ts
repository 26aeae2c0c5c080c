import type { CniCode } from './cni-code.ts';

/** A failure that the runtime gets as a CNI error. `details` is for the person who reads the Pod's events. */
export type CniFailure = { readonly code: CniCode; readonly msg: string; readonly details: string };

/**
 * Carries a `CniFailure` out of the inner functions of a use case; its outermost function turns it back into a value.
 */
export class CniFailureError extends Error {
  readonly code: CniCode;
  readonly details: string;

  constructor(code: CniCode, message: string, details = '', options?: ErrorOptions) {
    super(message, options);
    this.name = 'CniFailureError';
    this.code = code;
    this.details = details;
  }
}
