/**
 * Why a Pod could not be wired. IFNAME_TAKEN: its namespace already has an interface of that name. ROUTE_TAKEN: there
 * is a foreign route in place of the Pod's. LINK_GONE: a link vanished during the wiring. NIC_MISSING: the interface of
 * the Pod's exclusive ENI is not in the host's namespace. BRIDGE_MISSING: the bridge of GlobalRoute Pods is not there; the
 * next reconcile makes it. KERNEL: the kernel refused a request.
 */
export type WireErrorCode = 'IFNAME_TAKEN' | 'ROUTE_TAKEN' | 'LINK_GONE' | 'NIC_MISSING' | 'BRIDGE_MISSING' | 'KERNEL';

/** A Pod that could not be wired. Everything that had been made for it is undone, or named in `leftBehind`. */
export class WireError extends Error {
  readonly code: WireErrorCode;
  /** Names of the steps that could not be undone. */
  leftBehind: readonly string[] = [];

  constructor(code: WireErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'WireError';
    this.code = code;
  }
}

/** Reports whether `error` is a WireError, of one of `codes` if any are given. */
export function isWireError(error: unknown, ...codes: readonly WireErrorCode[]): error is WireError {
  return error instanceof WireError && (codes.length === 0 || codes.includes(error.code));
}
