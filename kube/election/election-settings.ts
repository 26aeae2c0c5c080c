import type { Rule } from '../../runtime/settings/rule.ts';
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

/** Times that leave none for a second try at renewal are refused. */
export const ELECTION_RULE: Rule = {
  flag: 'leader-elect-renew',
  refusedWhen: [{ sum: ['leader-elect-renew', 'leader-elect-retry'], above: 'leader-elect-lease', of: [3, 4] }],
  expected: 'with --leader-elect-retry at most three quarters of --leader-elect-lease, {limit} ms',
};
