import { relative } from 'node:path';
import { FileKeeper } from './file-keeper.ts';
import { planExecutables } from './planned-file.ts';

/**
 * Installs our executables in a folder once, as the agent keeps them on a node. Idempotent: an equal file is left alone. Returns the
 * names that it wrote, and those that it left as they were.
 * @throws the file system's own error (ENOENT when `pluginDir` lacks the executable, ENOSPC, EROFS, …).
 */
export async function installExecutables(
  pluginDir: string,
  binDir: string,
  hasLauncher = false,
): Promise<{ readonly installed: readonly string[]; readonly kept: readonly string[] }> {
  const nobody = { successorOf: async () => undefined, noticed: () => {}, contested: () => {} };
  const keeper = new FileKeeper({ ...nobody, monotonicMs: () => performance.now() });
  const plan = planExecutables(pluginDir, binDir, hasLauncher);
  const { written, kept, problems } = await keeper.pass(plan);
  const [problem] = problems;
  if (problem !== undefined) throw problem.error;
  const planned = new Set(plan.filter(({ source }) => source.kind !== 'none').map(({ path }) => path));
  const namesOf = (paths: readonly string[]): readonly string[] =>
    paths.filter((path) => planned.has(path)).map((path) => relative(binDir, path));
  return { installed: namesOf(written), kept: namesOf(kept) };
}
