import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import { BLIND, decideCandidacy, lookAgain, type Sight } from './election/decide-candidacy.ts';
import { type Lock, openLock, type StoredLock } from './election/lock.ts';
import type { LockRef } from './election/lock-record.ts';
import { holdTerm } from './election/term.ts';
import type { KubeClient } from './kube-client.ts';
import { isKubeError } from './kube-error.ts';

/** A time in office. */
export type Term = {
  /** Grows with each term, whoever holds it. */
  readonly epoch: number;
  /** Monotonic milliseconds. */
  readonly startedMs: number;
  readonly leaseMs: number;
  /** Aborted when the lease may be lost, before others can have it; and when this process is to end. */
  readonly signal: AbortSignal;
};

/** Hears who leads, for metrics. */
export type LeaderObserver = {
  readonly onLeading?: (isLeading: boolean) => void;
  /** A look at the lock or a renewal failed. */
  readonly onFailure?: (error: unknown) => void;
};

/** How a leader is elected. */
export type LeaderElectionOptions = {
  readonly client: KubeClient;
  readonly lock: LockRef;
  /** Who we are, for people. Each run adds a random part: a name may be used again, a holder's must not. */
  readonly identity: string;
  /** How long a lock that nobody renews is left to its holder. */
  readonly leaseMs: number;
  /** How often the holder renews it. */
  readonly renewMs: number;
  /** How often others look at it, and how soon a renewal that failed is tried again. */
  readonly retryMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly observer?: LeaderObserver;
};

/**
 * The holder trusts its lease for this share of it, counted from before it sent the renewal; others wait for the whole,
 * counted from when they saw it. So clocks may run a quarter slower or faster than each other.
 */
const TRUSTED_SHARE = 0.75;

/** A server that was out of sight for longer may have been restored; restoring one takes at least as long. */
const LONGEST_GAP_SHARE = 0.25;

/**
 * Leads whenever it is elected, until aborted or until `lead` ends by itself; then releases the lock. `lead` must stop
 * when its term's signal is aborted: another is elected a quarter of the lease later at the earliest.
 *
 * No two lead at once as long as clocks run at about the same speed: partitions, lost answers (a write that was not
 * confirmed neither begins nor extends a term), jumps of wall clocks, and a server restored to an older state included,
 * if it was down for a quarter of the lease meanwhile.
 * With one exception, so that a new cluster and an upgrade need not wait: who has just started and finds the lock free
 * takes it at once. Deleting the lock, or restoring a state in which it was free, hides a leader from it, who will find
 * out with its next renewal.
 * @throws RangeError when the times leave no room for a second try at renewal; whatever `lead` throws
 */
export async function runAsLeader(
  options: LeaderElectionOptions,
  lead: (term: Term) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const { client, clock, leaseMs, renewMs, retryMs, random, identity } = options;
  if (!(retryMs > 0 && renewMs > 0 && renewMs + retryMs <= leaseMs * TRUSTED_SHARE)) {
    const told = `leaseMs ${leaseMs}, renewMs ${renewMs}, retryMs ${retryMs}`;
    throw new RangeError(`leader election: ${told}: renewMs + retryMs must be at most ${TRUSTED_SHARE} of leaseMs`);
  }
  const suffix = Math.floor(random() * 2 ** 32)
    .toString(16)
    .padStart(8, '0');
  const lock = openLock({ client, clock, attemptMs: Math.max(retryMs, leaseMs / 6) }, options.lock);
  const candidate: Candidate = { options, lock, holder: `${identity}_${suffix}`, sight: undefined, highestEpoch: 0 };
  while (!signal.aborted) {
    const won = await contend(candidate, signal);
    if (won === undefined) return;
    const trustedMs = leaseMs * TRUSTED_SHARE;
    const outcome = await holdTerm({ ...options, lock, holder: candidate.holder, trustedMs }, won, lead, signal);
    if (outcome === 'over') return;
    // What was seen from office says nothing: begin as after a gap.
    candidate.sight = BLIND;
  }
}

type Candidate = {
  readonly options: LeaderElectionOptions;
  readonly lock: Lock;
  readonly holder: string;
  sight: Sight | undefined;
  /** The highest count of terms ever seen: an older state brought back must not make us use one again. */
  highestEpoch: number;
};

/** A lock that was won, and when the write that won it was sent. */
export type WonLock = { readonly stored: StoredLock; readonly sentMs: number };

/** Looks at the lock until it is won; undefined when aborted. */
async function contend(candidate: Candidate, signal: AbortSignal): Promise<WonLock | undefined> {
  const { clock, retryMs, random, log, observer } = candidate.options;
  while (!signal.aborted) {
    try {
      const won = await tryOnce(candidate);
      if (won !== undefined) return won;
    } catch (error) {
      // Somebody was faster: that is the lock at work.
      if (!isKubeError(error, 'CONFLICT', 'ALREADY_EXISTS')) {
        log.warn('looking at the lock failed', { lock: candidate.options.lock.name, error });
        observer?.onFailure?.(error);
      }
    }
    // Spread, so that candidates do not ask in step.
    await clock.sleep(retryMs * (0.8 + 0.4 * random()), signal).catch(() => {});
  }
  return undefined;
}

async function tryOnce(candidate: Candidate): Promise<WonLock | undefined> {
  const { options, lock, holder } = candidate;
  const { clock, leaseMs } = options;
  const lookedMs = clock.monotonicMs();
  const stored = await lock.read();
  const nowMs = clock.monotonicMs();
  const sight = lookAgain(candidate.sight, stored, { lookedMs, nowMs }, leaseMs * LONGEST_GAP_SHARE);
  candidate.sight = sight;
  candidate.highestEpoch = Math.max(candidate.highestEpoch, stored?.record.transitions ?? 0);
  if (decideCandidacy(sight, nowMs, leaseMs).kind === 'wait') return undefined;
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
