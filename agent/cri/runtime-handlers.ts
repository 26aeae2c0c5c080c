import type { Clock } from '../../runtime/clock.ts';
import { inTime } from '../../runtime/clock-timers.ts';
import { CriError, type SandboxView } from './sandbox-view.ts';

/** A runtime that takes longer counts as silent: the caller of a CHECK waits. */
const LIST_MS = 3_000;

/**
 * Asks the runtimes for the handlers of the sandboxes, by container id; without those that have their runtime's default.
 * Empty when no runtime answers.
 */
export async function listRuntimeHandlers(
  view: SandboxView | undefined,
  clock: Pick<Clock, 'sleep'>,
): Promise<ReadonlyMap<string, string>> {
  if (view === undefined) return new Map();
  try {
    const sandboxes = await inTime(clock, LIST_MS, (limit) => view.list(limit));
    return new Map(sandboxes.flatMap(({ id, handler }) => (handler === undefined ? [] : [[id, handler] as const])));
  } catch (error) {
    if (!(error instanceof CriError)) throw error;
    return new Map();
  }
}
