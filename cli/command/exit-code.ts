import type { UserError } from '../../runtime/user-error.ts';

/** Exit codes of `tke-eni`. Scripts rely on the numbers. */
export const EXIT = {
  /** Done; everything that was checked is as it should be. */
  ok: 0,
  /** Done; a problem was found: a difference, a broken hop, a finding of severity error. */
  wrong: 1,
  /** The command failed: no permission, no agent, no cluster, no object of that name. */
  failed: 2,
  /** The command line is wrong. @see sysexits.h EX_USAGE */
  usage: 64,
} as const;

/** One of the exit codes. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Returns the exit code of a process that ends with an error. */
export function exitCodeOf({ code }: UserError): ExitCode {
  return code === 'USAGE' ? EXIT.usage : EXIT.failed;
}
