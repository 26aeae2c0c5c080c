import type { NodeState } from '../state/node-state.ts';
import type { LastPass } from './summary-reply.ts';

/** Why ADDs cannot be served, whatever the pool contains, and the state of the repair pass that decides it. */
export type Readiness = {
  notReady: string | undefined;
  /** Why this node cannot run our executables. */
  hostProblem?: string | undefined;
  /** Why the files that the runtime needs are not as they were installed. */
  filesProblem?: string | undefined;
  /** Files that other programs keep replacing. */
  contestedFiles?: readonly string[];
  /** Why the API server lets no rollout go on; it keeps no ADD from being served. Absent without a cluster. */
  whyApiUnready?: () => string | undefined;
  /** When the running pass began, monotonic milliseconds. */
  passStartedMs?: number | undefined;
  lastPass?: LastPass;
};

/** Returns the first reason not to serve; undefined without any. */
export function notReadyReason({ notReady, hostProblem, filesProblem }: Readiness): string | undefined {
  return notReady ?? hostProblem ?? filesProblem;
}

/** A pass that takes this long will not end: its slowest steps, runs of nft, are ended after 10 s each. */
const STUCK_PASS_MS = 120_000;

/**
 * Returns what hangs, for `/healthz`; undefined when nothing does. A blocked event loop is not reported here:
 * `/healthz` then does not answer at all.
 * @param passStartedMs When the running repair pass began, undefined between passes; monotonic milliseconds, as `nowMs`
 */
export function livenessOf(passStartedMs: number | undefined, nowMs: number): string | undefined {
  if (passStartedMs === undefined || nowMs - passStartedMs < STUCK_PASS_MS) return undefined;
  return `a repair pass has hung for ${Math.round((nowMs - passStartedMs) / 1000)} s`;
}

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
