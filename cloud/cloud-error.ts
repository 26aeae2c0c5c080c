/**
 * How a caller may react to a failed call; set once, where the error is created.
 * - `never`: the same request fails again; it is wrong, forbidden, or its object is not in a state for it.
 * - `backoff`: nothing happened; the same request may succeed later.
 * - `throttled`: as `backoff`, and this API must be called less often.
 * - `busy`: another operation runs on the object; retry when it has ended.
 * - `resolve`: it is unknown whether the call had an effect. Describe first; repeat only with the same ClientToken.
 * - `quota`: a limit of the account, VPC, instance or ENI is reached, or a subnet is full: trips a breaker.
 * - `credentials`: the key is expired or not accepted; fetch a new one.
 * - `gone`: the object does not exist (any more). A deletion counts this as success.
 */
export type Retry = 'never' | 'backoff' | 'throttled' | 'busy' | 'resolve' | 'quota' | 'credentials' | 'gone';

/** What is exhausted when `retry` is `quota`; selects the circuit breaker that a caller trips. */
export type QuotaScope =
  | 'subnet'
  | 'vpc-enis'
  | 'instance-enis'
  | 'eni-ips'
  | 'eips'
  | 'instance-eips'
  | 'vpc-routes'
  | 'reserved-ips'
  | 'load-balancers'
  | 'listeners'
  | 'rules'
  | 'targets'
  | 'certificates'
  | 'security-groups'
  | 'security-group-policies'
  | 'account';

/** Code of a call whose time was over before it changed anything: it was not sent, or it only reads. */
export const DEADLINE_CODE = 'DEADLINE';

/** The facts of a failed call. */
type CloudFailure = {
  /**
   * The provider's code (`ResourceInsufficient.Subnet`), or one of this adapter: TIMEOUT, NETWORK, HTTP_503,
   * BAD_ANSWER, ...
   */
  readonly code: string;
  /** The API that was called: `AssignPrivateIpAddresses`. */
  readonly action: string;
  /** The provider's message. */
  readonly text: string;
  readonly requestId?: string;
  readonly retry: Retry;
  /** Set if and only if `retry` is `quota`. */
  readonly scope?: QuotaScope;
  /** Set for `throttled` when the limit is the account's: every API of the product must be called less often. */
  readonly isAccountWide?: boolean;
  /** Wait this long before the same request; 0 when waiting does not help. Milliseconds. */
  readonly afterMs: number;
};

/** A call to the cloud that failed; `retry` determines how the caller may react. */
export class CloudError extends Error {
  readonly code: string;
  readonly action: string;
  readonly requestId: string | undefined;
  readonly retry: Retry;
  readonly scope: QuotaScope | undefined;
  readonly isAccountWide: boolean;
  readonly afterMs: number;
  /** The provider's message, without what `message` adds. */
  readonly text: string;

  constructor(failure: CloudFailure, options?: ErrorOptions) {
    const request = failure.requestId === undefined ? '' : `, RequestId=${failure.requestId}`;
    super(`${failure.action}: Code=${failure.code}, Message=${failure.text}${request}`, options);
    this.name = 'CloudError';
    this.code = failure.code;
    this.action = failure.action;
    this.requestId = failure.requestId;
    this.retry = failure.retry;
    this.scope = failure.scope;
    this.isAccountWide = failure.isAccountWide ?? false;
    this.afterMs = failure.afterMs;
    this.text = failure.text;
  }
}

/** Reports whether a caught value is a CloudError, of one of the given kinds if any are given. */
export function isCloudError(error: unknown, ...kinds: readonly Retry[]): error is CloudError {
  return error instanceof CloudError && (kinds.length === 0 || kinds.includes(error.retry));
}
