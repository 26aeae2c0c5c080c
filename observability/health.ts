import { describeBlindness, findSilentWatches, SILENT_MS } from '../kube/find-silent-watches.ts';
import type { Clock } from '../runtime/clock.ts';
import type { InformerSample } from './informer-sample.ts';
import type { KubeContact } from './program-metrics.ts';

/** Facts that health depends on. */
export type HealthFacts = {
  readonly informers: readonly InformerSample[];
  readonly contact: Readonly<KubeContact>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Why the program has not started yet; undefined once it has. Lost definitions count too. */
  readonly startProblem: string | undefined;
  /** What the API server refuses of the lock; undefined: nothing, or no lock is asked for. */
  readonly lockRefusal?: string | undefined;
  /** Since when lost definitions are served again, monotonic milliseconds; undefined: none was lost. */
  readonly restoredMs?: number | undefined;
};

/**
 * Evaluates liveness: returns what hangs, or undefined.
 * That there is an answer shows that the event loop runs. Reads the clock.
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
  const silent = findSilentWatches(watchesOf(informers, restoredMs), contact, clock);
  if (silent.length === 0) return undefined;
  const names = silent.join(', ');
  return `the API server answers, but the watch of ${names} has been silent for ${SILENT_MS / 60_000} minutes`;
}

/**
 * Evaluates readiness: returns why this replica could neither lead nor take over, or undefined. Leaders and standbys
 * are both ready. Reads the clock.
 */
export function evaluateReadiness({
  informers,
  clock,
  startProblem,
  lockRefusal,
  restoredMs = Number.NEGATIVE_INFINITY,
}: HealthFacts): string | undefined {
  if (startProblem !== undefined) return startProblem;
  if (lockRefusal !== undefined)
    return `this replica cannot lead: ${lockRefusal}; look at the role and at --leader-elect-lock`;
  const waiting = informers.filter(({ isSynced }) => !isSynced).map(({ resource }) => resource);
  if (waiting.length > 0) return `not read yet: ${waiting.join(', ')}`;
  return describeBlindness(watchesOf(informers, restoredMs), clock);
}

function watchesOf(informers: readonly InformerSample[], restoredMs: number) {
  return informers.map(({ resource, isSynced, lastContactMs }) => {
    return [resource, { isSynced, lastContactMs: Math.max(lastContactMs, restoredMs) }] as const;
  });
}
