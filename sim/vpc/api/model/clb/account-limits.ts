/** Quotas of an account, and how many deletions in five minutes look like a mistake. */
export type ClbLimits = {
  openBalancers: number;
  internalBalancers: number;
  /** Of one load balancer. */
  listeners: number;
  /** Of one listener. */
  rules: number;
  /** Of one listener of layer 4, or of one rule. */
  targets: number;
  snatIps: number;
  certificates: number;
  deletions: number;
};

/** What an account has that asked for nothing. */
export const DEFAULT_LIMITS: ClbLimits = {
  openBalancers: 100,
  internalBalancers: 100,
  listeners: 50,
  rules: 50,
  targets: 100,
  snatIps: 10,
  certificates: 1_000,
  deletions: 30,
};
