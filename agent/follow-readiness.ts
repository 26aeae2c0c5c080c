import type { NodeState } from './node-state.ts';

/** Who acts upon the node's being ready to serve ADDs. */
export type ReadinessListener = {
  /** Told at first, and whenever it is otherwise. */
  turned(isReady: boolean): void;
  /** Called with each look; must not throw. */
  look(isReady: boolean): Promise<void>;
};

/** Some of what readiness depends on changes without a sign. */
const LOOK_MS = 1_000;

/**
 * Looks whether the node is ready whenever that may have changed, until aborted. What the node says that it serves follows
 * at once: others put Pods here, or a taint, by that.
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
      listener.turned(now);
      state.demandChanged.notify();
    }
    was = now;
    await listener.look(now);
    await state.changed.wait(LOOK_MS, signal);
  }
}
