import { type LeaderElectionOptions, runAsLeader, type Term } from '../leader-election.ts';
import type { LockRef } from './lock-record.ts';

/** What people set of an election. Times in milliseconds. */
export type ElectionSettings = {
  readonly leaderElectLock: LockRef['kind'];
  readonly leaderElectName: string;
  readonly namespace: string;
  readonly leaderElectLeaseMs: number;
  readonly leaderElectRenewMs: number;
  readonly leaderElectRetryMs: number;
};

/** The rest: what the process has. */
export type ElectionParts = Omit<LeaderElectionOptions, 'lock' | 'leaseMs' | 'renewMs' | 'retryMs'>;

/**
 * Leads whenever it is elected, until `drain` aborts. Who leads then has something to drain first: the lock is held until
 * `lead` has ended, and who does not lead stands no more.
 * @throws what `runAsLeader` throws
 */
export async function leadUntilDrained(
  settings: ElectionSettings,
  parts: ElectionParts,
  lead: (term: Term) => Promise<void>,
  drain: AbortSignal,
): Promise<void> {
  const contend = new AbortController();
  let isLeading = false;
  const stopContending = (): void => {
    if (drain.aborted && !isLeading) contend.abort(drain.reason);
  };
  const office = async (term: Term): Promise<void> => {
    isLeading = true;
    try {
      await lead(term);
    } finally {
      isLeading = false;
      stopContending();
    }
  };
  drain.addEventListener('abort', stopContending, { once: true });
  stopContending();
  try {
    await runAsLeader({ ...parts, ...timesOf(settings) }, office, contend.signal);
  } finally {
    drain.removeEventListener('abort', stopContending);
  }
}

function timesOf(settings: ElectionSettings): Pick<LeaderElectionOptions, 'lock' | 'leaseMs' | 'renewMs' | 'retryMs'> {
  return {
    lock: { kind: settings.leaderElectLock, namespace: settings.namespace, name: settings.leaderElectName },
    leaseMs: settings.leaderElectLeaseMs,
    renewMs: settings.leaderElectRenewMs,
    retryMs: settings.leaderElectRetryMs,
  };
}
