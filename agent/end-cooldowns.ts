import { isPodCidrId } from './pod-cidr/pod-cidr-supply.ts';
import type { UseCaseDeps } from './ports.ts';

/**
 * Returns addresses to use whose cooldown is over, and erases their records. A record that the pool no longer holds is
 * erased whenever its cooldown ended: one failed write must not leave records for ever. The record of an address that
 * is being reused early stays until its lease is recorded in its place.
 * @throws JournalError; the addresses are in use by then, and the next call erases the records.
 */
export function endCooldowns({ clock, state, journal, demandChanged }: UseCaseDeps): void {
  const nowMs = clock.bootMs();
  const ended = [...state.pool.tick(nowMs), ...state.bridgePool.tick(nowMs), ...state.direct.tick(nowMs)];
  if (ended.length > 0) {
    state.changed.notify();
    demandChanged();
  }
  const over = journal.load().cooldowns.filter(({ ip, eniId, isWholeEni }) => {
    if (isWholeEni === true) return (state.direct.state.get(eniId)?.use ?? 'free') === 'free';
    const pool = isPodCidrId(eniId) ? state.bridgePool : state.pool;
    const now = pool.state.addresses.get(ip)?.state;
    return now !== 'cooling' && now !== 'leased';
  });
  if (over.length > 0) journal.eraseCooldowns(over.map(({ ip }) => ip));
}
