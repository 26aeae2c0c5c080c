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
