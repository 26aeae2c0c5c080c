import { refused } from '../../runtime/settings/rule.ts';
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

/** `RENEW_DEADLINE_SHARE` as numerator and denominator. */
export const RENEW_DEADLINE = [3, 4] as const;

/**
 * The leader trusts its lease for this share of it, counted from before it sent the renewal. Candidates wait for the whole lease,
 * counted from when they read it. So clocks may run a quarter slower or faster than each other. A renewal and one retry
 * must fit into the trusted share.
 */
export const RENEW_DEADLINE_SHARE = RENEW_DEADLINE[0] / RENEW_DEADLINE[1];

/** Times that leave none for a second try at renewal are refused. */
export const ELECTION_RULE = refused(
  'leader-elect-renew',
  'with --leader-elect-retry at most three quarters of --leader-elect-lease, {limit} ms',
  { sum: ['leader-elect-renew', 'leader-elect-retry'], above: 'leader-elect-lease', of: RENEW_DEADLINE },
);
