import type { Informer } from '../../kube/informer.ts';
import type { Clock } from '../../runtime/clock.ts';

/** Longer than a watch may be silent and a few attempts to open it anew take. */
const SILENT_MS = 10 * 60_000;
/** The lock is looked at more often than this. */
const RECENT_MS = 2 * 60_000;
const MINUTE_MS = 60_000;

/**
 * Tells what hangs, or undefined. A cache that hears nothing while other calls are answered hangs, and a restart helps; an
 * API server that is away is no reason to end.
 */
export function judgeLiveness(
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
  return `the API server answers, but the watch of ${names} has said nothing for ${SILENT_MS / MINUTE_MS} minutes`;
}
