import type { Informer } from '../../kube/informer.ts';
import type { Clock } from '../../runtime/clock.ts';

/** Longer than the longest silence of a watch plus a few attempts to open it again. */
const SILENT_MS = 10 * 60_000;
/** The lock is read more often than this. */
const RECENT_MS = 2 * 60_000;
const MINUTE_MS = 60_000;

/**
 * Returns what is stuck, or undefined. A cache is stuck when it receives nothing while other calls are answered; a
 * restart helps then. An API server that does not answer is no reason to restart.
 */
export function evaluateLiveness(
  followed: Readonly<Record<string, Pick<Informer<unknown>, 'isSynced' | 'lastContactMs'>>>,
  contact: { readonly lastOkMs: number },
  clock: Pick<Clock, 'monotonicMs'>,
): string | undefined {
  const nowMs = clock.monotonicMs();
  if (nowMs - contact.lastOkMs > RECENT_MS) return undefined;
  const silent = Object.entries(followed).filter(([, { isSynced, lastContactMs }]) => {
    return isSynced && nowMs - lastContactMs > SILENT_MS;
  });
  if (silent.length === 0) return undefined;
  const names = silent.map(([name]) => name).join(', ');
  return `the API server answers, but the watch of ${names} has received nothing for ${SILENT_MS / MINUTE_MS} minutes`;
}
