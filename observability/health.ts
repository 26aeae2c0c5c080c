import type { Clock } from '../runtime/clock.ts';
import type { KubeContact } from './call-metrics.ts';
import type { InformerSample } from './work-metrics.ts';

/** Facts that health depends on. */
export type HealthFacts = {
  readonly informers: readonly InformerSample[];
  readonly contact: Readonly<KubeContact>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Why the program has not started yet; undefined once it has. Lost definitions count too. */
  readonly startProblem: string | undefined;
  /** Since when lost definitions are served again, monotonic milliseconds; undefined: none was lost. */
  readonly restoredMs?: number | undefined;
};

/** Longer than a watch may be silent and a few attempts to reopen it take. */
const SILENT_MS = 10 * 60_000;
/** A leader renews the lock, and the others read it, more often than this. */
const RECENT_MS = 2 * 60_000;

/**
 * Evaluates liveness: returns what hangs, or undefined.
 * That there is an answer shows that the event loop runs. A cache that receives nothing while other requests are
 * answered hangs, and a restart helps. An API server that does not answer is no reason to end: a restart would not
 * help. Reads the clock.
 */
export function evaluateLiveness({
  informers,
  contact,
  clock,
  startProblem,
  restoredMs = Number.NEGATIVE_INFINITY,
}: HealthFacts): string | undefined {
  // Without definitions there is nothing to watch.
  if (startProblem !== undefined) return undefined;
  const nowMs = clock.monotonicMs();
  if (nowMs - contact.lastOkMs > RECENT_MS) return undefined;
  const silent = informers.filter(
    ({ isSynced, lastContactMs }) => isSynced && nowMs - Math.max(lastContactMs, restoredMs) > SILENT_MS,
  );
  if (silent.length === 0) return undefined;
  const names = silent.map(({ resource }) => resource).join(', ');
  return `the API server answers, but the watch of ${names} has been silent for ${SILENT_MS / 60_000} minutes`;
}

/**
 * Evaluates readiness: returns why this replica could neither lead nor take over, or undefined. Leaders and standbys
 * are both ready.
 */
export function evaluateReadiness({ informers, startProblem }: HealthFacts): string | undefined {
  if (startProblem !== undefined) return startProblem;
  const waiting = informers.filter(({ isSynced }) => !isSynced).map(({ resource }) => resource);
  return waiting.length === 0 ? undefined : `not read yet: ${waiting.join(', ')}`;
}
