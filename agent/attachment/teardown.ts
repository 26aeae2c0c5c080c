import type { Lease } from '../journal/lease.ts';
import { leaseKey } from '../journal/lease.ts';
import type { UseCaseDeps } from '../state/ports.ts';

/**
 * Ends a lease. Crash order: record that it ends, change the kernel, erase the record; a crash in between repeats the
 * rest. The address stays with the lease until rules, routes and links are deleted, then cools. Runs under the key's
 * lock. Idempotent.
 * @param cooldownMs 0 for an address that no packet can have used.
 * @returns `held` when the kernel is clean but the journal could not be written: the Pod is deleted, and its address
 * stays out of use until the next attempt is recorded.
 * @throws what unwiring throws; the lease then stays, as `releasing`, for the next attempt.
 */
export async function teardown(deps: UseCaseDeps, lease: Lease, cooldownMs: number): Promise<'erased' | 'held'> {
  const { state, journal, metrics, log } = deps;
  const key = leaseKey(lease);
  try {
    journal.markReleasing(key);
  } catch (error) {
    // A full disk must not keep a Pod from ending. Without this record a crash right here leaves an active lease
    // without links, which the runtime's next DEL or garbage collection ends.
    metrics.journalErrors.inc();
    log.warn('the intent to release was not written to the journal, continuing', { key, error });
  }
  deps.operationLog.step(key, 'record');
  const releasing: Lease = { ...lease, state: 'releasing' };
  state.leases.set(key, releasing);
  state.wired.delete(key);
  const pod = state.podNetwork(releasing);
  if (pod !== undefined) {
    state.kernelGeneration++;
    await deps.wiring.unwire(pod, releasing.netns);
    state.kernelGeneration++;
    deps.operationLog.step(key, 'netlink');
  }
  // Before the record is erased: after a crash in between, the next attempt removes them.
  if (lease.block !== undefined) {
    for (const { ip } of lease.addresses) deps.reservations.release({ ip, containerId: lease.containerId });
  }
  const finding = state.podFindings.of(releasing);
  const cooldowns = state.release(releasing, { nowMs: deps.clock.bootMs(), cooldownMs, finding });
  try {
    journal.eraseLease(key, cooldowns);
  } catch (error) {
    metrics.journalErrors.inc();
    state.retain(releasing);
    log.error('the end of a lease was not written to the journal, its address stays leased until it is', {
      key,
      error,
    });
    return 'held';
  }
  state.leases.delete(key);
  if (lease.nic !== undefined) {
    const { hostName, mtu } = lease.nic;
    state.formerNics.set(lease.eniId, { hostName, mtu });
  }
  if (state.awaitsProof(releasing.podUid)) state.podFindings.ask(releasing);
  deps.operationLog.step(key, 'erase');
  state.changed.notify();
  // Its address is refused again.
  if (lease.uplink === true) state.kickPass('the end of a Pod');
  deps.demandChanged();
  return 'erased';
}
