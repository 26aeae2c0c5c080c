import type { Clock } from '../runtime/clock.ts';
import type { Informer } from './informer.ts';

/** Longer than a watch may be silent and a few attempts to reopen it take. */
export const SILENT_MS = 10 * 60_000;
/** A leader renews the lock, and the others read it, more often than this. */
const RECENT_MS = 2 * 60_000;

/** What is known of a watch. */
type WatchState = Pick<Informer<unknown>, 'isSynced' | 'lastContactMs'>;

/**
 * Lists the watches that hang: they receive nothing while other requests are answered, and a restart helps. None while the
 * API server does not answer: a restart would not help. Reads the clock.
 */
export function findSilentWatches(
  watches: Iterable<readonly [name: string, state: WatchState]>,
  contact: { readonly lastOkMs: number },
  clock: Pick<Clock, 'monotonicMs'>,
): readonly string[] {
  return clock.monotonicMs() - contact.lastOkMs > RECENT_MS ? [] : findBlindWatches(watches, clock);
}

/** Lists the watches that have received nothing for SILENT_MS, whatever the reason. Reads the clock. */
function findBlindWatches(
  watches: Iterable<readonly [name: string, state: WatchState]>,
  clock: Pick<Clock, 'monotonicMs'>,
): readonly string[] {
  const nowMs = clock.monotonicMs();
  return [...watches].flatMap(([name, { isSynced, lastContactMs }]) =>
    isSynced && nowMs - lastContactMs > SILENT_MS ? [name] : [],
  );
}

/** Says which watches have received nothing for SILENT_MS, for readiness; undefined while none. Reads the clock. */
export function describeBlindness(
  watches: Iterable<readonly [name: string, state: WatchState]>,
  clock: Pick<Clock, 'monotonicMs'>,
): string | undefined {
  const blind = findBlindWatches(watches, clock);
  return blind.length === 0 ? undefined : `nothing heard for ${SILENT_MS / 60_000} minutes of: ${blind.join(', ')}`;
}
