import type { Clock } from '../../runtime/clock.ts';
import type { CriSandbox, SandboxView } from './sandbox-view.ts';

const RETRY_MS = 1_000;

/** Whose sandboxes are looked for, and until when. */
type Wanted = {
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>;
  /** Ids of sandboxes of which the node has traces; a list with none of them may be of a runtime that has no part in these Pods. */
  readonly ids: ReadonlySet<string>;
  /** Monotonic milliseconds. After that any list is good enough. */
  readonly untilMs: number;
};

/**
 * Lists sandboxes, and waits for the runtime of the node's Pods: another one may answer first. Rejects with the signal's reason
 * when aborted. @throws CriError when no runtime answers in time
 */
export async function listKnown(
  view: Pick<SandboxView, 'list'>,
  { clock, ids, untilMs }: Wanted,
  signal: AbortSignal,
): Promise<readonly CriSandbox[]> {
  for (;;) {
    const isLate = clock.monotonicMs() >= untilMs;
    try {
      const sandboxes = await view.list(signal);
      if (isLate || ids.size === 0 || sandboxes.some(({ id }) => ids.has(id))) return sandboxes;
    } catch (error) {
      if (signal.aborted || isLate) throw error;
    }
    await clock.sleep(RETRY_MS, signal);
  }
}
