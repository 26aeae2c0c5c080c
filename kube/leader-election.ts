import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import { decideCandidacy, type LockObservation, NO_OBSERVATION, observeLock } from './election/decide-candidacy.ts';
import { RENEW_DEADLINE_SHARE } from './election/election-settings.ts';
import { type Lock, openLock } from './election/lock.ts';
import { LOCK_TYPES, type LockRef } from './election/lock-record.ts';
import { type Leadership, runTerm, type WonLock } from './election/term.ts';
import type { EventSink } from './events/event-object.ts';
import { involvedObject } from './involved-object.ts';
import type { KubeClient } from './kube-client.ts';
import { isKubeError } from './kube-error.ts';

/** Options of the election. */
export type LeaderElectionOptions = {
  readonly client: KubeClient;
  readonly lock: LockRef;
  /**
   * The name of this process for people. Each run adds a random part: a name may occur twice, a holder must be unique.
   */
  readonly identity: string;
  /** How long other candidates wait for a holder that does not renew the lock. */
  readonly leaseMs: number;
  /** The interval at which the holder renews the lock. */
  readonly renewMs: number;
  /** The interval at which candidates read the lock, and the delay before a failed renewal is retried. */
  readonly retryMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /** Called after each look at the lock: what the API server refuses, or undefined where it refuses nothing. */
  readonly reportRefusal?: (refusal: string | undefined) => void;
  /** Where the beginning and the end of each term are recorded, as events of the lock with upstream's reason. */
  readonly events?: EventSink<'LeaderElection'>;
};

/**
 * Longest gap between reads, as a share of the lease. After a longer gap the server may have been restored; a restore
 * takes at least as long.
 */
const MAX_GAP_SHARE = 0.25;

/**
 * Leads whenever elected, until aborted or until `lead` ends by itself; then releases the lock. `lead` must stop when
 * the signal of its term is aborted: the next leader is elected a quarter of the lease later at the earliest.
 *
 * At most one process leads at a time as long as clocks run at about the same speed. This holds for partitions, lost
 * answers (an unconfirmed write neither begins nor extends a term) and jumps of wall clocks. It also holds for a server
 * restored to an older state, if it was down for at least a quarter of the lease. There is one exception, so that a new
 * cluster and an upgrade need not wait: a process that has just started and finds the lock free takes it at once. If
 * the lock was deleted, or a state was restored in which it was free, a running leader is invisible to this process;
 * that leader detects the change at its next renewal.
 * @throws RangeError when the times leave no time for a second attempt at renewal; whatever `lead` throws
 */
export async function runAsLeader(
  options: LeaderElectionOptions,
  lead: (term: Leadership) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const { client, clock, leaseMs, renewMs, retryMs, random, identity } = options;
  if (!(retryMs > 0 && renewMs > 0 && renewMs + retryMs <= leaseMs * RENEW_DEADLINE_SHARE)) {
    const times = `leaseMs ${leaseMs}, renewMs ${renewMs}, retryMs ${retryMs}`;
    throw new RangeError(
      `leader election: ${times}: renewMs + retryMs must be at most ${RENEW_DEADLINE_SHARE} of leaseMs`,
    );
  }
  const suffix = Math.floor(random() * 2 ** 32)
    .toString(16)
    .padStart(8, '0');
  const lock = openLock({ client, clock, attemptMs: Math.max(retryMs, leaseMs / 6) }, options.lock);
  const candidate: Candidate = {
    options,
    lock,
    holder: `${identity}_${suffix}`,
    observation: undefined,
    highestEpoch: 0,
  };
  while (!signal.aborted) {
    const won = await contend(candidate, signal);
    if (won === undefined) return;
    const renewDeadlineMs = leaseMs * RENEW_DEADLINE_SHARE;
    const recorded = async (term: Leadership): Promise<void> => {
      recordTerm(candidate, won, 'became leader');
      await lead(term);
    };
    const outcome = await runTerm(
      { ...options, lock, holder: candidate.holder, renewDeadlineMs },
      won,
      recorded,
      signal,
    );
    recordTerm(candidate, won, 'stopped leading');
    if (outcome === 'over') return;
    // Observations made while this process was the leader do not count: start as after a gap in the observations.
    candidate.observation = NO_OBSERVATION;
  }
}

/** What does not end by itself: no right, no namespace. */
const REFUSALS = ['FORBIDDEN', 'UNAUTHORIZED', 'NOT_FOUND', 'INVALID'] as const;

type Candidate = {
  readonly options: LeaderElectionOptions;
  readonly lock: Lock;
  readonly holder: string;
  observation: LockObservation | undefined;
  /**
   * The highest count of terms ever read. Thus no epoch is used twice, even after the server was restored to an older
   * state.
   */
  highestEpoch: number;
};

/** Records an event in upstream's words. @see client-go resourcelock EndpointsLock.RecordEvent */
function recordTerm({ options, holder }: Candidate, { stored }: WonLock, what: string): void {
  const { kind, namespace, name } = options.lock;
  const type = LOCK_TYPES[kind];
  const involved = involvedObject(type, { namespace, name, uid: stored.object.metadata.uid });
  options.events?.record({ involved, type: 'Normal', reason: 'LeaderElection', message: `${holder} ${what}` });
}

/** Reads the lock until it is acquired; undefined when aborted. */
async function contend(candidate: Candidate, signal: AbortSignal): Promise<WonLock | undefined> {
  const { clock, retryMs, random, log, reportRefusal = () => {} } = candidate.options;
  while (!signal.aborted) {
    try {
      const won = await tryOnce(candidate);
      reportRefusal(undefined);
      if (won !== undefined) return won;
    } catch (error) {
      if (isKubeError(error, ...REFUSALS)) reportRefusal(error.message);
      // A conflict is normal: another candidate wrote first.
      if (!isKubeError(error, 'CONFLICT', 'ALREADY_EXISTS')) {
        log.warn('looking at the lock failed', { lock: candidate.options.lock.name, error });
      }
    }
    // A random share, so that candidates do not read at the same time.
    await clock.sleep(retryMs * (0.8 + 0.4 * random()), signal).catch(() => {});
  }
  return undefined;
}

async function tryOnce(candidate: Candidate): Promise<WonLock | undefined> {
  const { options, lock, holder } = candidate;
  const { clock, leaseMs } = options;
  const startedMs = clock.monotonicMs();
  const stored = await lock.read();
  const nowMs = clock.monotonicMs();
  const observation = observeLock(candidate.observation, stored, { startedMs, nowMs }, leaseMs * MAX_GAP_SHARE);
  candidate.observation = observation;
  candidate.highestEpoch = Math.max(candidate.highestEpoch, stored?.record.transitions ?? 0);
  if (decideCandidacy(observation, nowMs, leaseMs).kind === 'wait') return undefined;
  candidate.highestEpoch += 1;
  const time = lock.now();
  const record = {
    holder,
    leaseSeconds: Math.max(1, Math.ceil(leaseMs / 1000)),
    transitions: candidate.highestEpoch,
    acquireTime: time,
    renewTime: time,
  };
  const sentMs = clock.monotonicMs();
  return { stored: await lock.write(stored, record), sentMs };
}
