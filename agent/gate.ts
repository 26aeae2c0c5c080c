import type { LastPass } from './ops/summary-reply.ts';

/** Why ADDs cannot be served, whatever the pool contains, and the state of the repair pass that decides it. */
export type Gate = {
  hold: string | undefined;
  /** Why this node cannot run our executables. */
  obstacle?: string | undefined;
  /** When the running pass began, monotonic milliseconds. */
  passBegunMs?: number | undefined;
  lastPass?: LastPass;
};

/** Returns the first reason not to serve; undefined without any. */
export function holdOf({ hold, obstacle }: Gate): string | undefined {
  return hold ?? obstacle;
}
