import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { RUNS, SEED, seedOf } from '../../sim/support/seed.ts';
import { PART_VARIABLE } from '../../tools/parted-files.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Runs the body of a random test with a seed of its own, which follows from SEED and the test's title. When the body
 * fails, the test's log says the seed and the command that repeats it.
 */
export async function withSeed<R>(t: ExecutionContext, body: (seed: number) => Promise<R> | R): Promise<R> {
  return await tellingSeed(t, () => body(seedOf(t.title)));
}

/** Does the same for a test whose seed is in its title. */
export async function tellingSeed<R>(t: ExecutionContext, body: () => Promise<R> | R): Promise<R> {
  try {
    return await body();
  } catch (error) {
    t.log(`seed ${SEED}; again: ${repeatCommand(t.title)}`);
    throw error;
  }
}

/** Renders the command, for a shell at the root, that runs a test of this file again with the same choices. */
export function repeatCommand(title: string, more: Readonly<Record<string, string>> = {}): string {
  const runs = RUNS === 1 ? {} : { RUNS: String(RUNS) };
  const part = process.env[PART_VARIABLE];
  const own = { SEED: String(SEED), ...runs, ...(part === undefined ? {} : { [PART_VARIABLE]: part }) };
  const variables = Object.entries({ ...own, ...more }).map(([name, value]) => `${name}=${value}`);
  const { file } = test.meta;
  const path = relative(ROOT, file.startsWith('file:') ? fileURLToPath(file) : file);
  return `${variables.join(' ')} npx ava --timeout=10m ${path} --match=${quoted(title)}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
