import type { CriSandbox } from '../cri/sandbox-view.ts';
import type { Reservation } from '../pod-cidr/host-local-files.ts';

/** What is known of a reservation without a lease. */
export type ReservationFacts = {
  readonly reservation: Reservation;
  /** For how long this agent has found it without a lease, milliseconds. */
  readonly knownForMs: number;
};

/** What is known of the node. */
export type NodeFacts = {
  /** Addresses in network namespaces; undefined when some namespace could not be read. */
  readonly ips: ReadonlySet<string> | undefined;
  /** Undefined when no runtime answers, or none is configured. */
  readonly sandboxes: readonly CriSandbox[] | undefined;
  /** Namespaces as the runtime names them, by sandbox id; one that does not exist is left out. */
  readonly netnsById: ReadonlyMap<string, string>;
};

/** So long a sandbox may be in the making: its address is reserved first, and the runtime lists it last. */
export const RESERVATION_GRACE_MS = 60_000;
/** Without a runtime, which would list the sandbox. */
export const UNLISTED_RESERVATION_GRACE_MS = 600_000;

/**
 * Decides which reservations are left over: their address is proven free. No namespace has it, and the sandbox that it
 * was reserved for is gone, or has no namespace any more. A sandbox in the making has an address soon.
 */
export function decideStaleReservations(
  all: readonly ReservationFacts[],
  { ips, sandboxes, netnsById }: NodeFacts,
): readonly Reservation[] {
  if (ips === undefined) return [];
  const byId = new Map((sandboxes ?? []).map((sandbox) => [sandbox.id, sandbox]));
  return all
    .filter(({ reservation, knownForMs }) => {
      if (ips.has(reservation.ip)) return false;
      if (sandboxes === undefined) return knownForMs >= UNLISTED_RESERVATION_GRACE_MS;
      if (knownForMs < RESERVATION_GRACE_MS) return false;
      const sandbox = byId.get(reservation.containerId);
      return sandbox === undefined || (sandbox.state === 'not-ready' && !netnsById.has(sandbox.id));
    })
    .map(({ reservation }) => reservation);
}
