import type { Family } from '../../dataplane/ip-prefix.ts';
import { CNI_CODE } from '../api/cni-code.ts';
import { CniFailureError } from '../api/cni-failure.ts';
import type { WaitingAdd } from '../pods/count-waiting.ts';
import type { PoolAddress } from '../pool/pool-state.ts';
import type { UseCaseDeps } from '../state/ports.ts';
import type { TimedAttachCommand } from './attach-command.ts';

/** Since when and until when an ADD may wait, milliseconds of the boot clock. */
type AddWait = { readonly startMs: number; readonly untilMs: number };

/** What an ADD may wait for: addresses of the pool, a static IP, a whole ENI. */
export type LeaseSource<T> = {
  /** Names what the ADD waits for: `an address`. */
  readonly what: string;
  /**
   * Leases what the ADD needs; `mayForce` allows what is still cooling. Returns undefined when there is none, else a
   * function that makes it usable: it resolves to undefined when the lease was returned and another try is due.
   */
  lease(nowMs: number, mayForce: boolean): (() => Promise<T | undefined>) | undefined;
  /** Called before each wait: the ADD counts as demand. */
  waiting(): void;
  /** Returns why there is none. */
  failure(waitedMs: number): CniFailureError;
};

/** Part of the caller's deadline that is left for wiring and the reply. */
const ANSWER_MARGIN_MS = 1_000;
/** A cooldown may end without a notification; poll at least this often. */
const POLL_MS = 1_000;

/** Returns how long an ADD may wait from now: to the caller's deadline, `addWaitMs` at most. */
export function addWaitOf({ clock, settings }: UseCaseDeps, { deadlineAtBootMs }: TimedAttachCommand): AddWait {
  const startMs = clock.bootMs();
  return { startMs, untilMs: Math.min(startMs + settings.addWaitMs, deadlineAtBootMs - ANSWER_MARGIN_MS) };
}

/**
 * Leases from a source, and tries again at each change of the node's state until the wait ends. Under pressure, after
 * `forceAfterMs` or half of the wait, what is still cooling may be leased.
 * @throws CniFailureError 11 when the caller gave up; what `failure` returns when the wait ended; what the source throws
 */
export async function leaseInTime<T>(
  { clock, settings, state }: UseCaseDeps,
  { startMs, untilMs }: AddWait,
  source: LeaseSource<T>,
  signal: AbortSignal,
): Promise<T> {
  const forceAtMs = startMs + Math.min(settings.forceAfterMs, (untilMs - startMs) / 2);
  for (;;) {
    if (signal.aborted) throw gaveUp(source.what, signal);
    const nowMs = clock.bootMs();
    const prepare = source.lease(nowMs, nowMs >= forceAtMs);
    if (prepare !== undefined) {
      const leased = await prepare();
      if (leased !== undefined) return leased;
      continue;
    }
    if (nowMs >= untilMs) throw source.failure(nowMs - startMs);
    source.waiting();
    const nextMs = nowMs < forceAtMs ? Math.min(forceAtMs, untilMs) : untilMs;
    await state.changed.wait(Math.max(1, Math.min(nextMs - nowMs, POLL_MS)), signal);
  }
}

function gaveUp(what: string, signal: AbortSignal): CniFailureError {
  return new CniFailureError(CNI_CODE.tryAgainLater, `gave up while waiting for ${what}`, String(signal.reason ?? ''));
}

/** Takes addresses for one ADD: of the pool, or the static one of its Pod. */
export type AddressSource = {
  /** How the ADD counts as demand while it waits. */
  readonly waiting: WaitingAdd;
  /** Takes one address per family; undefined when there are none. `mayForce`: cooling ones may be taken too. */
  take(families: readonly Family[], nowMs: number, mayForce: boolean): readonly PoolAddress[] | undefined;
  /** Prepares what was taken for its new owner. @throws after having returned it */
  prepare(): Promise<void>;
  /** Builds the failure that says why nothing was taken. */
  failure(waitedMs: number): CniFailureError;
};
