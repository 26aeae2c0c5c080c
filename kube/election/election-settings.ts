import type { Faults } from '../../runtime/decode.ts';
import type { LockRef } from './lock-record.ts';

/** The settings of an election. Times in milliseconds. */
export type ElectionSettings = {
  readonly leaderElectLock: LockRef['kind'];
  readonly leaderElectName: string;
  readonly namespace: string;
  readonly leaderElectLeaseMs: number;
  readonly leaderElectRenewMs: number;
  readonly leaderElectRetryMs: number;
};

/**
 * The leader trusts its lease for this share of it, counted from before it sent the renewal. Candidates wait for the whole lease,
 * counted from when they read it. So clocks may run a quarter slower or faster than each other. A renewal and one retry
 * must fit into the trusted share.
 */
export const RENEW_DEADLINE_SHARE = 0.75;

/** Adds a fault when the times of an election leave no time for a second try at renewal. */
export function checkElectionSettings(
  settings: Pick<ElectionSettings, 'leaderElectLeaseMs' | 'leaderElectRenewMs' | 'leaderElectRetryMs'>,
  faults: Faults,
): void {
  const renewDeadlineMs = settings.leaderElectLeaseMs * RENEW_DEADLINE_SHARE;
  const renewedMs = settings.leaderElectRenewMs + settings.leaderElectRetryMs;
  if (renewedMs <= renewDeadlineMs) return;
  const limit = `with --leader-elect-retry at most three quarters of --leader-elect-lease, ${renewDeadlineMs} ms`;
  faults.add('--leader-elect-renew', limit, renewedMs);
}
