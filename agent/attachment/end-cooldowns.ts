import { joinLimited } from '../../runtime/limit-text.ts';
import { isPodCidrId } from '../pod-cidr/pod-cidr-supply.ts';
import type { UseCaseDeps } from '../state/ports.ts';

const HOUR_MS = 3_600_000;

/**
 * Returns addresses to use whose cooldown is over, or whose wait for load balancers took too long, and erases their records. A record that the pool no longer holds is
 * erased whenever its cooldown ended: one failed write must not leave records forever. The record of an address that
 * is being reused early stays until its lease is recorded in its place; that of one that load balancers still have stays
 * until they have it no more, as it says since when it waits.
 * @throws JournalError; the addresses are in use by then, and the next call erases the records.
 */
export function endCooldowns(deps: UseCaseDeps): void {
  const { clock, state, journal, demandChanged } = deps;
  const nowMs = clock.bootMs();
  const ended = [...state.pool.tick(nowMs), ...state.bridgePool.tick(nowMs), ...state.exclusivePool.tick(nowMs)];
  if (ended.length > 0) {
    state.changed.notify();
    demandChanged();
  }
  endWaits(deps, nowMs);
  const waiting = state.registeredIdle();
  const over = journal.load().cooldowns.filter(({ ip, eniId, isWholeEni }) => {
    if (waiting.has(ip)) return false;
    if (isWholeEni === true) return (state.exclusivePool.state.get(eniId)?.use ?? 'free') === 'free';
    const pool = isPodCidrId(eniId) ? state.bridgePool : state.pool;
    const { state: use, coolUntilMs } = pool.state.addresses.get(ip) ?? {};
    return coolUntilMs === undefined && use !== 'leased';
  });
  if (over.length > 0) journal.eraseCooldowns(over.map(({ ip }) => ip));
}

/** Reports the addresses that serve again although a load balancer may still have them. */
function endWaits({ state, metrics, events, log, settings }: UseCaseDeps, nowMs: number): void {
  const ended = state.endRegistered(nowMs);
  metrics.registeredWaiting.set(state.waitingCount());
  if (ended.length === 0) return;
  metrics.registeredOverdue.inc(ended.length);
  const hours = settings.registeredWaitMs / HOUR_MS;
  const text = `${joinLimited(ended)} had no Pod for ${hours} h and are still published as targets of load balancers: other Pods may get them now, and requests that are meant for their former Pods`;
  log.error('registered addresses are used again', { ips: ended });
  events.report('Warning', 'RegisteredTooLong', text);
}
