import type { LastPass } from './ops/summary-reply.ts';

/** Why an ADD cannot be served, whatever the pool says; and how the repair pass is that decides it. */
export type Gate = {
  hold: string | undefined;
  /** Why this node cannot run our executables. */
  obstacle?: string | undefined;
  /** When the pass that runs now began, monotonic. */
  passBegunMs?: number | undefined;
  lastPass?: LastPass;
};

/** The first reason not to serve; undefined without any. */
export function holdOf({ hold, obstacle }: Gate): string | undefined {
  return hold ?? obstacle;
}
