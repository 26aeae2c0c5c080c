import type { Clock } from '../../runtime/clock.ts';
import type { KubeContact } from './call-metrics.ts';
import type { InformerSample } from './state-metrics.ts';

/** What health is judged by. */
export type HealthFacts = {
  readonly informers: readonly InformerSample[];
  readonly contact: Readonly<KubeContact>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Why there is nothing to work with yet; undefined once the definitions are there. */
  readonly startProblem: string | undefined;
};

/** Longer than a watch may be silent and a few attempts to open it anew take. */
const SILENT_MS = 10 * 60_000;
/** A leader renews, and followers look at the lock, more often than this. */
const RECENT_MS = 2 * 60_000;

/**
 * Tells what hangs, or undefined. An answer at all says that the event loop turns. A cache that hears nothing while other
 * requests are answered hangs, and a restart helps; an API server that is away is no reason to end: nothing would be
 * better after it. Pure but for the clock.
 */
export function judgeLiveness({ informers, contact, clock }: HealthFacts): string | undefined {
  const nowMs = clock.monotonicMs();
  if (nowMs - contact.lastOkMs > RECENT_MS) return undefined;
  const silent = informers.filter(({ isSynced, lastContactMs }) => isSynced && nowMs - lastContactMs > SILENT_MS);
  if (silent.length === 0) return undefined;
  const names = silent.map(({ resource }) => resource).join(', ');
  return `the API server answers, but the watch of ${names} has said nothing for ${SILENT_MS / 60_000} minutes`;
}

/** Tells why this replica could neither lead nor take over, or undefined. Leaders and standbys are both ready. Pure. */
export function judgeReadiness({ informers, startProblem }: HealthFacts): string | undefined {
  if (startProblem !== undefined) return startProblem;
  const waiting = informers.filter(({ isSynced }) => !isSynced).map(({ resource }) => resource);
  return waiting.length === 0 ? undefined : `not read yet: ${waiting.join(', ')}`;
}
