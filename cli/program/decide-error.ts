import { CliError } from '../cli-error.ts';
import type { Command } from '../command.ts';

/**
 * Decides what a person is told of an error. A right that is missing, wherever the kernel noticed it, becomes FORBIDDEN
 * with what the command needs; an error of no known kind becomes undefined: that is a fault of ours. Pure.
 */
export function decideError(
  error: unknown,
  command: Pick<Command, 'name' | 'needs'>,
  isRoot: boolean,
): CliError | undefined {
  if (error instanceof CliError) return error;
  if (error instanceof Error && 'code' in error && FULL.has(error.code)) {
    return new CliError('KERNEL', `${command.name}: ${error.message}`, 'make room there, or print elsewhere', {
      cause: error,
    });
  }
  const refusal = findRefusal(error);
  if (refusal === undefined) return undefined;
  const reason = command.needs?.replace(/^root: /, '');
  const needs = reason === undefined || reason === 'root' ? 'it needs root' : `it needs root (${reason})`;
  const next = isRoot
    ? `${needs}; root alone does not suffice here: look at capabilities and seccomp of this container`
    : `${needs}: run it as root, \`sudo tke-eni ${command.name} …\`, or in the agent's container`;
  return new CliError('FORBIDDEN', `${command.name}: ${refusal}`, next, { cause: error });
}

/** Finds the message of the error, or of one behind it, that stands for a missing right. */
function findRefusal(error: unknown): string | undefined {
  let current = error;
  for (let depth = 0; depth < MAX_CAUSES && current instanceof Error; depth++) {
    if ('code' in current && REFUSALS.has(current.code)) return current.message;
    current = current.cause;
  }
  return undefined;
}

/** @see errno(3) */
const REFUSALS: ReadonlySet<unknown> = new Set(['EPERM', 'EACCES']);
/** @see write(2) */
const FULL: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);
/** Chains are short; one that is not is a loop. */
const MAX_CAUSES = 8;
