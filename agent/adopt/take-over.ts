import { holdAddresses } from '../bridge/hold-addresses.ts';
import { askRuntime } from '../cri/ask-runtime.ts';
import type { SandboxView } from '../cri/sandbox-view.ts';
import type { Journal } from '../journal/journal-content.ts';
import { leaseKey } from '../journal/lease.ts';
import type { NetnsEvidence, PortEvidence } from '../node/bridge-evidence.ts';
import type { Reservation, Reservations } from '../pod-cidr/host-local-files.ts';
import type { AgentParts } from '../state/ports.ts';
import { decideStaleReservations, type ReservationFacts } from './decide-stale-reservations.ts';
import { planTakeover, portsWithoutLease, type TakenPod, type Takeover } from './plan-takeover.ts';

/** Dependencies of taking over. */
export type TakeOverDeps = Pick<AgentParts, 'clock' | 'log' | 'state'> & {
  readonly journal: Pick<Journal, 'putLease'>;
  readonly reservations: Reservations;
  /** Undefined when no runtime is configured. */
  readonly view: SandboxView | undefined;
  /** Reads the ports of the bridge. Synchronous, as the next. */
  readonly readPorts: () => readonly PortEvidence[];
  readonly readInterfaces: (named: Iterable<string>) => NetnsEvidence;
  readonly isNetnsAbsent: (path: string) => boolean;
  /** Makes the Pod's own side as that of a Pod of ours, and marks its link. @throws NetlinkError, SysctlError */
  readonly mark: (pod: TakenPod) => void;
  /** Called when the plan has other Pods now. */
  readonly changed: (cause: string) => void;
};

/** Takes over the Pods that another program put on the bridge. */
export type TakeOver = {
  /**
   * Takes over what is there now. Costs little while every port and every reservation has a lease. Never rejects, but for
   * `signal`.
   * @param patienceMs how long to wait for a runtime that does not answer
   */
  run(signal: AbortSignal, patienceMs?: number): Promise<void>;
};

/** So long nothing is looked at a third time while the same ports and reservations have no lease. */
const SAME_AGAIN_MS = 60_000;

/**
 * Prepares taking over. Each Pod is taken over by itself: its own side is made as ours and its link is marked, then the
 * journal has its lease, then the plan; killed in between, the next run goes on. What the kernel lacks on the host's side
 * (hairpin, the bridge's settings) comes by the next pass.
 */
export function openTakeOver(deps: TakeOverDeps): TakeOver {
  const { state, clock } = deps;
  const knownSinceMs = new Map<string, number>();
  let last: { readonly unleased: string; readonly atMs: number; readonly isRepeated: boolean } | undefined;
  return {
    run: async (signal, patienceMs = 0) => {
      if (!state.isBridgeUsed) return;
      try {
        reserveLeased(deps);
        const unleased = findUnleased(deps);
        if (unleased === '') return holdAddresses(state, new Set());
        const nowMs = clock.monotonicMs();
        const isRepeated = last?.unleased === unleased;
        // Two looks left the same without a lease (a Pod may have been in the making at the first): the runtime is not asked
        // about all sandboxes each time.
        if (last !== undefined && isRepeated && last.isRepeated && nowMs - last.atMs < SAME_AGAIN_MS) return;
        last = undefined;
        const outcome = await look(deps, knownSinceMs, signal, patienceMs);
        if (outcome === 'complete') last = { unleased: findUnleased(deps), atMs: nowMs, isRepeated };
      } catch (error) {
        if (signal.aborted) throw error;
        deps.log.error('Pods on the bridge are not taken over yet, will be tried again', { error });
      }
    },
  };
}

