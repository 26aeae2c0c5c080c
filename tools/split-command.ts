import { globSync } from 'node:fs';

/** Number of files that run before the time is looked at: enough that the last of a batch rarely runs alone for long. */
const BATCH_FILES = 6;

/**
 * Splits a command that runs test files into commands of a few files each, in an order that `chance` draws. Together they
 * run each file of the command once.
 * @param command Words; those that begin with `test/` name files by patterns, those with `!test/` leave files out
 * @param chance Returns a number from 0 to below 1
 */
export function splitCommand(command: readonly string[], chance: () => number): readonly (readonly string[])[] {
  const included = command.filter((word) => word.startsWith('test/'));
  const excluded = command.filter((word) => word.startsWith('!test/')).map((word) => word.slice(1));
  const rest = command.filter((word) => !included.includes(word) && !word.startsWith('!test/'));
  const out = new Set(globSync(excluded));
  const files = globSync(included).filter((file) => !out.has(file));
  const drawn = files
    .sort()
    .map((file) => ({ file, at: chance() }))
    .sort((a, b) => a.at - b.at)
    .map(({ file }) => file);
  const batches = Math.ceil(drawn.length / BATCH_FILES);
  return Array.from({ length: batches }, (_, at) => [
    ...rest,
    ...drawn.slice(at * BATCH_FILES, (at + 1) * BATCH_FILES),
  ]);
}

/** Returns the test files that a command of `splitCommand` names. */
export function filesOf(command: readonly string[]): readonly string[] {
  return command.filter((word) => word.startsWith('test/'));
}
