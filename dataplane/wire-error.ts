/**
 * Why a Pod could not be wired. IFNAME_TAKEN: its namespace has an interface of that name already. ROUTE_TAKEN: a foreign route stands
 * where the Pod's should. LINK_GONE: a link vanished while it was being wired.
 * NIC_MISSING: the interface of the ENI that the Pod should get is not in the host's namespace. KERNEL: the kernel refused a request.
 */
export type WireErrorCode = 'IFNAME_TAKEN' | 'ROUTE_TAKEN' | 'LINK_GONE' | 'NIC_MISSING' | 'KERNEL';

/** Reports a Pod that could not be wired; all that had been made for it is gone again, or named in `leftBehind`. */
export class WireError extends Error {
  readonly code: WireErrorCode;
  /** What could not be taken back. */
  leftBehind: readonly string[] = [];

  constructor(code: WireErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'WireError';
    this.code = code;
  }
}

/** Tells whether `error` is a WireError, of one of `codes` if any are given. */
export function isWireError(error: unknown, ...codes: readonly WireErrorCode[]): error is WireError {
  return error instanceof WireError && (codes.length === 0 || codes.includes(error.code));
}
