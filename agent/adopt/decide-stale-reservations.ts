import type { CriSandbox } from '../cri/sandbox-view.ts';
import type { Reservation } from '../pod-cidr/host-local-files.ts';

/** What is known of a reservation without a lease. */
export type ReservationFacts = {
  readonly reservation: Reservation;
  /** For how long this agent has found it without a lease, milliseconds. */
  readonly knownForMs: number;
};

/** What the node and its runtime show of Pods on the bridge. */
export type BridgeEvidence = {
  /** Addresses in network namespaces; undefined when some namespace, or the other end of some port, was not read. */
  readonly ips: ReadonlySet<string> | undefined;
  /** Undefined when no runtime answers, or none is configured. */
  readonly sandboxes: readonly CriSandbox[] | undefined;
  /** Namespaces as the runtime names them, by sandbox id; one that does not exist is left out. */
  readonly netnsById: ReadonlyMap<string, string>;
};

/** So long after its end a sandbox may still have its address. */
export const RESERVATION_GRACE_MS = 60_000;
/** Where no runtime lists the sandbox: it may be in the making, or of a runtime that does not answer. */
export const UNLISTED_RESERVATION_GRACE_MS = 600_000;

/**
 * Decides which reservations are left over: their address is proven free. Each Pod on the bridge was seen and none has it, and
 * the sandbox that it was reserved for is gone, or has no namespace any more. A list of sandboxes only delays that: it may be
 * of another runtime. ADR 0094.
 */
export function decideStaleReservations(
  all: readonly ReservationFacts[],
  { ips, sandboxes, netnsById }: BridgeEvidence,
): readonly Reservation[] {
  if (ips === undefined) return [];
  const byId = new Map((sandboxes ?? []).map((sandbox) => [sandbox.id, sandbox]));
  return all
    .filter(({ reservation: { ip, containerId }, knownForMs }) => {
      const sandbox = byId.get(containerId);
      const graceMs = sandbox === undefined ? UNLISTED_RESERVATION_GRACE_MS : RESERVATION_GRACE_MS;
      if (ips.has(ip) || knownForMs < graceMs) return false;
      return sandbox?.state !== 'ready' && !netnsById.has(containerId);
    })
    .map(({ reservation }) => reservation);
}
