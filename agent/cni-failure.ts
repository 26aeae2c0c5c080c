/**
 * What a CNI call failed with, by name. 1 to 99 are the specification's, 100 and above ours.
 * @see CNI SPEC, section "Error"
 */
export const CNI_CODE = {
  unsupportedField: 2,
  unknownContainer: 3,
  invalidEnvironment: 4,
  io: 5,
  decode: 6,
  invalidConf: 7,
  tryAgainLater: 11,
  notAvailable: 50,
  limitedConnectivity: 51,
  poolExhausted: 101,
  eniGone: 102,
  conflict: 103,
  checkFailed: 104,
  kernel: 105,
  ifnameTaken: 106,
  internal: 999,
} as const;

/** Any code of the table above. */
export type CniCode = (typeof CNI_CODE)[keyof typeof CNI_CODE];

/** An outcome that the runtime must see as a CNI error. `details` is for the person who reads the Pod's events. */
export type CniFailure = { readonly code: CniCode; readonly msg: string; readonly details: string };

/** Carries a `CniFailure` out of the depth of a use case; the use case's edge turns it back into a value. */
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