async function look(
  deps: TakeOverDeps,
  knownSinceMs: Map<string, number>,
  signal: AbortSignal,
  patienceMs: number,
): Promise<'complete' | 'again'> {
  const { state, clock, reservations } = deps;
  const ids = new Set(reservations.list().map(({ containerId }) => containerId));
  const unanswered = 'taking over without the container runtime: Pod names stay unknown';
  const { sandboxes, networks } = await askRuntime(deps, { ids, patienceMs, unanswered }, signal);
  const paths = [...networks].map(([id, network]) => [id, network?.netns ?? ''] as const);
  const netnsById = new Map(paths.filter(([, path]) => path !== '' && !deps.isNetnsAbsent(path)));
  // No await from here: an ADD or DEL that came between would make leases and kernel disagree.
  const { interfaces, isComplete } = deps.readInterfaces(netnsById.values());
  const { pods, refused, unexplained, unseen } = planTakeover({
    ports: deps.readPorts(),
    interfaces,
    reservations: reservations.list(),
    sandboxes: sandboxes ?? [],
    netnsById,
    leases: [...state.leases.values()],
  });
  const outcomes = pods.map((pod) => ({ ip: pod.lease.addresses[0]?.ip ?? '', isTaken: take(deps, pod) }));
  reportRefused(deps, refused);
  const ips = new Set(interfaces.flatMap(({ addresses }) => addresses.map(({ ip }) => ip)));
  const stale = decideStaleReservations(knownFor(unexplained, knownSinceMs, clock.monotonicMs()), {
    ips: isComplete && unseen.length === 0 ? ips : undefined,
    sandboxes,
    netnsById,
  });
  for (const reservation of stale) {
    reservations.release(reservation);
    deps.log.info('an address that no Pod has any more is free', { ...reservation });
  }
  const freed = new Set(stale);
  holdAddresses(
    state,
    new Set([
      ...refused.map(({ ip }) => ip),
      ...unexplained.filter((reservation) => !freed.has(reservation)).map(({ ip }) => ip),
      ...outcomes.filter(({ isTaken }) => !isTaken).map(({ ip }) => ip),
    ]),
  );
  state.changed.notify();
  if (outcomes.some(({ isTaken }) => isTaken)) deps.changed('taken over');
  const hasAnswer = deps.view === undefined || sandboxes !== undefined;
  return hasAnswer && isComplete && outcomes.every(({ isTaken }) => isTaken) ? 'complete' : 'again';
}

/** Measures for how long each reservation is known without a lease; forgets the others. */
function knownFor(
  unexplained: readonly Reservation[],
  knownSinceMs: Map<string, number>,
  nowMs: number,
): readonly ReservationFacts[] {
  const before = new Map(knownSinceMs);
  knownSinceMs.clear();
  return unexplained.map((reservation) => {
    const key = `${reservation.ip} ${reservation.containerId}`;
    const sinceMs = before.get(key) ?? nowMs;
    knownSinceMs.set(key, sinceMs);
    return { reservation, knownForMs: nowMs - sinceMs };
  });
}

function reportRefused({ state, log }: TakeOverDeps, refused: Takeover['refused']): void {
  for (const { ip, why } of refused) {
    if (!state.heldIps.has(ip)) log.warn('a Pod on the bridge is not taken over; its address is in use', { ip, why });
  }
}

/** Names the ports and reservations that have no lease; '' when there are none. */
function findUnleased({ state, reservations, readPorts }: TakeOverDeps): string {
  const leases = [...state.leases.values()];
  const leasedIps = new Set(leases.flatMap(({ addresses }) => addresses.map(({ ip }) => ip)));
  const ports = portsWithoutLease(readPorts(), leases);
  const others = reservations.list().filter(({ ip }) => !leasedIps.has(ip));
  return [...ports.map(({ ifindex }) => `${ifindex}`), ...others.map(({ ip, containerId }) => `${ip} ${containerId}`)]
    .sort()
    .join();
}

/** Reserves the addresses of our own Pods too: another program may have removed a file, or there was no folder. */
function reserveLeased({ state, reservations, log }: TakeOverDeps): void {
  const known = new Set(reservations.list().map(({ ip }) => ip));
  for (const { block, addresses, containerId, ifName, state: leaseState } of state.leases.values()) {
    if (block === undefined || leaseState !== 'active') continue;
    for (const { ip } of addresses) {
      if (known.has(ip) || reservations.reserve({ ip, containerId, ifName }) === 'reserved') continue;
      log.warn('host-local has the address of a live Pod for another container', { ip, containerId });
    }
  }
}

function take({ state, journal, reservations, mark, log }: TakeOverDeps, pod: TakenPod): boolean {
  const { lease } = pod;
  const key = leaseKey(lease);
  const [ip = ''] = lease.addresses.map((address) => address.ip);
  try {
    mark(pod);
    journal.putLease(lease);
  } catch (error) {
    log.error('a Pod on the bridge is not taken over yet, will be tried again', { key, ip, error });
    return false;
  }
  state.leases.set(key, lease);
  state.bridgePool.adopt([lease]);
  reservations.reserve({ ip, containerId: lease.containerId, ifName: lease.ifName });
  log.warn('took over a Pod on the bridge', { key, ip, pod: `${lease.podNamespace}/${lease.podName}` });
  return true;
}
