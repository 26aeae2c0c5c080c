import type { NodeState } from '../state/node-state.ts';

/** Acts on the node's readiness to serve ADDs. */
export type ReadinessListener = {
  /** Called at first, and whenever readiness has changed. */
  changed(isReady: boolean): void;
};

/** Poll interval: some of what readiness depends on changes without a notification. */
const POLL_MS = 1_000;

/**
 * Checks whether the node is ready whenever that may have changed, until aborted. The resources that it publishes
 * follow at once: other components place Pods, or a taint, by them.
 */
export async function followReadiness(
  state: NodeState,
  isReady: () => boolean,
  signal: AbortSignal,
  listener: ReadinessListener,
): Promise<void> {
  let was: boolean | undefined;
  while (!signal.aborted) {
    const now = isReady();
    if (now !== was) {
      listener.changed(now);
      state.demandChanged.notify();
    }
    was = now;
    await state.changed.wait(POLL_MS, signal);
  }
}
