import { openLock } from '../kube/election/lock.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import { isKubeError } from '../kube/kube-error.ts';
import { runAsLeader } from '../kube/leader-election.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';

/** Dependencies of the lock. */
type RoutesLockDeps = {
  readonly kube: KubeClient;
  /** Name of this program: `tke-eni-ipamd`. */
  readonly program: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /** Called when the holder changes: with that of another program, or undefined when none has it any more. */
  readonly report: (holder: string | undefined) => void;
};

/** The lock, the same for every program and setting. Endpoints are what the published roles of all programs grant. */
export const ROUTES_LOCK = { kind: 'endpoints', namespace: 'kube-system', name: 'tke-eni-pod-routes' } as const;

const LEASE_MS = 15_000;
const RENEW_MS = 5_000;
const RETRY_MS = 2_000;
/** How often a program without the lock looks who has it. */
const LOOK_MS = 15_000;

/**
 * Runs `run` while this program has the lock of those that keep routes of the cluster, until aborted: two of them never
 * write. A program that finds the lock taken waits, and reports who has it.
 * @throws whatever `run` throws
 */
export async function holdRoutesLock(
  deps: RoutesLockDeps,
  run: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const { kube: client, program: identity, clock, log, random } = deps;
  const ended = new AbortController();
  const looking = AbortSignal.any([signal, ended.signal]);
  let isHeld = false;
  const isHere = (): boolean => isHeld;
  let reported: string | undefined;
  const report = (holder: string | undefined): void => {
    if (holder !== reported) deps.report(holder);
    reported = holder;
  };
  const watching = watchHolder({ ...deps, report }, isHere, looking);
  try {
    const times = { leaseMs: LEASE_MS, renewMs: RENEW_MS, retryMs: RETRY_MS };
    await runAsLeader(
      { client, lock: ROUTES_LOCK, identity, ...times, clock, log, random },
      async (term) => {
        isHeld = true;
        report(undefined);
        try {
          await run(AbortSignal.any([term.signal, signal]));
        } finally {
          isHeld = false;
        }
      },
      signal,
    );
  } finally {
    ended.abort(new Error('the lock is not needed any more'));
    await watching;
    report(undefined);
  }
}

/** Looks who has the lock while this program has not. A holder of this very program is a replica that is ending. */
async function watchHolder(deps: RoutesLockDeps, isHere: () => boolean, signal: AbortSignal): Promise<void> {
  const { kube, program, clock, report } = deps;
  const lock = openLock({ client: kube, clock, attemptMs: LOOK_MS }, ROUTES_LOCK);
  while (!signal.aborted) {
    await clock.sleep(LOOK_MS, signal).catch(() => {});
    if (signal.aborted || isHere()) continue;
    try {
      const holder = (await lock.read())?.record.holder ?? '';
      if (!isHere()) report(holder === '' || holder.startsWith(`${program}_`) ? undefined : holder);
    } catch (error) {
      // The election reports that the lock cannot be read.
      if (!isKubeError(error)) deps.log.warn('the lock of routes cannot be read', { error });
    }
  }
}
