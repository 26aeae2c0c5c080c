/** How `tke-eni` ends; scripts rely on the numbers. */
export const EXIT = {
  /** Done, and what was looked at is as it should be. */
  ok: 0,
  /** Done, and something is wrong: a difference, a broken hop, a finding of severity error. */
  wrong: 1,
  /** The question could not be answered: no right to look, no agent, no cluster, nothing of that name. */
  failed: 2,
  /** The command line is wrong. @see sysexits.h EX_USAGE */
  usage: 64,
} as const;

/** One of the exit codes. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
