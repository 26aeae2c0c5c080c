/**
 * Codes with which a CNI call fails, by name. 1 to 99 come from the specification, 100 and above are ours.
 * @see CNI SPEC, section "Error"
 */
export const CNI_CODE = {
  incompatibleVersion: 1,
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
