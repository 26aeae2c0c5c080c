import { type LeaderElectionOptions, runAsLeader } from '../leader-election.ts';
import type { ElectionSettings } from './election-settings.ts';
import type { Leadership } from './term.ts';

/** The other options of the election: what the process provides. */
type ElectionDeps = Omit<LeaderElectionOptions, 'lock' | 'leaseMs' | 'renewMs' | 'retryMs'>;

/**
 * Leads whenever elected, until `drain` aborts. A leader may then need time to finish its work: it keeps the lock until
 * `lead` has ended. A replica that does not lead leaves the election at once.
 * @throws what `runAsLeader` throws
 */
export async function leadUntilDrained(
  settings: ElectionSettings,
  deps: ElectionDeps,
  lead: (term: Leadership) => Promise<void>,
  drain: AbortSignal,
): Promise<void> {
  const contend = new AbortController();
  let isLeading = false;
  const stopContending = (): void => {
    if (drain.aborted && !isLeading) contend.abort(drain.reason);
  };
  const leadTerm = async (term: Leadership): Promise<void> => {
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
    await runAsLeader({ ...deps, ...timesOf(settings) }, leadTerm, contend.signal);
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
